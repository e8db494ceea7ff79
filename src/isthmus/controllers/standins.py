"""Services that controllers make for others: mirrors, mirrors of hosts, federated Services."""

from __future__ import annotations

from typing import Final

from isthmus.controllers.steps import JSON, Create, Plan, Update, canonical
from isthmus.model.core import Service
from isthmus.model.core.service import ServicePort
from isthmus.model.key import ObjectKey

RESOURCE: Final = "services"


def write(
    key: ObjectKey,
    held: Service | None,
    patch: dict[str, JSON],
    ports: tuple[ServicePort, ...],
    *,
    headless: bool = False,
) -> Plan:
    """Create or change a Service that we make; without a selector, so that nobody fills it."""
    if held is None:
        spec: dict[str, JSON] = {"ports": _documents(ports)}
        spec |= {"clusterIP": "None"} if headless else {}
        meta = {"name": key.name, "namespace": key.namespace, **patch}
        document = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        return (Create(RESOURCE, key.namespace, key.name, canonical(document)),)
    merge: dict[str, JSON] = {"metadata": patch} if patch else {}
    change: dict[str, JSON] = {}
    if _documents(held.spec.ports) != _documents(ports) or _says_more(held):
        change["ports"] = _documents(ports)
    if held.spec.selector:
        change["selector"] = None
    merge |= {"spec": change} if change else {}
    if not merge:
        return ()
    return (Update(RESOURCE, key.namespace, key.name, held.metadata.uid, canonical(merge)),)


def _documents(ports: tuple[ServicePort, ...]) -> list[JSON]:
    """Name, protocol and numbers; node ports and application protocols are of one cluster."""
    return [
        {
            **({"name": each.name} if each.name else {}),
            "protocol": each.protocol,
            "port": each.port,
            "targetPort": each.target_port or each.port,
        }
        for each in ports
    ]


def _says_more(held: Service) -> bool:
    asked = held.spec.type in ("NodePort", "LoadBalancer")  # by whoever made it so
    return any(each.app_protocol or (each.node_port and not asked) for each in held.spec.ports)
