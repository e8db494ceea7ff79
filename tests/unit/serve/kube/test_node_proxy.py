"""What is passed on to nodes and pods: paths, rights, names, addresses."""

from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, MethodNotAllowed, NotFound, Unavailable
from isthmus.model.kind import Document
from isthmus.serve.kube.node_proxy import kubelet_of, pod_target, proxyable, rest_of
from isthmus.serve.kube.routes import Target, parse, verb

POD = "/api/v1/namespaces/ns/pods/p"


def target(path: str) -> Target:
    found = parse(path)
    assert isinstance(found, Target)
    return found


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (f"{POD}/proxy", "/"),
        (f"{POD}/proxy/", "/"),
        (f"{POD}/proxy/a//b/%2e%2e/c?x=%20", "/a//b/%2e%2e/c?x=%20"),
        (f"{POD}:8080/proxy/metrics", "/metrics"),
    ],
)
def test_what_follows_proxy_is_the_pods_own_business(path: str, rest: str) -> None:
    found = target(path.partition("?")[0])
    assert (found.resource, found.subresource) == ("pods", "proxy")
    assert found.name in {"p", "p:8080"}
    assert rest_of(path) == rest


@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/ns/services/s/proxy/x", f"{POD}/log/x", "/api/v1/nodes/n/proxy/x/y"],
)
def test_nothing_else_has_a_path_behind_it(path: str) -> None:
    with pytest.raises(NotFound):
        parse(path)


def test_a_proxied_path_does_not_hide_another_pod() -> None:
    assert target(f"{POD}/proxy/../../other/proxy/x").name == "p"
    with pytest.raises(BadRequest):
        parse("/api/v1/namespaces/ns/pods/../proxy/x")


@pytest.mark.parametrize(
    ("method", "subresource", "asked"),
    [
        ("GET", "log", "get"),
        ("GET", "exec", "create"),
        ("POST", "exec", "create"),
        ("GET", "attach", "create"),
        ("GET", "portforward", "create"),
        ("GET", "proxy", "get"),
        ("POST", "proxy", "create"),
        ("PUT", "proxy", "update"),
        ("DELETE", "proxy", "delete"),
    ],
)
def test_rights_are_asked_for_what_is_done(method: str, subresource: str, asked: str) -> None:
    """Who may only read pods/exec may not run commands, although the request is a GET."""
    assert verb(method, target(f"{POD}/{subresource}"), watching=False) == asked


def test_methods_that_mean_nothing() -> None:
    with pytest.raises(MethodNotAllowed):
        verb("PUT", target(f"{POD}/exec"), watching=False)
    with pytest.raises(MethodNotAllowed):
        verb("POST", target(f"{POD}/log"), watching=False)


def test_names_of_pods_with_scheme_and_port() -> None:
    assert pod_target("p") == ("http", "p", "")
    assert pod_target("p:80") == ("http", "p", "80")
    assert pod_target("https:p:web") == ("https", "p", "web")
    for wrong in ("", ":80", "a:b:c", "https::1"):
        with pytest.raises(BadRequest):
            pod_target(wrong)


ELSEWHERE = [
    "169.254.169.254", "0.0.0.0", "0.0.0.1", "224.0.0.1", "fe80::1", "localhost", "fd00::1%eth0",
    "::ffff:169.254.169.254", "::ffff:0:0", "2130706433", "0x7f000001", "127.1", "::",
    "240.0.0.1", "255.255.255.255", "::ffff:240.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::a00:1", "::7f00:1", "::10.0.0.1",
    "2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fec0::1", "ff02::1",
]  # fmt: skip
"""What no node and no pod has."""


@pytest.mark.parametrize(
    "address", [*ELSEWHERE, "127.0.0.1", "127.55.1.1", "::1", "::ffff:127.0.0.1"]
)
def test_an_address_in_a_status_leads_to_no_other_place(address: str) -> None:
    with pytest.raises(BadRequest):
        proxyable(address, "p")


def node(address: str, port: int = 0) -> Document:
    endpoint = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}} if port else {}
    addresses = [{"type": "InternalIP", "address": address}]
    return {"metadata": {"name": "n"}, "status": {"addresses": addresses, **endpoint}}


@pytest.mark.parametrize("address", ELSEWHERE)
def test_a_node_leads_to_no_other_place(address: str) -> None:
    with pytest.raises(BadRequest):
        kubelet_of(node(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.55.1.1", "::1", "::ffff:127.0.0.1"])
def test_on_this_machine_only_a_kubelet_is_reached(address: str) -> None:
    """A lab's nodes may live on loopback, and so do a server's other listeners."""
    assert kubelet_of(node(address)).endswith(":10250")
    for port in (6443, 8080, 9990, 22):
        with pytest.raises(BadRequest):
            kubelet_of(node(address, port))


@pytest.mark.parametrize("port", [-1, 65536, 10**12])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(BadRequest):
        kubelet_of(node("10.0.0.1", port))


def test_an_address_that_is_not_there_yet() -> None:
    with pytest.raises(Unavailable):
        proxyable("", "p")
    assert proxyable("10.55.1.2", "p") == "10.55.1.2"
    assert proxyable("::ffff:10.55.1.2", "p") == "10.55.1.2"


def test_where_a_kubelet_listens() -> None:
    addresses = [
        {"type": "Hostname", "address": "n"},
        {"type": "InternalIP", "address": "10.0.0.1"},
    ]
    named = {"metadata": {"name": "n"}, "status": {"addresses": addresses}}
    assert kubelet_of(named) == "10.0.0.1:10250"
    endpoints = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}}}
    v6 = {"status": {"addresses": [{"type": "InternalIP", "address": "fd00::1"}], **endpoints}}
    assert kubelet_of(v6) == "[fd00::1]:1234"
    for nowhere in ([], addresses[:1]):  # a name is not looked up
        with pytest.raises(Unavailable, match="node n has no address"):
            kubelet_of({"metadata": {"name": "n"}, "status": {"addresses": nowhere}})
