"""Gateway: where outside traffic enters, listener by listener."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import field

from isthmus.errors import Cause
from isthmus.model.columns import AGE, condition_column, value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import ensure, get, items, mapping, settle, text
from isthmus.model.gateway.gatewayclass import pending
from isthmus.model.gateway.parts import (
    API_GROUP,
    CATEGORIES,
    HOSTNAME,
    SECTION,
    STATUS_CONDITIONS,
    gateway_ref,
)
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import LabelSelector, Meta, View
from isthmus.model.metacheck import labels_faults
from isthmus.model.references import GROUP, KIND_NAME, NAME, NAMESPACE, Ref, local_reference
from isthmus.model.schema import Schema
from isthmus.model.selectors import selector_faults
from isthmus.model.shapes import (
    INT32,
    LABEL_SELECTOR,
    PORT,
    STRING,
    about,
    choice,
    listed,
    mapped,
    resource,
    rule,
    ruled,
    structure,
)
from isthmus.model.shapes import text as words


class ListenerTls(View, frozen=True):
    """`mode` is Terminate or Passthrough."""

    mode: str = "Terminate"
    certificate_refs: tuple[Ref, ...] = ()


class FromNamespaces(View, frozen=True):
    """`from_` is Same, All or Selector."""

    from_: str = field(default="Same", name="from")
    selector: LabelSelector | None = None


class RouteKind(View, frozen=True):
    """A kind of routes."""

    group: str = API_GROUP
    kind: str = ""


class AllowedRoutes(View, frozen=True):
    """Which routes may attach; no kinds: those that fit the protocol."""

    namespaces: FromNamespaces = FromNamespaces()
    kinds: tuple[RouteKind, ...] = ()


class Listener(View, frozen=True):
    """One port and protocol. `hostname` "" is every host."""

    name: str = ""
    hostname: str = ""
    port: int = 0
    protocol: str = ""
    tls: ListenerTls | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()


class Address(View, frozen=True):
    """An address that is asked for; `type` is IPAddress, Hostname or a name of somebody's own."""

    type: str = "IPAddress"
    value: str = ""


class GatewaySpec(View, frozen=True):
    """The class, the listeners, the addresses asked for."""

    gateway_class_name: str = ""
    listeners: tuple[Listener, ...] = ()
    addresses: tuple[Address, ...] = ()


class Gateway(View, frozen=True):
    """gateway.networking.k8s.io Gateway."""

    metadata: Meta = Meta()
    spec: GatewaySpec = GatewaySpec()


# --------------------------------------------------------------------------------------- schemas

_CERTIFICATE: Final = structure(
    {
        "group": about(GROUP, "API group of the certificate's object.", default=""),
        "kind": about(KIND_NAME, "Its kind.", default="Secret"),
        "namespace": NAMESPACE,
        "name": NAME,
    },
    required=("name",),
)
_TLS: Final = structure(
    {
        "mode": about(choice("Terminate", "Passthrough", default="Terminate"), "Who ends TLS."),
        "certificateRefs": about(listed(_CERTIFICATE, max_items=64), "Certificates to show."),
        "options": about(mapped(words(max_length=4096)), "Settings of the controller's own."),
    }
)
_ALLOWED: Final = structure(
    {
        "namespaces": about(
            structure(
                {
                    "from": about(
                        choice("All", "Selector", "Same", default="Same"), "Whose routes."
                    ),
                    "selector": about(LABEL_SELECTOR, "Namespaces by labels, with Selector."),
                },
            ),
            "Namespaces whose routes may attach.",
            default={"from": "Same"},
        ),
        "kinds": about(
            listed(
                structure(
                    {
                        "group": about(GROUP, "API group of the routes.", default=API_GROUP),
                        "kind": KIND_NAME,
                    },
                    required=("kind",),
                ),
                max_items=8,
            ),
            "Kinds of routes that may attach.",
        ),
    },
)
_ENDED: Final = "self.?tls.?mode.orValue('') in ['', 'Terminate']"
_LISTENER: Final = ruled(
    structure(
        {
            "name": about(SECTION, "Name, which routes may ask for."),
            "hostname": about(HOSTNAME, "The host; all of them if left out."),
            "port": about(PORT, "The port."),
            "protocol": about(
                words(
                    min_length=1,
                    max_length=255,
                    pattern=r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
                    r"|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9]+$",
                ),
                "HTTP, HTTPS, TLS, TCP, UDP, or a name of somebody's own.",
            ),
            "tls": about(_TLS, "For HTTPS and TLS."),
            "allowedRoutes": about(
                _ALLOWED, "Which routes may attach.", default={"namespaces": {"from": "Same"}}
            ),
        },
        required=("name", "port", "protocol"),
    ),
    rule(
        "!has(self.tls) || !(self.protocol in ['HTTP', 'TCP', 'UDP'])",
        "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
        field=".tls",
    ),
    rule(
        f"self.protocol != 'HTTPS' || {_ENDED}",
        "tls mode must be Terminate for protocol HTTPS",
        field=".tls",
    ),
    rule(
        "self.protocol != 'TLS' || has(self.tls)",
        "tls mode must be set for protocol TLS",
        field=".tls",
    ),
    rule(
        "self.?hostname.orValue('') == '' || !(self.protocol in ['TCP', 'UDP'])",
        "hostname must not be specified for protocols ['TCP', 'UDP']",
        field=".hostname",
    ),
    rule(
        f"!has(self.tls) || !(self.protocol in ['HTTPS', 'TLS']) || !({_ENDED})"
        " || self.tls.?certificateRefs.orValue([]).size() > 0"
        " || self.tls.?options.orValue({}).size() > 0",
        "certificateRefs or options must be specified when mode is Terminate",
        field=".tls",
    ),
)
_ADDRESS: Final = ruled(
    structure(
        {
            "type": about(words(min_length=1, max_length=253), "What it is.", default="IPAddress"),
            "value": about(words(max_length=253), "The address; any if left out."),
        }
    ),
    rule(
        "self.?type.orValue('IPAddress') != 'IPAddress' || self.?value.orValue('') == ''"
        " || isIP(self.value)",
        "must be a valid IP address",
        field=".value",
    ),
)


def _unique(kind: str) -> Mapping[str, str]:
    """Of the addresses of a type, each may stand once."""
    mine = f"a.?type.orValue('IPAddress') == '{kind}' && a.?value.orValue('') != ''"
    same = f"self.filter(a, {mine}).map(a, a.value)"
    return rule(
        f"{same}.all(v, {same}.filter(w, w == v).size() < 2)", f"{kind} values must be unique"
    )


_DISTINCT: Final = rule(
    "self.all(a, self.filter(b, a.port == b.port && a.protocol == b.protocol"
    " && a.?hostname.orValue('') == b.?hostname.orValue('')).size() < 2)",
    "Combination of port, protocol and hostname must be unique for each listener",
)
_FEW: Final = rule("self.size() <= 8", "must have at most 8 entries")
_SPEC: Final = structure(
    {
        "gatewayClassName": about(NAME, "The GatewayClass."),
        "listeners": about(
            ruled(listed(_LISTENER, keys=("name",), min_items=1, max_items=64), _DISTINCT),
            "Where it listens.",
        ),
        "addresses": about(
            ruled(listed(_ADDRESS, max_items=16), *map(_unique, ("IPAddress", "Hostname"))),
            "Addresses that are asked for.",
        ),
        "infrastructure": about(
            structure(
                {
                    "labels": about(
                        ruled(mapped(words(max_length=63)), _FEW), "Labels of what is made."
                    ),
                    "annotations": about(
                        ruled(mapped(words(max_length=4096)), _FEW), "Annotations of what is made."
                    ),
                    "parametersRef": local_reference(
                        "Settings of the controller.", required=("group", "kind", "name")
                    ),
                }
            ),
            "What is made to run the Gateway.",
        ),
    },
    required=("gatewayClassName", "listeners"),
)
_LISTENER_STATUS: Final = structure(
    {
        "name": about(SECTION, "Which listener."),
        "supportedKinds": about(
            listed(structure({"group": GROUP, "kind": KIND_NAME}, required=("kind",)), max_items=8),
            "Kinds of routes that it takes.",
        ),
        "attachedRoutes": about(INT32, "How many routes are attached."),
        "conditions": STATUS_CONDITIONS,
    },
    required=("attachedRoutes", "conditions", "name"),
)
_BORN: Final = pending("Accepted", "Programmed")
_STATUS: Final = structure(
    {
        "addresses": about(
            listed(structure({"type": STRING, "value": STRING}, required=("value",)), max_items=16),
            "Addresses that are in use.",
        ),
        "conditions": about(STATUS_CONDITIONS, "Accepted, Programmed, ...", default=_BORN),
        "listeners": about(
            listed(_LISTENER_STATUS, keys=("name",), max_items=64), "How each listener is."
        ),
        "attachedListenerSets": about(INT32, "How many sets of listeners are attached."),
    },
    default={"conditions": _BORN},
)


def _schema(version: str) -> Schema:
    whole = resource(
        about(_SPEC, "Class, listeners, addresses."),
        status=about(_STATUS, "What the controller says."),
        ref=gateway_ref(version, "Gateway"),
    )
    return about(whole, "Lets traffic from outside in, at addresses of its own.")


_SCHEMAS: Final = {version: _schema(version) for version in ("v1", "v1beta1")}

# ----------------------------------------------------------------------------------------- rules


def _born(document: Document) -> None:
    """Waiting, until a controller has looked at it."""
    settle(ensure(document, "status"), "conditions", pending("Accepted", "Programmed"))


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    for index, each in enumerate(items(document, "spec.listeners")):
        where = f"spec.listeners[{index}].allowedRoutes.namespaces.selector"
        yield from selector_faults(get(each, "allowedRoutes.namespaces.selector"), where)
    labels = mapping(document, "spec.infrastructure.labels")
    yield from labels_faults(labels, "spec.infrastructure.labels")


def _address(document: Document, _now: float) -> str | None:
    found = [text(each, "value") for each in items(document, "status.addresses")]
    return found[0] if found else None


_COLUMNS: Final = (
    value_column("Class", "spec.gatewayClassName"),
    Column("Address", _address),
    condition_column("Programmed", "Programmed"),
    AGE,
)

GATEWAY: Final = Kind(
    group=API_GROUP,
    name="Gateway",
    plural="gateways",
    singular="gateway",
    short_names=("gtw",),
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=_COLUMNS) for name, each in _SCHEMAS.items()),
    stored="v1",
    view=Gateway,
    default=(_born,),
    check=(_check,),
    ruled=True,
    convert=by_schema(_SCHEMAS),
)
