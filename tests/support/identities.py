"""A control plane's identity service over a store in memory, with real tokens."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import Clock, SystemClock
from isthmus.ca import AUDIENCE, Bound, Invitation, Keeper, Keyring, Realm, Trust, join
from isthmus.ca.trust import BUNDLE, ISSUER_SECRET, ROOTS_CONFIG_MAP
from isthmus.errors import NotFound
from isthmus.model.core.config import CONFIG_MAP, SECRET
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.proto.linkerd import identity_pb2 as pb
from isthmus.serve.identity import Certifier, Hosts, IdentityServer, ObjectShelf, Reviewed
from isthmus.serve.kube.accounts import AccountTokens
from isthmus.store import Memory
from isthmus.store.objects import Objects
from tests.support.log import ListLog

REALM = Realm("cluster.local", "linkerd")
ISSUER = "https://kubernetes.default.svc.cluster.local"


class Tokens:
    """In-process TokenReview."""

    def __init__(self, verifier: AccountTokens) -> None:
        self._verifier = verifier

    async def review(self, token: str, audience: str) -> Reviewed:
        return Reviewed((await self._verifier.verify(token, (audience,))).user.name)


class Plane:
    """Store, keys and certifier of one cluster."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.log = ListLog()
        self.store = Memory(clock=self.clock)
        self.objects = Objects(self.store, clock=self.clock, random=Random(1))
        self.keyring = Keyring(ISSUER, ec.generate_private_key(ec.SECP256R1()))
        self.shelf = ObjectShelf("linkerd", self.store, self.objects, self.clock)
        self.keeper = Keeper(self.shelf, "isthmus east", self.clock, self.log)
        tokens = AccountTokens(self.keyring, self.store, BUILT_IN, self.clock)
        self.hosts = Hosts(REALM, "east", self.store, self.objects, self.clock)
        self.certifier = Certifier(
            REALM, self.keeper, Tokens(tokens), self.hosts, self.clock, self.log
        )

    async def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        kind = BUILT_IN.by_api_version(document["apiVersion"], document["kind"])
        assert kind is not None
        return (await self.objects.create(kind, document)).document

    async def account(self, namespace: str, name: str) -> Bound:
        made = await self.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"namespace": namespace, "name": name},
            }
        )
        return Bound("serviceaccounts", namespace, name, made["metadata"]["uid"])

    async def pod(self, namespace: str, name: str, account: str, node: str = "") -> Bound:
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}
        spec["serviceAccountName"] = account
        if node:
            spec["nodeName"] = node
        metadata = {"namespace": namespace, "name": name}
        made = await self.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        return Bound("pods", namespace, name, made["metadata"]["uid"])

    def token(
        self,
        account: Bound,
        bound: Bound | None = None,
        *,
        audience: str = AUDIENCE,
        lifetime: timedelta = timedelta(hours=1),
    ) -> bytes:
        now, audiences = self.clock.utc(), (audience,)
        signed = self.keyring.sign(
            account, now=now, lifetime=lifetime, audiences=audiences, bound=bound
        )
        return signed.encode()

    async def invite(self, host: str, *, at: str = "127.0.0.1:1", age: float = 0.0) -> Invitation:
        """An invitation that was made `age` seconds ago."""
        trust = await self.keeper.trust()
        made = Invitation.make(
            REALM.host_uri(host), at, REALM.server_name, join.hashes(trust.anchors)
        )
        expires = self.clock.time() - age + join.LIFETIME.total_seconds()
        await self.objects.create(SECRET, join.document(made, host, "linkerd", expires))
        return made

    async def swap(self, trust: Trust) -> None:
        """Write other trust material where the first lies, the anchors before the issuer."""
        material = trust.material
        anchors = {BUNDLE: material.anchors.decode()}
        await self._data(CONFIG_MAP, ROOTS_CONFIG_MAP, anchors)
        pair = {"crt.pem": material.issuer, "key.pem": material.key}
        data = {name: b64encode(held).decode() for name, held in pair.items()}
        await self._data(SECRET, ISSUER_SECRET, data)

    async def _data(self, kind: Kind, name: str, data: dict[str, str]) -> None:
        await self.objects.update(kind, "linkerd", name, lambda held: {**held, "data": data})

    async def gone(self, bound: Bound) -> None:
        """Delete an object, at once."""
        kind = BUILT_IN.by_resource("", bound.resource)
        assert kind is not None
        await self.objects.delete(kind, bound.namespace, bound.name, grace_seconds=0)

    async def stands(self, kind: Kind, namespace: str, name: str) -> bool:
        try:
            await self.objects.get(kind, namespace, name)
        except NotFound:
            return False
        return True


@asynccontextmanager
async def serving(plane: Plane, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """The plane's listener, at a free port."""
    listening = socket.create_server((host, 0))
    port = listening.getsockname()[1]
    server = IdentityServer(
        listening, plane.certifier, plane.keeper, REALM, "east", clock=plane.clock, log=plane.log
    )
    task = asyncio.get_running_loop().create_task(server.run())
    try:
        yield f"{host}:{port}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        listening.close()


async def certify(
    channel: grpc.aio.Channel, identity: str, token: bytes, csr: bytes
) -> pb.CertifyResponse:
    """One call, as a proxy makes it."""
    call: Any = channel.unary_unary(
        "/io.linkerd.proxy.identity.Identity/Certify",
        pb.CertifyRequest.SerializeToString,
        pb.CertifyResponse.FromString,
    )
    asked = pb.CertifyRequest(identity=identity, token=token, certificate_signing_request=csr)
    answer: pb.CertifyResponse = await call(asked, timeout=30)
    return answer
