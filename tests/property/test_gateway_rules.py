"""HTTPRoutes are checked twice: by the rules of our schema, and by those of a definition.

Both are CEL, written by different hands. That they mean the same is held here, on a definition in
the manner of the Gateway API's. One parent named twice is left out: we go by the experimental
channel (sections or ports), it by the standard.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import UserFault
from isthmus.model import intake
from isthmus.model.crd import kind_of
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import BUILT_IN
from tests.support.examples import examples

MANIFEST = Path(__file__).parent.parent / "interop" / "manifests" / "gateway-definitions.yaml"


def defined() -> Kind:
    with MANIFEST.open() as file:
        documents = list(yaml.load_all(file, Loader=yaml.CSafeLoader))
    spec = next(each["spec"] for each in documents if each["spec"]["names"]["kind"] == "HTTPRoute")
    return kind_of(spec, "uid")


THEIRS = defined()
found = BUILT_IN.by_kind("gateway.networking.k8s.io", "HTTPRoute")
assert found is not None
OURS = found


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


NAMES = st.sampled_from(["a", "b"])
HEADERS = st.lists(some(name=st.sampled_from(["x", "X", "y", "a b"]), value=NAMES), max_size=3)
MODIFIER = some(set=HEADERS, add=HEADERS, remove=st.lists(NAMES, max_size=3))
BACKEND = some(
    name=NAMES,
    port=st.sampled_from([0, 80, 65536]),
    kind=st.sampled_from(["Service", "Other"]),
    group=st.sampled_from(["", "x.io"]),
    weight=st.sampled_from([-1, 0, 1, 1_000_001]),
)
REWRITE = some(
    type=st.sampled_from(["ReplaceFullPath", "ReplacePrefixMatch"]),
    replaceFullPath=st.just("/a"),
    replacePrefixMatch=st.just("/b"),
)
FILTER = some(
    type=st.sampled_from(["RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect",
                          "URLRewrite", "RequestMirror", "ExtensionRef"]),
    requestHeaderModifier=MODIFIER,
    responseHeaderModifier=MODIFIER,
    requestRedirect=some(statusCode=st.sampled_from([301, 302, 200]), path=REWRITE,
                         hostname=st.sampled_from(["a.b", "*.a", "A"]), scheme=NAMES),
    urlRewrite=some(path=REWRITE, hostname=st.sampled_from(["a.b", "*.a"])),
    requestMirror=some(backendRef=BACKEND, percent=st.sampled_from([0, 50, 101])),
)  # fmt: skip
MATCH = some(
    path=some(
        type=st.sampled_from(["Exact", "PathPrefix", "Other"]),
        value=st.sampled_from(["/a", "a", "/a//b", "/./x", "/../x", "/x/..", "/%2f", "/#", "/é"]),
    ),
    headers=HEADERS,
    queryParams=HEADERS,
    method=st.sampled_from(["GET", "get", "FROB"]),
)
SPANS = st.sampled_from(["0s", "1s", "2s", "1ms", "1.5s", "1h60m", "x", "100000h"])
RULE = some(
    name=st.sampled_from(["r", "s", "R_"]),
    matches=st.lists(MATCH, max_size=2),
    filters=st.lists(FILTER, max_size=3),
    backendRefs=st.lists(BACKEND, max_size=2),
    timeouts=some(request=SPANS, backendRequest=SPANS),
)
PARENT = some(
    name=NAMES,
    kind=st.sampled_from(["Gateway", "Service"]),
    group=st.sampled_from(["", "gateway.networking.k8s.io"]),
    port=st.sampled_from([80, 81]),
    sectionName=NAMES,
)
SPEC = some(
    parentRefs=st.lists(PARENT, max_size=3, unique_by=lambda each: each.get("name")),
    hostnames=st.lists(st.sampled_from(["a.b", "*.a", "*", "A.b", "1.2.3.4"]), max_size=2),
    rules=st.lists(RULE, max_size=2),
)


def refused(kind: Kind, spec: Document) -> set[str]:
    """The paths of what is wrong with a route, or {"types"}."""
    document = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "x", "namespace": "a"},
        "spec": deepcopy(spec),
    }
    version = kind.version("v1")
    assert version is not None
    try:
        intake.prepare(kind, version, document)
    except UserFault:
        return {"types"}
    return {cause.path for cause in intake.faults(kind, document) if cause.path != "<nil>"}


@settings(deadline=None, max_examples=examples(300))
@given(SPEC)
def test_our_rules_are_the_definitions(spec: Document) -> None:
    ours, theirs = refused(OURS, spec), refused(THEIRS, spec)
    assert bool(ours) == bool(theirs), (ours, theirs)
