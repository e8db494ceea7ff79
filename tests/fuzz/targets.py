"""What is fuzzed: readers of hostile bytes. An exception that leaves one of them is a bug.

A target is made once and called very often. What it answers with, and refuses with errors of our
tree that mean "you", is its business alone; anything else ends the run and is written down.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import ManualClock
from isthmus.ca import Keyring
from isthmus.ca.tokens import Bound
from isthmus.errors import IsthmusError, UserFault
from isthmus.model import intake
from isthmus.model.crd import Unusable, faults, kind_of
from isthmus.model.crd.cel import Budget, CelError, Program, Spent, SyntaxFault, TypeFault
from isthmus.model.crd.cel.types import DYN
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.answer import Answer
from isthmus.serve.kube.api import Call, Dispatcher, Verdict
from isthmus.serve.kube.auth import NoTokens
from isthmus.serve.kube.patch import apply
from isthmus.serve.kube.selector import Selector, parse_fields, parse_labels
from isthmus.store.memory import Memory
from isthmus.store.objects import Objects
from tests.support.rights import authorizer

Take = Callable[[bytes], None]


class Target(NamedTuple):
    """What takes the bytes, inputs to begin with, and words that help to get further."""

    make: Callable[[], Take]
    seeds: tuple[bytes, ...]
    words: tuple[str, ...]


def _kind(name: str) -> Kind:
    return next(kind for kind in BUILT_IN if kind.name == name)


def _split(data: bytes) -> tuple[int, bytes]:
    """The first byte decides what is asked, the rest is what is said."""
    return (data[0], data[1:]) if data else (0, b"")


# ---------------------------------------------------------------------------------------- bodies

KINDS = (
    "ConfigMap", "Service", "Deployment", "HTTPRoute", "Role", "Secret", "TokenReview",
    "SubjectAccessReview", "CustomResourceDefinition", "EndpointSlice", "Server", "Pod",
)  # fmt: skip
WAYS = (
    ("POST", "application/json"),
    ("POST", "application/yaml"),
    ("PUT", "application/json"),
    ("PATCH", "application/apply-patch+yaml"),
    ("PATCH", "application/merge-patch+json"),
    ("POST", "application/vnd.kubernetes.protobuf"),
    ("DELETE", "application/json"),
)
ROOT = {"subject": ((("organizationName", "system:masters"),), (("commonName", "root"),))}


def bodies() -> Take:
    """A request of each way to each of KINDS, answered as the API server does."""
    authorized, keyring = authorizer(), _keyring()

    def take(data: bytes) -> None:
        choice, body = _split(data)
        kind = _kind(KINDS[choice % len(KINDS)])
        method, media = WAYS[choice // len(KINDS) % len(WAYS)]
        base = f"/apis/{kind.group}" if kind.group else "/api"
        scope = "/namespaces/a" if kind.namespaced else ""
        name = "" if method == "POST" else "/x"

        async def read() -> bytes:
            return body

        call = Call(
            id="1", method=method,
            path=f"{base}/{kind.stored}{scope}/{kind.plural}{name}?fieldManager=fuzz",
            headers={"content-type": media}, impersonation=(), certificate=ROOT, body=read,
        )  # fmt: skip

        async def answer() -> None:
            store, clock = Memory(), ManualClock()
            dispatcher = Dispatcher(
                store=store, objects=Objects(store, clock=clock, random=Random(1)), kinds=BUILT_IN,
                clock=clock, authorizer=authorized, tokens=NoTokens(), issuer=keyring,
            )  # fmt: skip
            verdict = Verdict(call)
            try:
                await dispatcher.authenticate(call, verdict)
                answered = await dispatcher.respond(call, verdict)
            except IsthmusError as fault:
                assert fault.http < 500, fault
                return
            assert isinstance(answered, Answer)
            assert answered.code < 500

        asyncio.run(answer())

    return take


# --------------------------------------------------------------------------------------- patches

PATCHES = ("application/json-patch+json", "application/merge-patch+json",
           "application/strategic-merge-patch+json")  # fmt: skip
LIVE = {
    "apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["a/b", "c/d"]},
    "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "d", "env": [{"name": "A", "value": "1"}]},
        ]}},
    },
}  # fmt: skip


def patches() -> Take:
    """A patch of each sort to a Deployment; the document that is patched stays as it is."""
    schema = _kind("Deployment").versions[0].schema
    before = json.dumps(LIVE)

    def take(data: bytes) -> None:
        choice, body = _split(data)
        with suppress(UserFault):
            made = apply(PATCHES[choice % len(PATCHES)], schema, LIVE, body, custom=False)
            msgspec.json.encode(made)
        assert json.dumps(LIVE) == before

    return take


# ------------------------------------------------------------------------------------- selectors


def selectors() -> Take:
    """A label selector, or a field selector of Pods; what is read selects or does not."""
    pods = _kind("Pod")
    document = {"metadata": {"name": "x", "namespace": "a", "labels": {"a": "b", "c/d": "1"}}}
    raw = msgspec.json.encode(document)

    def take(data: bytes) -> None:
        choice, said = _split(data)
        text = said.decode("utf-8", "replace")
        with suppress(UserFault):
            if choice % 2:
                for term in parse_fields(text, pods):
                    term.holds(document)
            else:
                selector = Selector(labels=parse_labels(text))
                assert selector.matches(document) == selector.matches_raw(raw)

    return take


# ------------------------------------------------------------------------------------- CEL rules

SELF = {
    "n": 3, "d": 1.5, "s": "abc", "b": True, "l": [3, 1, 2], "w": ["a", "b"], "m": {"a": 1},
    "o": [{"n": 1, "s": "x"}, {"n": 2}],
}  # fmt: skip


def rules() -> Take:
    """A rule over a value without a schema (run), and in a definition (compiled, then run)."""

    def take(data: bytes) -> None:
        choice, said = _split(data)
        text = said.decode("utf-8", "replace")
        if choice % 2:
            _define(text)
            return
        try:
            program = Program(text, {"self": DYN, "oldSelf": DYN})
        except (SyntaxFault, TypeFault):
            return
        with suppress(CelError, Spent):
            program.value({"self": SELF, "oldSelf": SELF}, Budget(20_000))

    return take


def _define(rule: str) -> None:
    number, text = {"type": "integer"}, {"type": "string", "maxLength": 9}
    numbers = {"type": "array", "maxItems": 9, "items": number}
    spec = {
        "type": "object",
        "properties": {"n": number, "s": text, "l": numbers, "b": {"type": "boolean"}},
        "x-kubernetes-validations": [{"rule": rule, "messageExpression": rule}],
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    document = {
        "metadata": {"name": "xs.e.io"},
        "spec": {
            "group": "e.io", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"},
        },
    }  # fmt: skip
    list(faults(document, None))
    with suppress(Unusable):
        kind = kind_of(document["spec"], "uid")  # type: ignore[arg-type]
        held = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"n": 1, "s": "x", "l": [1]}}
        intake.faults(kind, held, held)


# ---------------------------------------------------------------------------------------- tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _keyring() -> Keyring:
    return Keyring("https://isthmus", ec.derive_private_key(7, ec.SECP256R1()))


def _token() -> bytes:
    account = Bound("serviceaccounts", "a", "x", "uid")
    return _keyring().sign(account, now=NOW, lifetime=timedelta(hours=1)).encode()


def tokens() -> Take:
    """A token; and a payload that we signed ourselves, to get behind the signature."""
    keyring = _keyring()

    def take(data: bytes) -> None:
        choice, said = _split(data)
        token = said.decode("latin-1")
        if choice % 2:
            with suppress(ValueError, RecursionError):  # only what is an object can be signed
                payload = json.loads(said)
                if isinstance(payload, dict):
                    token = keyring._signed(payload)  # noqa: SLF001 - nobody else signs nonsense
        with suppress(UserFault):
            claims = keyring.verify(token, now=NOW)
            assert claims.user.startswith("system:serviceaccount:")
            # Only the seeds' account has tokens; another one's would be a forged signature.
            assert choice % 2 or claims.user == "system:serviceaccount:a:x"

    return take


# ------------------------------------------------------------------------------------------ all

STRATEGIC = (
    b'\x02{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"d"}],'
    b'"containers":[{"$patch":"delete","name":"c"}]}}}}'
)
SIGNED = (
    b'\x01{"aud":["https://isthmus"],"exp":1767229200,"iat":1767225600,"nbf":1767225600,'
    b'"iss":"https://isthmus","jti":"x","kubernetes.io":{"namespace":"a","serviceaccount":'
    b'{"name":"x","uid":"u"},"pod":{"name":"p","uid":"v"}},"sub":"system:serviceaccount:a:x"}'
)
KEPT = (
    b'\x01{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:a:x",'
    b'"kubernetes.io/serviceaccount/namespace":"a"}'
)
SERVICE = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 1}]}}
_POST, _APPLY = 0, 3 * len(KINDS)


def _asked(way: int, kind: str, said: object) -> bytes:
    return bytes([way + KINDS.index(kind)]) + json.dumps(said).encode()


TARGETS = {
    "bodies": Target(
        bodies,
        (
            _asked(_POST, "ConfigMap", {"metadata": {"name": "x"}, "data": {"a": "b"}}),
            _asked(_POST, "Service", SERVICE),
            _asked(_APPLY, "Service", {"apiVersion": "v1", "kind": "Service", **SERVICE}),
            _asked(_POST, "Deployment", LIVE),
            _asked(_POST, "Role", {"metadata": {"name": "x"}, "rules": [{"verbs": ["*"]}]}),
            _asked(_POST, "SubjectAccessReview", {"spec": {"user": "x", "resourceAttributes": {}}}),
            _asked(_POST, "HTTPRoute", {"metadata": {"name": "x"}, "spec": {"rules": [{}]}}),
            b"\x0cmetadata: {name: x}\ndata: {a: b}\n",
            b"\x3ck8s\x00\n\x0f\n\x02v1\x12\tConfigMap",
        ),
        ("metadata", "name", "spec", "rules", "ports", "labels", "managedFields", "k8s\\x00"),
    ),
    "patches": Target(
        patches,
        (
            b'\x00[{"op":"add","path":"/spec/replicas","value":2},{"op":"test","path":"/kind"}]',
            b'\x01{"spec":{"replicas":null}}',
            STRATEGIC,
            b'\x02{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"]}}',
            b'\x02{"spec":{"$retainKeys":["selector"],"selector":{}}}',
        ),
        ("$patch", "$retainKeys", "$setElementOrder/containers", "op", "path", "value", "from",
         "move", "copy", "/spec/template/spec/containers/0", "$deleteFromPrimitiveList/finalizers"),
    ),
    "selectors": Target(
        selectors,
        (b"\x00a=b,c/d!=e,!f,g in (h, i),j notin (k),l>1", b"\x01metadata.name=x,status.phase!=Y"),
        ("in (", "notin (", "==", "!=", "metadata.namespace=", "spec.nodeName=", "\\\\,"),
    ),
    "rules": Target(
        rules,
        (
            b"\x00self.l.all(x, x > self.n) && has(self.s) ? size(self.w) : 1 + 2 * -3",
            b"\x00self.o.map(e, e.n).exists(n, n in [1, 2]) || self.m['a'] == 1.0",
            b"\x00self.s.matches('^a+$') && 'x'.lowerAscii() == \"\\u0061\" && b'a' != r'b'",
            b"\x01self.n >= oldSelf.n && self.s.contains('x')",
            b"\x01isQuantity(self.s) && quantity('1Gi').isGreaterThan(quantity('1'))",
            b"\x01self.l.exists_one(i, v, v > i) || self.?s.orValue('') == string(self.n)",
        ),
        ("self.", "oldSelf", ".all(x,", ".exists(x,", "has(", "size(", "matches(", "quantity(",
         "duration(", "timestamp(", "url(", "ip(", "cidr(", "format.", ".split(", ".replace(",
         "cel.bind(", "optional.of(", "sets.contains(", ".indexOf(", "semver(", ".sum("),
    ),
    "tokens": Target(
        tokens,
        (
            b"\x00" + _token(),
            SIGNED,
            KEPT,
        ),
        ("alg", "none", "ES256", "kid", "crit", "aud", "exp", "nbf", "kubernetes.io", "1e400"),
    ),
}  # fmt: skip
