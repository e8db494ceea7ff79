from __future__ import annotations

import pytest

from isthmus.dialects.linkerd.profile import destination_profile, metadata
from isthmus.ir.endpoint import Endpoint
from isthmus.ir.names import Ref
from isthmus.ir.profile import (
    All,
    Any,
    Condition,
    Method,
    Not,
    Override,
    PathRegex,
    Profile,
    ProfileRoute,
    ResponseClass,
    Status,
)
from isthmus.ir.rules import Budget
from isthmus.mesh.settings import Http2Params
from isthmus.proto.linkerd import destination_pb2 as pb

SEED = "terminus-svc.default.svc.cluster.local"


def test_the_seeds_answer_byte_for_byte() -> None:
    said = Profile(name=SEED, opaque=True, overrides=(Override(f"{SEED}.:8080", 10_000),))
    assert destination_profile(said, None).SerializeToString(deterministic=True).hex() == (
        "120b0dcdcc4c3e100a1a02080a"
        "1a310a2c7465726d696e75732d7376632e64656661756c742e7376632e636c75737465722e6c6f63616c2e3a"
        "3830383010904e2001"
        "2a267465726d696e75732d7376632e64656661756c742e7376632e636c75737465722e6c6f63616c"
    )


def test_a_port_that_is_not_declared_has_an_empty_message() -> None:
    assert destination_profile(Profile(refused=True), None).SerializeToString() == b""


def test_references_name_objects_as_linkerd_does() -> None:
    service = metadata(Ref("here", "", "Service", "demo", "web"), 8080)
    assert service.SerializeToString().hex() == (
        "121d0a04636f72651207536572766963651a03776562220464656d6f30903f"
    )
    profile = metadata(Ref("here", "linkerd.io", "ServiceProfile", "demo", "web.demo"))
    assert (profile.resource.group, profile.resource.port) == ("linkerd.io", 0)


def test_what_is_not_there_is_not_set() -> None:
    wire = destination_profile(Profile(), None)
    assert not wire.HasField("endpoint")
    assert not wire.HasField("parent_ref")
    assert not wire.HasField("profile_ref")
    assert wire.retry_budget.min_retries_per_second == 10


def test_a_budget() -> None:
    wire = destination_profile(Profile(budget=Budget(500, 3, 1500)), None).retry_budget
    assert (wire.retry_ratio, wire.min_retries_per_second) == (0.5, 3)
    assert (wire.ttl.seconds, wire.ttl.nanos) == (1, 500_000_000)


def test_a_single_endpoint_is_told_as_in_a_set() -> None:
    found = Endpoint(address="10.0.0.1", port=80, meshed=True)
    params = Http2Params(adaptive_window=True)
    wire = destination_profile(Profile(endpoint=found), params).endpoint
    assert wire.http2.flow_control.adaptive_flow_control


def route(condition: Condition, *classes: ResponseClass, timeout: int | None = None) -> pb.Route:
    said = ProfileRoute("r", condition, classes, retryable=True, timeout=timeout)
    (wire,) = destination_profile(Profile(routes=(said,)), None).routes
    return wire


def test_a_route() -> None:
    wire = route(PathRegex("/a"), timeout=250)
    assert dict(wire.metrics_labels) == {"route": "r"}
    assert wire.is_retryable
    assert (wire.timeout.seconds, wire.timeout.nanos) == (0, 250_000_000)
    assert not route(PathRegex("/a")).HasField("timeout")


def test_request_conditions() -> None:
    wire = route(All((Any((Method("GET"), Method("PURGE"))), Not(PathRegex("/b"))))).condition
    some, other = wire.all.matches
    assert some.any.matches[0].method.SerializeToString().hex() == "0800"
    assert some.any.matches[1].method.unregistered == "PURGE"
    assert getattr(other, "not").path.regex == "/b"


def test_response_conditions() -> None:
    said = All((Any((Status(500, 599),)), Not(Status(404, 0))))
    (wire,) = route(PathRegex("/"), ResponseClass(said, failure=True)).response_classes
    some, other = wire.condition.all.matches
    assert (some.any.matches[0].status.min, some.any.matches[0].status.max) == (500, 599)
    assert getattr(other, "not").status.min == 404
    assert wire.is_failure


@pytest.mark.parametrize("condition", [Status(500, 599), Not(Status(1, 2))])
def test_a_request_has_no_status(condition: Condition) -> None:
    assert "status" not in str(route(condition).condition)


def test_a_response_has_no_path() -> None:
    said = ResponseClass(Any((PathRegex("/"), Method("GET"))), failure=False)
    (wire,) = route(PathRegex("/"), said).response_classes
    assert [each.WhichOneof("match") for each in wire.condition.any.matches] == [None, None]
