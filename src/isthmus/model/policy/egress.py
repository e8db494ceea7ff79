"""EgressNetwork: a name for addresses outside the cluster, and what may go there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.annotations import parent_warnings
from isthmus.model.document import get, items, texts
from isthmus.model.faults import invalid
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.policy.parts import CATEGORIES, GROUP, NETWORK, STATUS, Network, policy_ref
from isthmus.model.rules import network_faults
from isthmus.model.shapes import about, choice, listed, resource, structure


class EgressNetworkSpec(View, frozen=True):
    """`traffic_policy` is Allow or Deny. `networks` None: everything outside the cluster's own."""

    traffic_policy: str = ""
    networks: tuple[Network, ...] | None = None


class EgressNetwork(View, frozen=True):
    """policy.linkerd.io EgressNetwork."""

    metadata: Meta = Meta()
    spec: EgressNetworkSpec = EgressNetworkSpec()


_SPEC: Final = structure(
    {
        "trafficPolicy": about(
            choice("Allow", "Deny"), "What happens to traffic that no route speaks of."
        ),
        "networks": about(
            listed(NETWORK), "The addresses; if left out, all that the cluster does not use."
        ),
    },
    required=("trafficPolicy",),
)


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    if get(document, "spec.networks") == []:
        yield invalid("spec.networks", 0, "must not be empty; leave it out to mean all")
    yield from network_faults(items(document, "spec.networks"), "spec.networks")


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    yield from parent_warnings(texts(document, "metadata.annotations"))


EGRESS_NETWORK: Final = Kind(
    group=GROUP,
    name="EgressNetwork",
    plural="egressnetworks",
    singular="egressnetwork",
    categories=CATEGORIES,
    versions=(
        Version(
            "v1alpha1",
            about(
                resource(
                    about(_SPEC, "The addresses and what may go there."),
                    status=STATUS,
                    ref=policy_ref("v1alpha1", "EgressNetwork"),
                ),
                "Names traffic that leaves the cluster, so that routes and policy can speak of it.",
            ),
        ),
    ),
    stored="v1alpha1",
    view=EgressNetwork,
    check=(_check,),
    warn=(_warn,),
)
