"""Whatever a request says, the answer is an answer or an error of our tree: never a bug."""

from __future__ import annotations

import asyncio
import json
from random import Random

from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.aio import ManualClock
from isthmus.ca import Keyring
from isthmus.errors import IsthmusError
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.answer import Answer, Stream, Write
from isthmus.serve.kube.api import Call, Dispatcher, Verdict
from isthmus.serve.kube.auth import NoTokens
from isthmus.store.memory import Memory
from isthmus.store.objects import Objects
from tests.support.rights import authorizer

ROOT = {"subject": ((("organizationName", "system:masters"),), (("commonName", "root"),))}

KEYRING = Keyring("https://isthmus", ec.generate_private_key(ec.SECP256R1()))

METHODS = st.sampled_from(["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
WORDS = st.sampled_from(
    [*[""] * 4, *["/x"] * 3, "/x/status", "/x/scale", "/x/token", "/x/finalize", "/%2e%2e",
     "/%00", "/é", "//", "/x/y/z"]
)  # fmt: skip


def collection(kind: Kind) -> str:
    base = f"/apis/{kind.group}" if kind.group else "/api"
    scope = "/namespaces/a" if kind.namespaced else ""
    return f"{base}/{kind.stored}{scope}/{kind.plural}"


CONFIG_MAPS = "/api/v1/namespaces/a/configmaps"
COLLECTIONS = st.sampled_from(sorted(map(collection, BUILT_IN)))
PATHS = st.builds(str.__add__, st.one_of(COLLECTIONS, st.just(CONFIG_MAPS)), WORDS)
VALUES = st.sampled_from(
    ["", "0", "1", "-1", "true", "x", "a=b", "a in (b", "metadata.name=x", "All", "Strict",
     "NotOlderThan", "Exact", "99999999999999999999", "%ff", "é"]
)  # fmt: skip
QUERIES = st.dictionaries(
    st.sampled_from(
        ["watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion",
         "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds",
         "dryRun", "fieldValidation", "fieldManager", "includeObject", "force",
         "propagationPolicy", "gracePeriodSeconds"]
    ),
    VALUES,
    max_size=2,
)  # fmt: skip
TYPES = st.sampled_from(
    ["", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
     "application/json-patch+json", "application/merge-patch+json",
     "application/strategic-merge-patch+json", "application/apply-patch+yaml", "text/plain"]
)  # fmt: skip
ACCEPTS = st.sampled_from(
    ["", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io",
     "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", ";;;", "a/b;q=x"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["metadata", "spec", "status", "name", "namespace", "labels", "kind", "apiVersion", "data",
     "ports", "replicas", "op", "path", "value", "finalizers", "$patch", "selector", "x", "user",
     "groups", "token", "audiences", "resourceAttributes", "nonResourceAttributes", "verb",
     "expirationSeconds", "boundObjectRef"]
)  # fmt: skip
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "x", "v1", "Pod"]))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
BODIES = st.one_of(
    st.binary(max_size=40),
    TREES.map(lambda tree: json.dumps(tree).encode()),
    st.dictionaries(KEYS, TREES, max_size=4).map(
        lambda tree: json.dumps({"metadata": {"name": "x"}, **tree}).encode()
    ),
)


def query(pairs: dict[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in pairs.items())


async def answered(call: Call) -> None:
    store, clock = Memory(), ManualClock()
    objects = Objects(store, clock=clock, random=Random(1))
    dispatcher = Dispatcher(
        store=store, objects=objects, kinds=BUILT_IN, clock=clock, authorizer=authorizer(),
        tokens=NoTokens(), issuer=KEYRING,
    )  # fmt: skip
    pod = {"metadata": {"name": "x", "namespace": "a"}, "data": {"k": "v"}}
    kind = BUILT_IN.by_kind("", "ConfigMap")
    assert kind is not None
    await objects.create(kind, pod)
    account = BUILT_IN.by_kind("", "ServiceAccount")
    assert account is not None
    await objects.create(account, {"metadata": {"name": "x", "namespace": "a"}})
    verdict = Verdict(call)
    try:
        await dispatcher.authenticate(call, verdict)
        response = await dispatcher.respond(call, verdict)
    except IsthmusError:
        return
    match response:
        case Answer():
            assert response.code < 600
        case Stream():
            dispatcher.stop()  # a watch ends after what it begins with
            written: list[bytes] = []
            await response.run(appending(written))
            assert all(json.loads(line) for line in b"".join(written).splitlines())


def appending(written: list[bytes]) -> Write:
    async def write(data: bytes) -> None:
        written.append(data)

    return write


@given(
    method=METHODS, path=PATHS, pairs=QUERIES, media=TYPES, accept=ACCEPTS, body=BODIES,
    authorization=st.sampled_from(["", "Bearer x", "Basic x", "\x00"]),
    impersonated=st.lists(
        st.tuples(
            st.sampled_from(["Impersonate-User", "Impersonate-Group", "Impersonate-Extra-é"]),
            st.sampled_from(["", "x", "system:serviceaccount:a:b", "\x00"]),
        ),
        max_size=2,
    ),
    certain=st.sampled_from([True] * 7 + [False]),
)  # fmt: skip
def test_no_request_finds_a_bug(
    *,
    method: str,
    path: str,
    pairs: dict[str, str],
    media: str,
    accept: str,
    body: bytes,
    authorization: str,
    impersonated: list[tuple[str, str]],
    certain: bool,
) -> None:
    async def read() -> bytes:
        return body

    call = Call(
        id="1",
        method=method,
        path=f"{path}?{query(pairs)}",
        headers={"content-type": media, "accept": accept, "authorization": authorization},
        impersonation=() if certain else tuple(impersonated),
        certificate=ROOT if certain or not authorization else None,
        body=read,
    )
    asyncio.run(answered(call))
