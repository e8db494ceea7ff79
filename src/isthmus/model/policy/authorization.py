"""Who may reach a Server: ServerAuthorization, and AuthorizationPolicy by reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import field

from isthmus.errors import Cause
from isthmus.model.annotations.keys import CARRY
from isthmus.model.columns import value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, mapping, text, texts, truth
from isthmus.model.faults import forbidden, invalid
from isthmus.model.identity import MESH_NAME
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import LabelSelector, Meta, View
from isthmus.model.policy.parts import (
    CATEGORIES,
    GROUP,
    NETWORK,
    STATUS,
    Network,
    policy_ref,
)
from isthmus.model.references import DNS, Ref, local_reference, reference
from isthmus.model.rules import exactly_one, is_kind, network_faults, shown_kind
from isthmus.model.schema import Schema
from isthmus.model.selectors import selector_faults
from isthmus.model.shapes import BOOLEAN, LABEL_SELECTOR, about, listed, resource, structure
from isthmus.model.shapes import text as words

GATEWAY: Final = "gateway.networking.k8s.io"

# --------------------------------------------------------------------------- ServerAuthorization


class ServerChoice(View, frozen=True):
    """By name, or by the labels of Servers."""

    name: str = ""
    selector: LabelSelector | None = None


class Account(View, frozen=True):
    """A ServiceAccount; `namespace` "" is the authorization's own."""

    name: str = ""
    namespace: str = ""


class MeshTls(View, frozen=True):
    """Which mesh identities; `unauthenticated_tls`: TLS, whoever it is."""

    unauthenticated_tls: bool = field(default=False, name="unauthenticatedTLS")
    identities: tuple[str, ...] = ()
    service_accounts: tuple[Account, ...] = ()


class Client(View, frozen=True):
    """Which clients. No networks: the cluster's."""

    networks: tuple[Network, ...] = ()
    unauthenticated: bool = False
    mesh_tls: MeshTls | None = field(default=None, name="meshTLS")


class ServerAuthorizationSpec(View, frozen=True):
    """Which Servers, which clients."""

    server: ServerChoice = ServerChoice()
    client: Client = Client()


class ServerAuthorization(View, frozen=True):
    """policy.linkerd.io ServerAuthorization."""

    metadata: Meta = Meta()
    spec: ServerAuthorizationSpec = ServerAuthorizationSpec()


_LABEL: Final = words(pattern=rf"^{DNS}$")

_ACCOUNT: Final = structure(
    {
        "name": about(_LABEL, "The ServiceAccount's name."),
        "namespace": about(_LABEL, "Its namespace; the authorization's own if left out."),
    },
    required=("name",),
)
_MESH_TLS: Final = structure(
    {
        "unauthenticatedTLS": about(BOOLEAN, "TLS is enough, no identity is asked for."),
        "identities": about(
            listed(words(pattern=MESH_NAME)), "Mesh names; *.suffix covers all names under it."
        ),
        "serviceAccounts": about(listed(_ACCOUNT), "Clients that run as one of these accounts."),
    }
)
_CLIENT: Final = structure(
    {
        "networks": about(listed(NETWORK), "Where they must come from; the cluster if left out."),
        "unauthenticated": about(BOOLEAN, "Anybody from these networks, with or without TLS."),
        "meshTLS": about(_MESH_TLS, "Clients that prove an identity by mutual TLS."),
    }
)
_SERVER: Final = structure(
    {
        "name": about(_LABEL, "The Server's name."),
        "selector": about(LABEL_SELECTOR, "Servers by their labels."),
    }
)


def _authorization_schema(version: str) -> Schema:
    spec = structure(
        {
            "server": about(_SERVER, "Servers of this namespace, by name or by labels."),
            "client": about(_CLIENT, "The clients that may reach them."),
        },
        required=("client", "server"),
    )
    whole = resource(
        about(spec, "Which clients may reach which Servers."),
        status=STATUS,
        ref=policy_ref(version, "ServerAuthorization"),
    )
    return about(whole, "Lets clients reach Servers of its namespace.")


_SCHEMAS: Final = {name: _authorization_schema(name) for name in ("v1beta1", "v1alpha1")}


def _check_authorization(document: Document, _old: Document | None) -> Iterator[Cause]:
    server, client = mapping(document, "spec.server"), mapping(document, "spec.client")
    yield from exactly_one(server, "spec.server", "name", "selector")
    yield from selector_faults(get(server, "selector"), "spec.server.selector")
    yield from network_faults(items(client, "networks"), "spec.client.networks")
    if truth(client, "unauthenticated") and get(client, "meshTLS") is not None:
        yield forbidden("spec.client.meshTLS", "may not be set when `unauthenticated` is true")
    if truth(client, "meshTLS.unauthenticatedTLS"):
        for name in ("identities", "serviceAccounts"):
            if get(client, f"meshTLS.{name}"):
                says = "may not be set when `unauthenticatedTLS` is true"
                yield forbidden(f"spec.client.meshTLS.{name}", says)


def _warn_authorization(document: Document, _old: Document | None) -> Iterator[str]:
    client = mapping(document, "spec.client")
    tls = mapping(client, "meshTLS")
    named = truth(tls, "unauthenticatedTLS") or tls.get("identities") or tls.get("serviceAccounts")
    if not truth(client, "unauthenticated") and not named:
        yield "spec.client: names neither unauthenticated nor meshTLS clients, so it admits nobody"


SERVER_AUTHORIZATION: Final = Kind(
    group=GROUP,
    name="ServerAuthorization",
    plural="serverauthorizations",
    singular="serverauthorization",
    short_names=("saz", "serverauthz", "srvauthz"),
    categories=CATEGORIES,
    versions=(
        Version(
            "v1beta1", _SCHEMAS["v1beta1"], columns=(value_column("Server", "spec.server.name"),)
        ),
        Version(
            "v1alpha1",
            _SCHEMAS["v1alpha1"],
            deprecated="use policy.linkerd.io/v1beta1 ServerAuthorization",
        ),
    ),
    stored="v1beta1",
    view=ServerAuthorization,
    check=(_check_authorization,),
    warn=(_warn_authorization,),
    convert=by_schema(_SCHEMAS),
)

# --------------------------------------------------------------------------- AuthorizationPolicy


class AuthorizationPolicySpec(View, frozen=True):
    """What it is for, and the authentications that must all hold. None of them: everybody may."""

    target_ref: Ref = Ref()
    required_authentication_refs: tuple[Ref, ...] = ()


class AuthorizationPolicy(View, frozen=True):
    """policy.linkerd.io AuthorizationPolicy."""

    metadata: Meta = Meta()
    spec: AuthorizationPolicySpec = AuthorizationPolicySpec()


_TARGETS: Final = (
    (GROUP, "Server"),
    ("", "Namespace"),
    (GROUP, "HTTPRoute"),
    (GATEWAY, "HTTPRoute"),
    (GATEWAY, "GRPCRoute"),
)
_REFS: Final = "spec.requiredAuthenticationRefs"

_POLICY_SPEC: Final = structure(
    {
        "targetRef": local_reference("A Server, route or this Namespace, that it opens."),
        "requiredAuthenticationRefs": about(
            listed(reference("A MeshTLSAuthentication, NetworkAuthentication or ServiceAccount.")),
            "All of these must hold of a client; an empty list lets everybody in.",
        ),
    },
    required=("requiredAuthenticationRefs", "targetRef"),
)
_POLICY_SCHEMA: Final = about(
    resource(
        about(_POLICY_SPEC, "What is opened, and to whom."),
        status=STATUS,
        ref=policy_ref("v1alpha1", "AuthorizationPolicy"),
    ),
    "Lets clients that prove what it requires reach a Server, a route, or a whole namespace.",
)


def _check_policy(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from _target_faults(document)
    tls, networks = [], []
    for index, each in enumerate(items(document, _REFS)):
        path = f"{_REFS}[{index}]"
        if is_kind(each, GROUP, "NetworkAuthentication"):
            networks.append(path)
        elif is_kind(each, GROUP, "MeshTLSAuthentication") or is_kind(each, "", "ServiceAccount"):
            tls.append(path)
        else:
            says = "must be a MeshTLSAuthentication, a NetworkAuthentication or a ServiceAccount"
            yield invalid(f"{path}.kind", shown_kind(each), says)
    for path in tls[1:]:
        yield forbidden(path, "only one MeshTLSAuthentication or ServiceAccount may be required")
    for path in networks[1:]:
        yield forbidden(path, "only one NetworkAuthentication may be required")


def _target_faults(document: Mapping[str, Any]) -> Iterator[Cause]:
    target = mapping(document, "spec.targetRef")
    if is_kind(target, "", "Service"):
        if texts(document, "metadata.annotations").get(CARRY, "").strip() != "true":
            says = f"a Service is a target only of policies with the annotation {CARRY}"
            yield invalid("spec.targetRef.kind", "Service", f'{says}: "true"')
    elif not any(is_kind(target, group, kind) for group, kind in _TARGETS):
        says = "must be a Server, an HTTPRoute, a GRPCRoute or the policy's own Namespace"
        yield invalid("spec.targetRef.kind", shown_kind(target), says)
    elif is_kind(target, "", "Namespace"):
        name, own = text(target, "name"), text(document, "metadata.namespace")
        if name != own:
            yield invalid("spec.targetRef.name", name, f"must be the policy's own namespace, {own}")


def _warn_policy(document: Document, _old: Document | None) -> Iterator[str]:
    if get(document, _REFS) == []:
        yield f"{_REFS}: nothing is required, so everybody is let in"


AUTHORIZATION_POLICY: Final = Kind(
    group=GROUP,
    name="AuthorizationPolicy",
    plural="authorizationpolicies",
    singular="authorizationpolicy",
    short_names=("authzpolicy",),
    categories=CATEGORIES,
    versions=(Version("v1alpha1", _POLICY_SCHEMA),),
    stored="v1alpha1",
    view=AuthorizationPolicy,
    check=(_check_policy,),
    warn=(_warn_policy,),
)
