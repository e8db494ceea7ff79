"""A real server certifies: tokens from its API, the CA in its store, the rotation of issuers."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from isthmus.aio import SystemClock
from isthmus.ca import Account, Trust, chains, request
from isthmus.ca.request import make_key
from isthmus.proto.linkerd import identity_pb2 as pb
from tests.support.identities import REALM, certify
from tests.support.server import ServerProcess
from tests.support.trusts import ordinary

FACE = REALM.name(Account("faces", "face"))
CORE = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("identity"), "--store", "memory:") as made:
        made.request("POST", CORE, {"metadata": {"name": "faces"}})
        made.request("POST", f"{CORE}/faces/serviceaccounts", {"metadata": {"name": "face"}})
        yield made


def token(server: ServerProcess, audience: str = "identity.l5d.io", **spec: object) -> bytes:
    asked = {"spec": {"audiences": [audience], "expirationSeconds": 600, **spec}}
    path = f"{CORE}/faces/serviceaccounts/face/token"
    status, made = server.request("POST", path, asked)
    assert status == 201, made
    return str(made["status"]["token"]).encode()


async def ask(server: ServerProcess, shown: bytes, identity: str = FACE) -> pb.CertifyResponse:
    async with grpc.aio.insecure_channel(server.endpoints["identity"]) as channel:
        return await certify(channel, identity, shown, request.make(make_key(), identity))


async def refusal(server: ServerProcess, shown: bytes, identity: str = FACE) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(server, shown, identity)
    return caught.value.code()


def anchors(server: ServerProcess) -> tuple[x509.Certificate, ...]:
    status, found = server.request("GET", f"{CORE}/linkerd/configmaps/linkerd-identity-trust-roots")
    assert status == 200, found
    return chains.read_pem(found["data"]["ca-bundle.crt"].encode(), "the ConfigMap")


def way(server: ServerProcess, answer: pb.CertifyResponse) -> tuple[x509.Certificate, ...]:
    """From the leaf to an anchor that the ConfigMap tells."""
    ders = (answer.leaf_certificate, *answer.intermediate_certificates)
    chain = [x509.load_der_x509_certificate(each) for each in ders]
    return chains.path(chain, anchors(server), SystemClock().utc())


async def test_a_pods_token_becomes_a_certificate(server: ServerProcess, tmp_path: Path) -> None:
    answer = await ask(server, token(server))
    leaf, *_ = way(server, answer)
    assert chains.dns_names(leaf) == (FACE,)
    (tmp_path / "leaf.pem").write_bytes(chains.write_pem((leaf,)))
    (tmp_path / "roots.pem").write_bytes(chains.write_pem(anchors(server)))
    said = subprocess.run(  # noqa: ASYNC221  # nothing else runs here
        ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile",
         str(tmp_path / "roots.pem"), str(tmp_path / "leaf.pem")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr


async def test_tokens_that_are_not_for_this(server: ServerProcess) -> None:
    failed = grpc.StatusCode.FAILED_PRECONDITION
    assert await refusal(server, token(server, "https://kubernetes.default.svc")) is failed
    other = REALM.name(Account("faces", "other"))
    assert await refusal(server, token(server), other) is failed
    assert await refusal(server, token(server)[:-4] + b"AAAA") is failed


async def test_a_pods_end_is_its_tokens_end(server: ServerProcess) -> None:
    spec = {"serviceAccountName": "face", "containers": [{"name": "c", "image": "x"}]}
    pods = f"{CORE}/faces/pods"
    status, pod = server.request("POST", pods, {"metadata": {"name": "face-1"}, "spec": spec})
    assert status == 201, pod
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "face-1"}
    shown = token(server, boundObjectRef=bound)
    assert (await ask(server, shown)).leaf_certificate
    server.request("DELETE", f"{pods}/face-1?gracePeriodSeconds=0")
    assert await refusal(server, shown) is grpc.StatusCode.FAILED_PRECONDITION


async def test_an_issuer_is_swapped_under_an_open_connection(server: ServerProcess) -> None:
    """Old and new anchor side by side, then the new issuer: as rotations go."""
    async with grpc.aio.insecure_channel(server.endpoints["identity"]) as channel:
        shown = token(server)

        async def leaf() -> pb.CertifyResponse:
            return await certify(channel, FACE, shown, request.make(make_key(), FACE))

        before = way(server, await leaf())
        second = ordinary(SystemClock().utc())
        put(server, second, beside=anchors(server))
        while True:
            found = way(server, await leaf())
            if found[1] == second.issuer:
                break
            assert found[-1] == before[-1]


def put(server: ServerProcess, held: Trust, beside: tuple[x509.Certificate, ...]) -> None:
    bundle = chains.write_pem((*beside, *held.anchors)).decode()
    roots = f"{CORE}/linkerd/configmaps/linkerd-identity-trust-roots"
    status, found = server.request("GET", roots)
    assert status == 200
    assert server.request("PUT", roots, {**found, "data": {"ca-bundle.crt": bundle}})[0] == 200
    secret = f"{CORE}/linkerd/secrets/linkerd-identity-issuer"
    status, found = server.request("GET", secret)
    pair = {"crt.pem": held.material.issuer, "key.pem": held.material.key}
    data = {key: base64.b64encode(value).decode() for key, value in pair.items()}
    assert server.request("PUT", secret, {**found, "data": data})[0] == 200


async def test_trust_from_files_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    held = ordinary(SystemClock().utc())
    names = ("roots.pem", "issuer.crt", "issuer.key")
    for name, data in zip(names, held.material, strict=True):
        (tmp_path / name).write_bytes(data)
    flags = [
        word
        for flag, name in zip(("trust-anchors", "issuer-cert", "issuer-key"), names, strict=True)
        for word in (f"--{flag}", str(tmp_path / name))
    ]
    with ServerProcess(tmp_path / "data", "--store", "memory:", *flags) as server:
        server.request("POST", CORE, {"metadata": {"name": "faces"}})
        server.request("POST", f"{CORE}/faces/serviceaccounts", {"metadata": {"name": "face"}})
        answer = await ask(server, token(server))
        assert len(answer.intermediate_certificates) == 1
        assert answer.intermediate_certificates[0] == chains.der(held.issuer)
    (tmp_path / "issuer.key").write_bytes(ordinary(SystemClock().utc()).material.key)
    broken = ServerProcess(tmp_path / "data", "--store", "memory:", *flags)
    try:
        assert broken.process.wait(timeout=60) == 1
        assert "do not belong together" in broken.log
        assert "Traceback" not in broken.log
    finally:
        broken.close()
