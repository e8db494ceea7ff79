"""Our messages are the peers' messages, byte for byte; and the generated code is not stale."""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from isthmus.proto.linkerd import (
    destination_pb2,
    http_types_pb2,
    inbound_pb2,
    meta_pb2,
    net_pb2,
)

ROOT = Path(__file__).resolve().parents[3]
IDENTITY = "web.demo.serviceaccount.identity.linkerd.cluster.local"
SEED = "terminus-svc.default.svc.cluster.local"


def tcp(address: str, port: int) -> net_pb2.TcpAddress:
    """An address as the wire has it: IPv4 as one number, IPv6 as two."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return net_pb2.TcpAddress(ip=net_pb2.IPAddress(ipv4=int(ip)), port=port)
    high, low = divmod(int(ip), 1 << 64)
    return net_pb2.TcpAddress(
        ip=net_pb2.IPAddress(ipv6=net_pb2.IPv6(first=high, last=low)), port=port
    )


def meshed_address() -> destination_pb2.Update:
    """One endpoint of a meshed pod, told with everything that a proxy needs."""
    name = destination_pb2.TlsIdentity.DnsLikeIdentity(name=IDENTITY)
    hint = destination_pb2.ProtocolHint(
        h2=destination_pb2.ProtocolHint.H2(),
        opaque_transport=destination_pb2.ProtocolHint.OpaqueTransport(inbound_port=4143),
    )
    address = destination_pb2.WeightedAddr(
        addr=tcp("10.42.0.53", 8080),
        weight=10000,
        metric_labels={"pod": "web-0"},
        tls_identity=destination_pb2.TlsIdentity(dns_like_identity=name, server_name=name),
        protocol_hint=hint,
    )
    return destination_pb2.Update(
        add=destination_pb2.WeightedAddrSet(addrs=[address], metric_labels={"service": "web"})
    )


def no_endpoints(*, exists: bool) -> destination_pb2.Update:
    """The empty set, which is not an empty message."""
    return destination_pb2.Update(no_endpoints=destination_pb2.NoEndpoints(exists=exists))


def default_profile() -> destination_pb2.DestinationProfile:
    """The profile of a service without ServiceProfile, as early proxies saw it."""
    return destination_pb2.DestinationProfile(
        fully_qualified_name=SEED,
        opaque_protocol=True,
        retry_budget=destination_pb2.RetryBudget(
            retry_ratio=0.2, min_retries_per_second=10, ttl=Duration(seconds=10)
        ),
        dst_overrides=[destination_pb2.WeightedDst(authority=f"{SEED}.:8080", weight=10000)],
    )


VECTORS: list[tuple[str, Message, str]] = [
    (
        "request",
        destination_pb2.GetDestination(
            path="web.demo.svc.cluster.local:8080",
            context_token='{"ns":"demo","nodeName":"n1","pod":"web-0"}\n',
        ),
        (
            "121f7765622e64656d6f2e7376632e636c75737465722e6c6f63616c3a383038301a2c7b226e73223a2264656d6f"
            "222c226e6f64654e616d65223a226e31222c22706f64223a227765622d30227d0a"
        ),
    ),
    ("ipv4", tcp("10.42.0.53", 8080), "0a050d35002a0a10903f"),
    ("ipv6", tcp("2001:db8::94", 8080), "0a1412120900000000b80d012011940000000000000010903f"),
    (
        "add",
        meshed_address(),
        (
            "0aaf010a9c010a0a0a050d35002a0a10903f18904e220c0a03706f6412057765622d302a740a380a367765622e64"
            "656d6f2e736572766963656163636f756e742e6964656e746974792e6c696e6b6572642e636c75737465722e6c6f"
            "63616c22380a367765622e64656d6f2e736572766963656163636f756e742e6964656e746974792e6c696e6b6572"
            "642e636c75737465722e6c6f63616c32070a00120308af20120e0a07736572766963651203776562"
        ),
    ),
    (
        "remove",
        destination_pb2.Update(remove=destination_pb2.AddrSet(addrs=[tcp("10.42.0.53", 8080)])),
        "120c0a0a0a050d35002a0a10903f",
    ),
    ("empty", no_endpoints(exists=True), "1a020801"),
    ("absent", no_endpoints(exists=False), "1a00"),
    (
        "profile",
        default_profile(),
        (
            "120b0dcdcc4c3e100a1a02080a1a310a2c7465726d696e75732d7376632e64656661756c742e7376632e636c7573"
            "7465722e6c6f63616c2e3a3830383010904e20012a267465726d696e75732d7376632e64656661756c742e737663"
            "2e636c75737465722e6c6f63616c"
        ),
    ),
    (
        "opaque hint",
        destination_pb2.ProtocolHint(
            opaque=destination_pb2.ProtocolHint.Opaque(),
            opaque_transport=destination_pb2.ProtocolHint.OpaqueTransport(inbound_port=4143),
        ),
        "120308af201a00",
    ),
    (
        "http2 parameters",
        destination_pb2.Http2ClientParams(
            keep_alive=destination_pb2.Http2ClientParams.KeepAlive(
                interval=Duration(seconds=10), timeout=Duration(seconds=3), while_idle=True
            )
        ),
        "120a0a02080a120208031801",
    ),
    (
        "enum zero in a oneof",
        http_types_pb2.HttpMethod(registered=http_types_pb2.HttpMethod.GET),
        "0800",
    ),
    (
        "metadata",
        meta_pb2.Metadata(
            resource=meta_pb2.Resource(
                group="core", kind="Service", namespace="demo", name="web", port=8080
            )
        ),
        "121d0a04636f72651207536572766963651a03776562220464656d6f30903f",
    ),
    (
        "inbound port",
        inbound_pb2.PortSpec(workload='{"ns":"demo","pod":"web-0"}', port=8080),
        "0a1b7b226e73223a2264656d6f222c22706f64223a227765622d30227d10903f",
    ),
]


@pytest.mark.parametrize(("message", "wire"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS])
def test_bytes_are_the_peers(message: Message, wire: str) -> None:
    """The vectors were recorded from the peers' own descriptors."""
    assert message.SerializeToString(deterministic=True).hex() == wire
    assert type(message).FromString(bytes.fromhex(wire)) == message


def test_generated_code_is_not_stale(tmp_path: Path) -> None:
    """Generating anew gives what is committed."""
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "proto.py"), str(tmp_path)], check=True, timeout=60
    )
    made = {path.relative_to(tmp_path): path for path in tmp_path.rglob("*_pb2.py*")}
    assert made, "nothing was generated"
    kept = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*_pb2.py*")}
    assert made.keys() == kept
    for name, path in made.items():
        assert path.read_text() == (ROOT / "src" / name).read_text(), f"{name}: run `make proto`"
