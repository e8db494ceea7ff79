from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import BadRequest, TooLarge
from isthmus.model.document import MAX_VALUES
from isthmus.model.schema import ListType, Patch, Type
from isthmus.model.wire import MAGIC, decode, decode_message, schema_of
from isthmus.model.wire.messages import FORMS, SCALARS, messages
from isthmus.model.wire.protobuf import message_of
from tests.unit.model.encoder import body, double, lend, num, varint

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("kubectl_bodies.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("command", RECORDED)
def test_bodies_that_kubectl_really_sends(command: str) -> None:
    assert decode(bytes.fromhex(RECORDED[command]["body"])) == RECORDED[command]["document"]


def test_zero_replicas_are_kept_and_other_zeros_are_absent() -> None:
    spec = num(1, 0) + num(5, 0) + num(7, 0)  # replicas, minReadySeconds, paused
    document = decode(body("apps/v1", "Deployment", lend(2, spec)))
    assert document["spec"] == {"replicas": 0}


def test_negative_numbers_are_twos_complement() -> None:
    assert decode_message("core.v1.ServicePort", num(3, -5)) == {"port": -5}
    meta = decode_message("meta.v1.ObjectMeta", num(7, -(2**40)))
    assert meta == {"generation": -(2**40)}


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    fixed32 = varint(903 << 3 | 5) + b"abcd"
    raw = num(900, 7) + lend(901, b"\xff") + double(902, 1.5) + fixed32 + lend(1, "a")
    assert decode_message("core.v1.EnvVar", raw) == {"name": "a"}


def test_maps_and_their_missing_halves() -> None:
    pairs = lend(2, lend(1, "k") + lend(2, "v")) + lend(2, lend(1, "bare")) + lend(2, b"")
    assert decode_message("core.v1.ConfigMap", pairs)["data"] == {"k": "v", "bare": "", "": ""}
    quantities = lend(1, lend(1, "cpu") + lend(2, lend(1, "100m"))) + lend(1, lend(1, "memory"))
    limits = decode_message("core.v1.ResourceRequirements", quantities)
    assert limits == {"limits": {"cpu": "100m", "memory": "0"}}


def test_a_message_said_twice_is_merged_and_a_scalar_replaced() -> None:
    raw = lend(1, lend(1, "a")) + lend(1, lend(2, "g-")) + lend(1, lend(1, "b"))
    assert decode_message("core.v1.Pod", raw)["metadata"] == {"name": "b", "generateName": "g-"}


def test_inline_messages_stand_in_their_parent() -> None:
    probe = lend(1, lend(2, lend(1, "/ready") + lend(2, num(1, 0) + num(2, 8080)))) + num(2, 3)
    assert decode_message("core.v1.Probe", probe) == {
        "httpGet": {"path": "/ready", "port": 8080},
        "initialDelaySeconds": 3,
    }
    volume = lend(1, "scratch") + lend(2, lend(2, b""))
    assert decode_message("core.v1.Volume", volume) == {"name": "scratch", "emptyDir": {}}


def test_times() -> None:
    at = num(1, 1_700_000_000)
    meta = decode_message("meta.v1.ObjectMeta", lend(8, at) + lend(9, b""))
    assert meta == {"creationTimestamp": "2023-11-14T22:13:20Z"}
    lease = decode_message("coordination.v1.LeaseSpec", lend(4, at + num(2, 5_006_000)))
    assert lease == {"renewTime": "2023-11-14T22:13:20.005006Z"}


@pytest.mark.parametrize("stamp", [num(1, 1 << 62), num(1, 5) + num(2, -1), num(1, -(1 << 62))])
def test_a_time_outside_the_calendar_is_refused(stamp: bytes) -> None:
    with pytest.raises(BadRequest, match=r"Pod at metadata\.creationTimestamp: "):
        decode(body("v1", "Pod", lend(1, lend(8, stamp))))


def test_json_inside_protobuf() -> None:
    fields = lend(17, lend(1, "m") + lend(7, lend(1, b'{"f:spec":{}}')))
    meta = decode_message("meta.v1.ObjectMeta", fields)
    assert meta["managedFields"] == [{"manager": "m", "fieldsV1": {"f:spec": {}}}]
    with pytest.raises(BadRequest, match=r"managedFields\[0\]\.fieldsV1: .*not valid JSON"):
        decode(body("v1", "Pod", lend(1, lend(17, lend(7, lend(1, b"{"))))))


def test_schema_props_take_the_form_that_is_set() -> None:
    name = "apiextensions.v1.JSONSchemaProps"
    text = lend(5, "string")
    raw = (
        lend(24, lend(2, text) + lend(2, b""))
        + lend(30, num(1, 1))
        + lend(33, lend(2, text))
        + lend(32, lend(1, "a") + lend(2, lend(2, "b")))
        + num(38, 0)
        + double(9, 1.5)
        + double(11, 2.0)
        + lend(8, lend(1, b"null"))
        + lend(3, "#/x")
    )
    assert decode_message(name, raw) == {
        "items": [{"type": "string"}, {}],
        "additionalProperties": True,
        "additionalItems": {"type": "string"},
        "dependencies": {"a": ["b"]},
        "x-kubernetes-preserve-unknown-fields": False,
        "maximum": 1.5,
        "minimum": 2,
        "$ref": "#/x",
    }
    with pytest.raises(BadRequest, match="not a JSON number"):
        decode_message(name, double(9, float("inf")))


def test_an_int_or_string_and_an_extra_value() -> None:
    port = decode_message("core.v1.ServicePort", lend(4, num(1, 1) + lend(3, "http")))
    assert port == {"targetPort": "http"}
    with pytest.raises(BadRequest, match="type 0 or 1, not 2"):
        decode_message("core.v1.ServicePort", lend(4, num(1, 2)))
    user = lend(4, lend(1, "scope") + lend(2, lend(1, "a") + lend(1, "b")))
    assert decode_message("authentication.v1.UserInfo", user) == {"extra": {"scope": ["a", "b"]}}


def test_numbers_may_be_packed() -> None:
    raw = lend(4, varint(1) + varint(-2))  # supplementalGroups
    assert decode_message("core.v1.PodSecurityContext", raw) == {"supplementalGroups": [1, -2]}


def test_delete_options_of_any_group() -> None:
    raw = num(1, 0) + lend(4, "Background")
    for version in ("v1", "apps/v1", "policy/v1"):
        assert decode(body(version, "DeleteOptions", raw)) == {
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Background",
        }


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "does not start with"),
        (b"k8s\x01", "does not start with"),
        (MAGIC, "no kind '' in version ''"),
        (body("v1", "Elephant", b""), "no kind 'Elephant' in version 'v1'"),
        (body("core/v1", "Pod", b""), "no kind 'Pod' in version 'core/v1'"),
        (body("v1", "Pod", b"", lend(3, "gzip")), "content encoding 'gzip'"),
        (body("v1", "Pod", b"", lend(4, "application/json")), "content type 'application/json'"),
        (MAGIC + b"\x0a\xff", "runtime.Unknown: byte 5: the body ends inside a varint"),
        (body("v1", "Pod", b"\x0a\x05a"), "5 bytes are announced, 1 are left"),
        (body("v1", "Pod", b"\xff" * 10), "a varint of more than 10 bytes"),
        (body("v1", "Pod", b"\x00\x00"), "0 is not a field number"),
        (body("v1", "Pod", b"\x0b\x0c"), "wire type 3 is not supported"),
        (body("v1", "Pod", num(1, 3)), "Pod at metadata: wire type 0 where 2 belongs"),
        (body("v1", "Pod", lend(1, lend(1, b"\xff"))), "Pod at metadata.name: .*not UTF-8"),
        (
            body("v1", "Pod", lend(2, lend(2, b"") + lend(2, lend(6, lend(3, "x"))))),
            r"Pod at spec.containers\[1\].ports\[0\].containerPort: wire type 2 where 0",
        ),
        (
            body("v1", "ConfigMap", lend(2, lend(1, "k") + num(2, 1))),
            r"ConfigMap at data\[k\]: wire type 0 where 2",
        ),
        (body("v1", "Pod", varint(99 << 3 | 5) + b"abc"), "ends inside a value of 4 bytes"),
    ],
)
def test_a_fault_says_what_and_where(data: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        decode(data)


def test_nesting_is_bounded() -> None:
    raw = b""
    for _ in range(400):
        raw = lend(28, raw)  # not: {not: ...}
    with pytest.raises(BadRequest, match="nested more than"):
        decode_message("apiextensions.v1.JSONSchemaProps", raw)


def test_nesting_of_json_inside_is_bounded_with_the_rest() -> None:
    raw = lend(8, lend(1, b"[" * 100 + b"]" * 100))
    for _ in range(60):
        raw = lend(28, raw)
    with pytest.raises(BadRequest, match="nested more than"):
        decode_message("apiextensions.v1.JSONSchemaProps", raw)


def test_size_and_number_of_values_are_bounded() -> None:
    with pytest.raises(TooLarge, match="the limit is 10"):
        decode(body("v1", "Pod", b""), limit=10)
    empties = lend(2, lend(2, b"") * (MAX_VALUES + 1))
    with pytest.raises(BadRequest, match="holds more than"):
        decode(body("v1", "Pod", empties))
    packed = lend(4, b"\x01" * (MAX_VALUES + 1))
    with pytest.raises(BadRequest, match="holds more than"):
        decode_message("core.v1.PodSecurityContext", packed)


def test_odd_spots_of_the_envelope() -> None:
    raw = lend(1, lend(2, "a"))
    odd = lend(7, b"x") + num(1, 5) + lend(1, lend(1, "v1") + lend(2, "Pod") + num(3, 1))
    assert decode(b"k8s\0" + odd + lend(2, raw))["metadata"] == {"generateName": "a"}
    with pytest.raises(BadRequest, match=r"runtime\.Unknown: .*not UTF-8"):
        decode(b"k8s\0" + lend(1, lend(1, b"\xff")))
    entry = lend(2, lend(1, "k") + num(9, 1))
    assert decode_message("core.v1.ConfigMap", entry) == {"data": {"k": ""}}
    extra = lend(5, lend(1, "k"))
    assert decode_message("authorization.v1.SubjectAccessReviewSpec", extra) == {"extra": {"k": []}}
    micro = lend(4, b"")
    assert decode_message("coordination.v1.LeaseSpec", micro) == {}


def test_message_names() -> None:
    assert message_of("rbac.authorization.k8s.io/v1", "Role") == "rbac.v1.Role"
    with pytest.raises(BadRequest):
        message_of("apiextensions.k8s.io/v1", "JSON")


def test_every_field_names_a_known_type_and_numbers_are_unique() -> None:
    for message in messages().values():
        numbers = [field.number for field in message.fields]
        assert len(set(numbers)) == len(numbers), message.name
        for field in message.fields:
            assert field.type in SCALARS or field.type in messages(), (message.name, field.name)
    assert set(messages()) >= FORMS


def test_schemas_carry_patch_and_apply_facts() -> None:
    service = schema_of("core.v1.Service").fields["spec"]
    ports = service.fields["ports"]
    assert (ports.patch, ports.merge_key) == (Patch.MERGE, "port")
    assert (ports.list_type, ports.list_keys) == (ListType.MAP, ("port", "protocol"))
    assert service.fields["selector"].atomic
    assert service.ref == "io.k8s.api.core.v1.ServiceSpec"
    pod = schema_of("core.v1.PodSpec")
    assert pod.fields["volumes"].patch is Patch.MERGE_RETAIN_KEYS
    assert pod.required == ("containers",)
    assert pod.fields["tolerations"].list_type is ListType.ATOMIC
    meta = schema_of("meta.v1.ObjectMeta")
    assert meta.fields["finalizers"].list_type is ListType.SET
    assert meta.fields["ownerReferences"].list_keys == ("uid",)
    assert schema_of("meta.v1.LabelSelector").atomic
    assert schema_of("apps.v1.DeploymentSpec").fields["strategy"].patch is Patch.RETAIN_KEYS


def test_schemas_know_forms_roots_and_recursion() -> None:
    deployment = schema_of("apps.v1.Deployment")
    assert {"apiVersion", "kind"} <= set(deployment.fields)
    template = deployment.fields["spec"].fields["template"]
    assert set(template.fields) == {"metadata", "spec"}
    props = schema_of("apiextensions.v1.JSONSchemaProps")
    assert props.fields["not"].fields["properties"].type is Type.MAP
    secret = schema_of("core.v1.Secret").fields["data"]
    assert secret.values is not None
    assert secret.values.type is Type.BYTES
    volume = schema_of("core.v1.Volume")
    assert {"name", "emptyDir", "configMap"} <= set(volume.fields)
    assert schema_of("core.v1.EphemeralContainer").required == ("name",)
    with pytest.raises(KeyError):
        schema_of("core.v1.Elephant")
