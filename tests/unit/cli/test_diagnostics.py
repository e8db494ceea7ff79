"""What `isthmus diagnostics` makes of messages, and of kubeconfigs."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from isthmus.cli import gojson
from isthmus.cli.cluster import Cluster
from isthmus.cli.commands.diagnostics_client import ApiError, go_name
from isthmus.cli.commands.diagnostics_endpoints import Row, added, change, tables, told
from isthmus.cli.kubeconfig import Access, load
from isthmus.errors import NotFound, Unavailable, UserFault
from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.proto.linkerd import http_types_pb2, net_pb2

# ------------------------------------------------------------------------- Go's JSON


def test_oneofs_stand_under_their_go_names() -> None:
    address = net_pb2.TcpAddress(ip=net_pb2.IPAddress(ipv4=170524725), port=8080)
    assert gojson.struct(address) == {"ip": {"Ip": {"Ipv4": 170524725}}, "port": 8080}
    assert gojson.struct(net_pb2.IPAddress()) == {"Ip": None}
    assert gojson.struct(net_pb2.IPAddress(ipv4=0)) == {"Ip": {"Ipv4": 0}}
    assert gojson.struct(pb.ProtocolHint(h2=pb.ProtocolHint.H2())) == {"Protocol": {"H2": {}}}


def test_fields_keep_their_order_and_zeros_are_left_out() -> None:
    profile = pb.DestinationProfile(
        fully_qualified_name="a.b",
        retry_budget=pb.RetryBudget(retry_ratio=0.2, min_retries_per_second=10),
        dst_overrides=[pb.WeightedDst(authority="x:1", weight=3), pb.WeightedDst()],
    )
    profile.retry_budget.ttl.seconds = 10
    said = gojson.struct(profile)
    assert list(said) == ["fully_qualified_name", "retry_budget", "dst_overrides"]
    assert said["retry_budget"] == {
        "retry_ratio": 0.2,
        "min_retries_per_second": 10,
        "ttl": {"seconds": 10},
    }
    assert said["dst_overrides"] == [{"authority": "x:1", "weight": 3}, {}]
    assert gojson.struct(pb.DestinationProfile(opaque_protocol=True)) == {"opaque_protocol": True}


def test_enums_are_numbers_and_maps_sorted() -> None:
    method = http_types_pb2.HttpMethod(registered=http_types_pb2.HttpMethod.GET)
    assert gojson.struct(method) == {"Type": {"Registered": 0}}
    address = pb.WeightedAddr(metric_labels={"b": "2", "a": "1"})
    assert list(gojson.struct(address)["metric_labels"].items()) == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.2, "0.2"), (1.0, "1"), (0.333333343, "0.33333334"), (1e-5, "1e-05")]
)
def test_floats_are_as_short_as_32_bits_allow(ratio: float, text: str) -> None:
    said = gojson.struct(pb.RetryBudget(retry_ratio=ratio))
    assert gojson.dumps(said["retry_ratio"]) == text


def test_what_browsers_might_take_for_markup_is_escaped() -> None:
    assert gojson.dumps({"a": "<&>\u2028ö"}, indent=None) == '{"a":"\\u003c\\u0026\\u003e\\u2028ö"}'


# ------------------------------------------------------------------------- endpoints


def row(namespace: str, ip: str, port: int, pod: str, service: str) -> Row:
    return Row(namespace, ip, port, pod, f"{service}.{namespace}", 1, None, {})


def test_tables_are_as_wide_as_the_widest_of_all_where_columns_are_shared() -> None:
    text = tables(
        [row("a", "10.1.0.1", 80, "x", "s"), row("bbbbbbbbbbb", "::1", 8080, "yyyyy", "t")]
    )
    assert text == (
        "NAMESPACE     IP         PORT   POD     SERVICE\n"
        "a             10.1.0.1   80     x       s.a\n"
        "\n"
        "NAMESPACE     IP    PORT   POD     SERVICE\n"
        "bbbbbbbbbbb   ::1   8080   yyyyy   t.bbbbbbbbbbb\n"
    )


def update() -> pb.Update:
    address = pb.WeightedAddr(weight=5, metric_labels={"pod": "shop/web-0"})
    address.addr.ip.ipv6.first, address.addr.ip.ipv6.last = 0x20010DB8 << 32, 0xA
    address.addr.port = 80
    address.authority_override.authority_override = "web.shop:80"
    address.protocol_hint.opaque_transport.inbound_port = 4143
    address.protocol_hint.opaque.SetInParent()
    address.tls_identity.uri_like_identity.uri = "spiffe://x"
    labels = {"service": "web", "namespace": "shop"}
    return pb.Update(add=pb.WeightedAddrSet(addrs=[address], metric_labels=labels))


def test_an_added_address() -> None:
    [found] = added(update())
    assert found == Row(
        "shop", "2001:db8::a", 80, "web-0", "web.shop", 5, None, {"pod": "shop/web-0"}
    )
    assert "http2" not in found.shown
    [line] = told(update())
    assert line == (
        "+ [2001:db8::a]:80  web.shop  pod=web-0 weight=5 identity=spiffe://x hint=opaque"
        " transport=4143 authority=web.shop:80"
    )
    assert change(update())["add"][0]["ip"] == "2001:db8::a"


def test_other_updates() -> None:
    gone = pb.Update(remove=pb.AddrSet(addrs=[update().add.addrs[0].addr]))
    assert told(gone) == ["- [2001:db8::a]:80"]
    assert change(gone) == {"remove": ["[2001:db8::a]:80"]}
    nobody = pb.Update(no_endpoints=pb.NoEndpoints(exists=True))
    assert told(nobody) == ["no endpoints"]
    assert told(pb.Update(no_endpoints=pb.NoEndpoints())) == ["no such service"]
    assert change(nobody) == {"no_endpoints": {"exists": True}}
    assert (told(pb.Update()), change(pb.Update()), added(nobody)) == ([], {}, [])


@pytest.mark.parametrize(
    ("code", "name"),
    [("INVALID_ARGUMENT", "InvalidArgument"), ("CANCELLED", "Canceled"), ("OK", "OK")],
)
def test_statuses_are_named_as_in_go(code: str, name: str) -> None:
    assert go_name(grpc.StatusCode[code]) == name
    whole = ApiError(grpc.StatusCode[code], "why").whole
    assert whole == f"rpc error: code = {name} desc = why"


# ------------------------------------------------------------------------- kubeconfigs


def config(tmp_path: Path, text: str, name: str = "config") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


EAST = """
current-context: east
contexts:
- {name: east, context: {cluster: c, user: u, namespace: shop}}
- {name: bare, context: {cluster: c}}
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443/", certificate-authority: ca.pem}}
users:
- {name: u, user: {tokenFile: token, client-certificate-data: %s}}
""" % base64.b64encode(b"PEM").decode()  # noqa: UP031 - braces are YAML's here


def test_a_context_is_a_server_and_credentials(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    (tmp_path / "token").write_text("secret\n")
    read = load(config(tmp_path, EAST))
    assert read.access() == Access(
        "east", "https://10.0.0.1:6443", "shop", "CA", certificate="PEM", token="secret"
    )
    assert read.access("bare") == Access("bare", "https://10.0.0.1:6443", authority="CA")


def test_of_several_files_the_first_wins(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    first = config(
        tmp_path,
        "contexts: [{name: east, context: {cluster: d}}]\n"
        "clusters: [{name: d, cluster: {server: http://d}}]\n",
        "first",
    )
    read = load(f"{first}:{tmp_path / 'none'}:{config(tmp_path, EAST)}")
    assert read.access().server == "http://d"
    assert sorted(read.contexts) == ["bare", "east"]


NAMED = "current-context: x\ncontexts: [{name: x, context: {cluster: y}}]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid YAML"),
        ("contexts: []", "has no current context; choose one with --context"),
        ("current-context: x", "there is no context 'x'"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: y}}]",
            "there is no cluster 'y'",
        ),
        (
            NAMED + "clusters: [{name: y, cluster: {server: ftp://z}}]",
            "names no server",
        ),
        (
            NAMED
            + "clusters: [{name: y, cluster: {server: http://z, certificate-authority-data: '?'}}]",
            "certificate-authority in the kubeconfig is not PEM",
        ),
        (
            NAMED
            + "clusters: [{name: y, cluster: {server: http://z, certificate-authority: none}}]",
            "cannot read certificate-authority none",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserFault) as told:
        load(config(tmp_path, text)).access()
    assert says in told.value.message


def test_no_kubeconfig_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="there is no kubeconfig"):
        load(str(tmp_path / "none"))


# ------------------------------------------------------------------------- the API server


@contextmanager
def api(answers: dict[str, tuple[int, object]]) -> Iterator[Access]:
    """A server that answers paths; bytes as they are, the rest as JSON."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, (404, {"message": f"no {self.path}"}))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Access("east", f"http://127.0.0.1:{server.server_port}", token="t")
        finally:
            server.shutdown()
            thread.join()


ALL = "/api/v1/configmaps?fieldSelector=metadata.name%3Disthmus-endpoints"
ONE = "/api/v1/namespaces/linkerd/configmaps/isthmus-endpoints"


def found(at: str) -> dict[str, object]:
    return {"data": {"destination": at}}


@pytest.mark.parametrize(
    ("at", "seen"),
    [
        ("10.0.0.7:8086", "10.0.0.7:8086"),
        ("0.0.0.0:8086", "127.0.0.1:8086"),
        ("[::]:8086", "127.0.0.1:8086"),
        ("mesh.example:8086", "mesh.example:8086"),
    ],
)
def test_a_listener_is_where_the_config_map_says(at: str, seen: str) -> None:
    with api({ONE: (200, found(at)), ALL: (200, {"items": [found(at)]})}) as access:
        assert Cluster(access).listener("destination", "linkerd") == seen
        assert Cluster(access).listener("destination", None) == seen


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({}, "no /api/v1/configmaps"),
        ({ALL: (200, {"items": []})}, "no ConfigMap isthmus-endpoints in context 'east'"),
        ({ALL: (200, {"items": [{}, {}]})}, "several ConfigMaps"),
        ({ALL: (200, {"items": [{"data": {}}]})}, "does not listen for 'destination'"),
        ({ALL: (403, {"message": "you may not"})}, "you may not"),
        ({ALL: (200, b"<html>")}, "status 200 and no JSON object"),
    ],
)
def test_why_there_is_no_listener(answers: dict[str, tuple[int, object]], says: str) -> None:
    with api(answers) as access, pytest.raises((UserFault, NotFound)) as told:
        Cluster(access).listener("destination", None)
    assert says in told.value.message


def test_a_namespace_without_a_control_plane() -> None:
    with api({}) as access, pytest.raises(UserFault, match="in namespace 'linkerd' of context"):
        Cluster(access).listener("destination", "linkerd")


def test_nobody_answers() -> None:
    with pytest.raises(Unavailable, match="cannot reach context 'east'"):
        Cluster(Access("east", "https://127.0.0.1:1", insecure=True)).get("/api")


def test_certificates_that_are_none() -> None:
    with pytest.raises(UserFault, match="certificates of context 'east'"):
        Cluster(Access("east", "https://127.0.0.1:1", authority="x")).get("/api")
