"""What a client must prove: MeshTLSAuthentication (who) and NetworkAuthentication (from where)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, strings
from isthmus.model.faults import forbidden, invalid
from isthmus.model.identity import identity_problems
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.policy.parts import CATEGORIES, GROUP, NETWORK, STATUS, Network, policy_ref
from isthmus.model.references import Ref, reference
from isthmus.model.rules import exactly_one, is_kind, network_faults, shown_kind
from isthmus.model.shapes import STRING, about, listed, resource, structure


class MeshTlsAuthenticationSpec(View, frozen=True):
    """One of these identities, or one of the accounts (or all accounts of the namespaces) named."""

    identities: tuple[str, ...] = ()
    identity_refs: tuple[Ref, ...] = ()


class MeshTlsAuthentication(View, frozen=True):
    """policy.linkerd.io MeshTLSAuthentication."""

    metadata: Meta = Meta()
    spec: MeshTlsAuthenticationSpec = MeshTlsAuthenticationSpec()


_TLS_SPEC: Final = structure(
    {
        "identities": about(
            listed(STRING, min_items=1), "SPIFFE ids, mesh names, *.suffix or *; one must fit."
        ),
        "identityRefs": about(
            listed(
                reference("A ServiceAccount, or a Namespace for all of its accounts.",
                          required=("kind",)),
                min_items=1,
            ),
            "Accounts instead of identities; one must fit.",
        ),
    }
)  # fmt: skip


def _check_tls(document: Document, _old: Document | None) -> Iterator[Cause]:
    spec = mapping(document, "spec")
    yield from exactly_one(spec, "spec", "identities", "identityRefs")
    for index, each in enumerate(strings(spec, "identities")):
        for problem in identity_problems(each):
            yield invalid(f"spec.identities[{index}]", each, problem)
    for index, ref in enumerate(items(spec, "identityRefs")):
        path = f"spec.identityRefs[{index}]"
        if is_kind(ref, "", "Namespace"):
            if get(ref, "namespace"):
                yield forbidden(f"{path}.namespace", "may not be set when kind is Namespace")
        elif not is_kind(ref, "", "ServiceAccount"):
            yield invalid(
                f"{path}.kind", shown_kind(ref), "must be a ServiceAccount or a Namespace"
            )
        elif not get(ref, "name"):
            yield invalid(f"{path}.name", "", "must name the ServiceAccount")


MESH_TLS_AUTHENTICATION: Final = Kind(
    group=GROUP,
    name="MeshTLSAuthentication",
    plural="meshtlsauthentications",
    singular="meshtlsauthentication",
    short_names=("meshtlsauthn",),
    categories=CATEGORIES,
    versions=(
        Version(
            "v1alpha1",
            about(
                resource(
                    about(_TLS_SPEC, "The identities, spelled out or by reference."),
                    status=STATUS,
                    ref=policy_ref("v1alpha1", "MeshTLSAuthentication"),
                ),
                "A list of mesh identities that policies can require.",
            ),
        ),
    ),
    stored="v1alpha1",
    view=MeshTlsAuthentication,
    check=(_check_tls,),
)


class NetworkAuthenticationSpec(View, frozen=True):
    """The client's address must lie in one of these."""

    networks: tuple[Network, ...] = ()


class NetworkAuthentication(View, frozen=True):
    """policy.linkerd.io NetworkAuthentication."""

    metadata: Meta = Meta()
    spec: NetworkAuthenticationSpec = NetworkAuthenticationSpec()


_NETWORK_SPEC: Final = structure(
    {"networks": about(listed(NETWORK, min_items=1), "The client must come from one of these.")},
    required=("networks",),
)


def _check_network(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from network_faults(items(document, "spec.networks"), "spec.networks")


NETWORK_AUTHENTICATION: Final = Kind(
    group=GROUP,
    name="NetworkAuthentication",
    plural="networkauthentications",
    singular="networkauthentication",
    short_names=("netauthn", "networkauthn"),
    categories=CATEGORIES,
    versions=(
        Version(
            "v1alpha1",
            about(
                resource(
                    about(_NETWORK_SPEC, "The networks."),
                    status=STATUS,
                    ref=policy_ref("v1alpha1", "NetworkAuthentication"),
                ),
                "A list of networks that policies can require.",
            ),
        ),
    ),
    stored="v1alpha1",
    view=NetworkAuthentication,
    check=(_check_network,),
)
