"""The listener, over real sockets: who may come how, and whose certificate is believed."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue, StringValue

from isthmus.ca import Account, Leaf, request, server_leaf, tls
from isthmus.ca.request import make_key
from isthmus.proto.linkerd import identity_pb2 as pb
from isthmus.serve.identity.contract import NOBODY
from tests.support.identities import REALM, Plane, certify, serving
from tests.support.trusts import ordinary

FACE = REALM.name(Account("faces", "face"))
HOST = REALM.host_uri("vm-1")
ANYWHERE = "0.0.0.0"
PATIENCE = 30.0


def secure(at: str, bundle: bytes, leaf: Leaf | None = None) -> grpc.aio.Channel:
    """A channel that trusts the mesh, and shows a certificate."""
    key, chain = (leaf.key, leaf.certificate) if leaf else (None, None)
    credentials = grpc.ssl_channel_credentials(bundle, key, chain)
    options = [("grpc.ssl_target_name_override", REALM.server_name)]
    return grpc.aio.secure_channel(at.replace(ANYWHERE, "127.0.0.1"), credentials, options)


async def joined(plane: Plane) -> Leaf:
    """The leaf of a host that was invited."""
    key = make_key()
    token = (await plane.invite("vm-1")).token.encode()
    signing = request.make(key, HOST)
    made = await plane.certifier.certify(HOST, token, signing, NOBODY)
    return Leaf(made.pem, request.key_pem(key), made.until)


async def refused(channel: grpc.aio.Channel, token: bytes) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await certify(channel, FACE, token, request.make(make_key(), FACE))
    return caught.value.code()


def leaf_of(answer: pb.CertifyResponse) -> bytes:
    return answer.leaf_certificate


async def test_plain_text_on_loopback() -> None:
    plane = Plane()
    token = plane.token(await plane.account("faces", "face"))
    async with serving(plane) as at, grpc.aio.insecure_channel(at) as channel:
        answer = await certify(channel, FACE, token, request.make(make_key(), FACE))
        held = await plane.keeper.trust()
        assert answer.valid_until.ToDatetime().timestamp() > 0
        assert len(answer.intermediate_certificates) == len(held.intermediates) == 0
        assert await refused(channel, b"a.b.c") is grpc.StatusCode.FAILED_PRECONDITION
        assert await refused(channel, b"") is grpc.StatusCode.INVALID_ARGUMENT


async def test_no_plain_text_off_loopback() -> None:
    plane = Plane()
    token = plane.token(await plane.account("faces", "face"))
    async with serving(plane, ANYWHERE) as at:
        async with grpc.aio.insecure_channel(at.replace(ANYWHERE, "127.0.0.1")) as channel:
            assert await refused(channel, token) is grpc.StatusCode.UNAVAILABLE
        bundle = (await plane.keeper.trust()).bundle
        async with secure(at, bundle) as channel:
            assert leaf_of(await certify(channel, FACE, token, request.make(make_key(), FACE)))


async def test_a_host_is_known_by_its_certificate() -> None:
    plane = Plane()
    await plane.pod("faces", "here", "face", "vm-1")
    leaf = await joined(plane)
    bundle = (await plane.keeper.trust()).bundle
    async with serving(plane) as at:
        async with secure(at, bundle, leaf) as channel:
            signing = request.make(make_key(), FACE)
            assert leaf_of(await certify(channel, FACE, b"pod/faces/here", signing))
        async with secure(at, bundle) as channel:  # without the certificate it is nobody
            assert await refused(channel, b"pod/faces/here") is grpc.StatusCode.INVALID_ARGUMENT


async def tell(channel: grpc.aio.Channel, method: str, path: str) -> bytes:
    call: Any = channel.unary_unary(
        f"/isthmus.identity.v1.Workloads/{method}",
        StringValue.SerializeToString,
        BytesValue.FromString,
    )
    answer: BytesValue = await call(StringValue(value=path), timeout=PATIENCE)
    return answer.value


async def test_a_host_tells_who_leaves_and_hears_whether_all_know() -> None:
    plane = Plane()
    leaf = await joined(plane)
    metadata = {"namespace": "faces", "name": "db", "annotations": {"isthmus.dev/host": "vm-1"}}
    await plane.apply(
        {
            "apiVersion": "workload.linkerd.io/v1beta1",
            "kind": "ExternalWorkload",
            "metadata": metadata,
            "spec": {
                "meshTLS": {"identity": FACE, "serverName": "x.example"},
                "workloadIPs": [{"ip": "192.0.2.1"}],
            },
        }
    )
    bundle = (await plane.keeper.trust()).bundle
    async with serving(plane, ANYWHERE) as at:
        async with secure(at, bundle, leaf) as channel:
            for method in ("Leave", "Stay"):
                assert await tell(channel, method, "faces/db") == b'{"known":true,"behind":[]}'
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await tell(channel, "Leave", "faces/none")
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        async with secure(at, bundle) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await tell(channel, "Leave", "faces/db")
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_workloads_certificate_is_no_hosts() -> None:
    """Also one that has a host's id beside its own name: only what hosts get counts."""
    plane = Plane()
    await plane.pod("faces", "here", "face", "vm-1")
    await joined(plane)
    held = await plane.keeper.trust()
    async with serving(plane) as at:
        for names in ((FACE, REALM.uri(Account("faces", "face"))), (FACE, HOST)):
            leaf = server_leaf(held, names, now=plane.clock.utc())
            async with secure(at, held.bundle, leaf) as channel:
                assert await refused(channel, b"pod/faces/here") is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_certificate_of_another_mesh_is_refused() -> None:
    plane = Plane()
    await plane.pod("faces", "here", "face", "vm-1")
    await joined(plane)
    foreign = ordinary(plane.clock.utc())
    leaf = server_leaf(foreign, (HOST,), now=plane.clock.utc())
    bundle = (await plane.keeper.trust()).bundle
    async with serving(plane) as at, secure(at, bundle, leaf) as channel:
        assert await refused(channel, b"pod/faces/here") is grpc.StatusCode.UNAVAILABLE


async def test_a_client_without_alpn_is_served() -> None:
    """linkerd2-proxy offers none; HTTP/2 begins with the client's preface and our SETTINGS."""
    plane = Plane()
    bundle = (await plane.keeper.trust()).bundle
    context = tls.client(None, bundle, alpn=())
    async with serving(plane, ANYWHERE) as at:
        port = int(at.rpartition(":")[2])
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=REALM.server_name
        )
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        async with asyncio.timeout(PATIENCE):  # noqa: TID251  # a real socket's time
            header = await reader.readexactly(9)
        assert header[3] == 4  # SETTINGS
        writer.close()


async def test_a_server_that_is_not_the_meshs_is_not_believed() -> None:
    plane = Plane()
    async with serving(plane, ANYWHERE) as at:
        port = int(at.rpartition(":")[2])
        context = tls.client(None, ordinary(plane.clock.utc()).bundle, alpn=("h2",))
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname=REALM.server_name
            )


async def test_anchors_are_told_now_and_when_they_change() -> None:
    plane = Plane()
    first = await plane.keeper.trust()
    async with serving(plane) as at, grpc.aio.insecure_channel(at) as channel:
        watch: Any = channel.unary_stream(
            "/isthmus.identity.v1.Anchors/Watch", None, BytesValue.FromString
        )
        stream = watch(b"")
        assert (await stream.read()).value == first.bundle
        second = ordinary(plane.clock.utc())
        plane.keeper.now.set(second)
        assert (await stream.read()).value == second.bundle
        stream.cancel()


async def test_an_issuer_swap_drops_no_connection() -> None:
    """The same connection, before and after; new handshakes see the new certificate."""
    plane = Plane()
    token = plane.token(await plane.account("faces", "face"))
    first = await plane.keeper.trust()
    async with serving(plane) as at, secure(at, first.bundle) as channel:
        before = await certify(channel, FACE, token, request.make(make_key(), FACE))
        second = ordinary(plane.clock.utc())
        plane.keeper.now.set(second)
        after = await certify(channel, FACE, token, request.make(make_key(), FACE))
        assert len(before.intermediate_certificates) == 0
        assert len(after.intermediate_certificates) == 1
        async with secure(at, second.bundle) as another:
            assert leaf_of(await certify(another, FACE, token, request.make(make_key(), FACE)))


async def test_the_shelf_is_followed() -> None:
    """Somebody replaces the Secret, as a rotation does: the next leaf is of the new issuer."""
    plane = Plane()
    await plane.keeper.trust()
    running = asyncio.get_running_loop().create_task(plane.keeper.run())
    second = ordinary(plane.clock.utc())
    with plane.keeper.now.watch() as watch:
        await watch.next()
        await plane.swap(second)
        async with asyncio.timeout(PATIENCE):  # noqa: TID251
            while (held := await watch.next()) is None or held.issuer != second.issuer:
                pass
    running.cancel()
