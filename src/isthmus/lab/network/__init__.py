"""A lab's networks: namespaces, links, routes, translation, and the ways in from the machine.

What it is: everything by system calls and netlink, so that a user's machine needs no `ip`,
`iptables` or `nft`. What it is not: it knows no Kubernetes.

    sandbox     leaving the machine's namespaces; the promise that nothing outlives the lab
    namespace   a network namespace held by an open file, never by a name
    fabric      bridges, routers, where pods and hosts are plugged in
    links, nat  rtnetlink and nf_tables
    broker      listeners on the machine, handed in from outside
    relay       bytes between namespaces
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.lab.network.broker import Outside
    from isthmus.lab.network.fabric import Fabric, Router
    from isthmus.lab.network.namespace import Namespace
    from isthmus.lab.network.relay import DatagramRelay, Relay

__all__ = ["DatagramRelay", "Fabric", "Namespace", "Outside", "Relay", "Router"]

_HOMES = {
    "DatagramRelay": "relay",
    "Fabric": "fabric",
    "Namespace": "namespace",
    "Outside": "broker",
    "Relay": "relay",
    "Router": "fabric",
}


def __getattr__(name: str) -> object:
    """Only when asked for: who starts a lab from outside needs no netlink."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
