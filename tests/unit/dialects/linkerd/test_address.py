from __future__ import annotations

from isthmus.dialects.linkerd.address import duration, http2_params, weighted_addr
from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Speaks
from isthmus.ir.names import Dns, Spiffe
from isthmus.mesh.settings import Http2Params
from isthmus.proto.linkerd import destination_pb2 as pb

HTTP2 = Http2Params(ping_interval=10_000, ping_timeout=3_000, ping_while_idle=True)
IDENTITY = "web.demo.serviceaccount.identity.linkerd.cluster.local"
MESHED = Endpoint(
    address="10.42.0.53",
    port=8080,
    identity=Dns(IDENTITY),
    server_name=IDENTITY,
    reach=LinkerdOpaque(4143),
    speaks=Speaks.HTTP2,
    labels=(("pod", "web-0"),),
    meshed=True,
)


def test_everything_of_a_meshed_endpoint() -> None:
    """Bytes as linkerd2-proxy-api's own encoder makes them."""
    wire = weighted_addr(MESHED, None).SerializeToString(deterministic=True)
    identity = f"380a36{IDENTITY.encode().hex()}"
    assert wire.hex() == (
        "0a0a0a050d35002a0a10903f18904e220c0a03706f6412057765622d30"
        f"2a740a{identity[:2]}{identity[2:]}22{identity}32070a00120308af20"
    )


def test_a_plain_endpoint_says_nothing_more_than_its_address() -> None:
    wire = weighted_addr(Endpoint(address="10.42.0.53", port=8080), HTTP2)
    assert wire.SerializeToString().hex() == "0a0a0a050d35002a0a10903f18904e"


def test_hints() -> None:
    def hint(speaks: Speaks, *, meshed: bool = True) -> str | None:
        found = Endpoint(address="10.0.0.1", port=1, speaks=speaks, meshed=meshed)
        wire = weighted_addr(found, None)
        return (
            wire.protocol_hint.SerializeToString().hex() if wire.HasField("protocol_hint") else None
        )

    assert hint(Speaks.HTTP2) == "0a00"
    assert hint(Speaks.OPAQUE) == "1a00"
    assert hint(Speaks.UNKNOWN) == ""
    assert hint(Speaks.UNKNOWN, meshed=False) is None


def test_an_opaque_port_is_dialled_through_the_inbound_port() -> None:
    found = Endpoint(
        address="10.0.0.1", port=1, speaks=Speaks.OPAQUE, reach=LinkerdOpaque(4143), meshed=True
    )
    assert weighted_addr(found, None).protocol_hint.SerializeToString().hex() == "120308af201a00"


def test_identities_are_names_or_uris() -> None:
    uri = Endpoint(address="10.0.0.1", port=1, identity=Spiffe("r", ("vm",)), server_name="vm")
    wire = weighted_addr(uri, None).tls_identity
    assert wire.uri_like_identity.uri == "spiffe://r/vm"
    assert wire.server_name.name == "vm"
    gateway = Endpoint(address="10.0.0.1", port=1, identity=Dns("gw"), authority="cart.shop:80")
    address = weighted_addr(gateway, None)
    assert address.tls_identity.dns_like_identity.name == "gw"
    assert not address.tls_identity.HasField("server_name")
    assert address.authority_override.authority_override == "cart.shop:80"


def test_weights_are_ten_thousandths() -> None:
    assert weighted_addr(Endpoint(address="10.0.0.1", port=1, weight=10), None).weight == 100_000


def test_http2_is_for_those_with_a_proxy() -> None:
    assert weighted_addr(MESHED, HTTP2).http2.SerializeToString().hex() == (
        "120a0a02080a120208031801"
    )
    assert not weighted_addr(MESHED, None).HasField("http2")


def test_half_a_setting_is_none() -> None:
    assert http2_params(Http2Params(ping_interval=10_000)) == pb.Http2ClientParams()
    assert http2_params(Http2Params(connection_window=10)) == pb.Http2ClientParams()
    both = http2_params(Http2Params(connection_window=10, stream_window=5))
    assert both.flow_control.initial_connection_window_size == 10
    assert http2_params(Http2Params(adaptive_window=True)).flow_control.adaptive_flow_control


def test_durations() -> None:
    assert (duration(1500).seconds, duration(1500).nanos) == (1, 500_000_000)
