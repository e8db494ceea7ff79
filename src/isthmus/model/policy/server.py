"""Server: what a port of some workloads speaks, and who may in when nothing else says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.annotations.inbound import ACCESS_POLICIES
from isthmus.model.columns import value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, mapping, text
from isthmus.model.faults import invalid, not_supported
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import LabelSelector, Meta, View
from isthmus.model.names import port_name_problems, port_problems
from isthmus.model.policy.parts import CATEGORIES, GROUP, STATUS, policy_ref
from isthmus.model.rules import exactly_one
from isthmus.model.schema import Schema
from isthmus.model.selectors import selector_faults
from isthmus.model.shapes import INT_OR_STRING, LABEL_SELECTOR, STRING, about, resource, structure

PROTOCOLS: Final = ("unknown", "HTTP/1", "HTTP/2", "gRPC", "opaque", "TLS")
SELECTORS: Final = ("podSelector", "externalWorkloadSelector")


class ServerSpec(View, frozen=True):
    """`port` is a number, or the name of a container port. None selects nothing, {} everything."""

    port: int | str = 0
    pod_selector: LabelSelector | None = None
    external_workload_selector: LabelSelector | None = None
    proxy_protocol: str = "unknown"
    access_policy: str = "deny"


class Server(View, frozen=True):
    """policy.linkerd.io Server."""

    metadata: Meta = Meta()
    spec: ServerSpec = ServerSpec()


# --------------------------------------------------------------------------------------- schemas

_FIELDS: Final[Mapping[str, Schema]] = {
    "port": about(INT_OR_STRING, "Port number, or the name of a container's port."),
    "podSelector": about(
        LABEL_SELECTOR, "Which pods of this namespace; an empty selector means all of them."
    ),
    "proxyProtocol": about(
        STRING,
        "What the port speaks: unknown (look and see), HTTP/1, HTTP/2, gRPC, opaque or TLS.",
        default="unknown",
    ),
}
_EXTERNAL: Final = {
    "externalWorkloadSelector": about(
        LABEL_SELECTOR, "Which ExternalWorkloads of this namespace, instead of pods."
    )
}
_ACCESS: Final = {
    "accessPolicy": about(
        STRING,
        "Who may in when no authorization lets them: deny, audit, or all- or cluster-"
        " (un)authenticated.",
        default="deny",
    )
}


def _schema(version: str, more: Mapping[str, Schema], required: tuple[str, ...]) -> Schema:
    spec = about(
        structure({**_FIELDS, **more}, required=required), "The workloads, the port, the rules."
    )
    whole = resource(spec, status=STATUS, ref=policy_ref(version, "Server"))
    return about(whole, "Describes one port of a set of workloads, which policies then refer to.")


_SCHEMAS: Final = {
    "v1alpha1": _schema("v1alpha1", {}, ("podSelector", "port")),
    "v1beta1": _schema("v1beta1", {}, ("podSelector", "port")),
    "v1beta2": _schema("v1beta2", _EXTERNAL, ("port",)),
    "v1beta3": _schema("v1beta3", _EXTERNAL | _ACCESS, ("port",)),
}

_PORT: Final = value_column("Port", "spec.port")
_PROTOCOL: Final = value_column("Protocol", "spec.proxyProtocol")
_POLICY: Final = value_column("Access Policy", "spec.accessPolicy")

# ----------------------------------------------------------------------------------------- rules


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    spec = mapping(document, "spec")
    yield from exactly_one(spec, "spec", *SELECTORS)
    for name in SELECTORS:
        yield from selector_faults(get(spec, name), f"spec.{name}")
    yield from _port_faults(spec.get("port"))
    for name, words in (("proxyProtocol", PROTOCOLS), ("accessPolicy", ACCESS_POLICIES)):
        word = spec.get(name)
        if word is not None and word not in words:
            yield not_supported(f"spec.{name}", word, words)


def _port_faults(port: Any) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    if isinstance(port, int):
        for problem in port_problems(port):
            yield invalid("spec.port", port, problem)
    elif port == "":
        yield invalid("spec.port", port, "must name a port")


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    port = text(document, "spec.port")
    if port and port_name_problems(port):
        yield f"spec.port: no container's port can be called {port!r}; this Server covers nothing"


SERVER: Final = Kind(
    group=GROUP,
    name="Server",
    plural="servers",
    singular="server",
    short_names=("srv",),
    categories=CATEGORIES,
    versions=(
        Version("v1beta3", _SCHEMAS["v1beta3"], columns=(_PORT, _PROTOCOL, _POLICY)),
        Version("v1beta2", _SCHEMAS["v1beta2"], columns=(_PORT, _PROTOCOL)),
        Version(
            "v1beta1",
            _SCHEMAS["v1beta1"],
            columns=(_PORT, _PROTOCOL),
            deprecated="use policy.linkerd.io/v1beta3 Server",
        ),
        Version(
            "v1alpha1", _SCHEMAS["v1alpha1"], deprecated="use policy.linkerd.io/v1beta3 Server"
        ),
    ),
    stored="v1beta3",
    view=Server,
    check=(_check,),
    warn=(_warn,),
    convert=by_schema(_SCHEMAS),
)
