from __future__ import annotations

import pytest

from isthmus.model.gateway import GATEWAY
from tests.unit.model.mesh import converted, kind_of, of, paths, seen, stored, told

API = "gateway.networking.k8s.io/v1"


def gateway(listeners: str, more: str = "") -> dict[str, object]:
    return of(API, "Gateway", f"{{gatewayClassName: c, listeners: [{listeners}]{more}}}")


def test_a_gateway_gets_its_defaults() -> None:
    made = stored(gateway("{name: web, port: 80, protocol: HTTP}"))
    assert made["spec"]["listeners"][0]["allowedRoutes"] == {"namespaces": {"from": "Same"}}
    assert [each["type"] for each in made["status"]["conditions"]] == ["Accepted", "Programmed"]
    assert seen(made).spec.listeners[0].allowed_routes.namespaces.from_ == "Same"


@pytest.mark.parametrize(
    ("listeners", "said"),
    [
        ("{name: a, port: 80, protocol: HTTP, tls: {certificateRefs: [{name: s}]}}",
         "tls must not be specified"),
        ("{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}", "must be Terminate"),
        ("{name: a, port: 443, protocol: TLS}", "tls mode must be set"),
        ("{name: a, port: 443, protocol: HTTPS, tls: {mode: Terminate}}", "certificateRefs or"),
        ("{name: a, port: 25, protocol: TCP, hostname: a.b}", "hostname must not be specified"),
        ("{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}", "unique"),
        ("{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}", "Duplicate"),
        ("{name: a, port: 0, protocol: HTTP}", "greater than or equal to 1"),
        ("{name: a, port: 80, protocol: HTTP, hostname: A}", "should match"),
        ("", "at least 1"),
    ],
)  # fmt: skip
def test_bad_listeners(listeners: str, said: str) -> None:
    found = told(gateway(listeners))
    assert any(said in each for each in found), found


def test_good_listeners() -> None:
    listeners = (
        "{name: a, port: 80, protocol: HTTP}",
        "{name: b, port: 80, protocol: HTTP, hostname: b.c}",
        "{name: c, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}",
        "{name: d, port: 444, protocol: TLS, tls: {mode: Passthrough}}",
        "{name: e, port: 53, protocol: example.org/DNS}",
    )
    assert told(gateway(", ".join(listeners))) == []


def test_addresses() -> None:
    one = "{name: a, port: 80, protocol: HTTP}"
    assert told(gateway(one, ", addresses: [{value: 10.0.0.1}, {type: Hostname, value: a}]")) == []
    assert paths(gateway(one, ", addresses: [{value: a}]")) == ["spec.addresses[0].value"]
    twice = ", addresses: [{value: 10.0.0.1}, {value: 10.0.0.1}]"
    assert paths(gateway(one, twice)) == ["spec.addresses"]


def test_columns_of_gateways() -> None:
    made = stored(gateway("{name: a, port: 80, protocol: HTTP}"))
    made["status"]["addresses"] = [{"value": "10.0.0.1"}]
    cells = {each.name: each.cell(made, 0.0) for each in GATEWAY.versions[0].columns}
    assert cells["Class"] == "c"
    assert cells["Address"] == "10.0.0.1"
    assert cells["Programmed"] == "Unknown"


def test_the_controller_of_a_class_never_changes() -> None:
    written = of(API, "GatewayClass", "{controllerName: isthmus.dev/gateway}", namespace="")
    del written["metadata"]["namespace"]
    assert told(written) == []
    other = {**written, "spec": {"controllerName": "example.org/other"}}
    assert told(other, stored(written))[0].startswith("spec.controllerName: ")
    assert "immutable" in told(other, stored(written))[0]
    assert paths({**written, "spec": {"controllerName": "isthmus"}}) == ["spec.controllerName"]
    assert not kind_of(written).namespaced


def test_grants() -> None:
    spec = "{from: [{group: a.b, kind: HTTPRoute, namespace: n}], to: [{group: '', kind: Secret}]}"
    written = of(API, "ReferenceGrant", spec)
    assert told(written) == []
    assert converted(written, "v1beta1")["spec"] == written["spec"]
    view = seen({**written, "apiVersion": "gateway.networking.k8s.io/v1beta1"})
    assert view.spec.from_[0].namespace == "n"
    assert view.spec.to[0].kind == "Secret"
    assert not kind_of(written).status
    assert paths(of(API, "ReferenceGrant", "{from: [], to: []}")) == ["spec.from", "spec.to"]
