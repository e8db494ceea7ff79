"""The core API group, v1."""

from isthmus.model.kind import Kind, Version
from isthmus.model.meta import Object
from isthmus.model.wire.schemas import schema_of


def _kind(
    name: str,
    plural: str,
    *short: str,
    namespaced: bool = True,
    status: bool = True,
    categories: tuple[str, ...] = (),
) -> Kind:
    return Kind(
        group="",
        name=name,
        plural=plural,
        singular=name.lower(),
        stored="v1",
        view=Object,
        custom=False,
        versions=(Version("v1", schema_of(f"core.v1.{name}")),),
        short_names=short,
        namespaced=namespaced,
        status=status,
        categories=categories,
    )


KINDS: tuple[Kind, ...] = (
    _kind("Namespace", "namespaces", "ns", namespaced=False),
    _kind("Service", "services", "svc", categories=("all",)),
    _kind("Pod", "pods", "po", categories=("all",)),
    _kind("ConfigMap", "configmaps", "cm", status=False),
    _kind("Secret", "secrets", status=False),
    _kind("ServiceAccount", "serviceaccounts", "sa", status=False),
)
