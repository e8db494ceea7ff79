"""Clusters on one machine: control planes, nodes and pods in network namespaces, no containers.

What it is: whole clusters to try, test and show the mesh with. Each has a real `isthmus server`;
its nodes are a client of that server, and its pods are processes of this machine with a network of
their own. It works as root and, through a user namespace, without. What it is not: a sandbox.
Pods share the machine's files and users; the lab is no boundary between them.

Nothing outlives it: everything of a lab lives in one PID namespace that its first process holds,
and nothing in it has a name outside. `lab down`, Ctrl-C and SIGKILL come to the same; only files
can be left, and the next `lab up` removes them.

    topology    what a lab consists of, read from YAML
    addressing  who gets which address, from the topology alone
    images      what an image name means: a command
    starter     the part outside the namespaces
    runtime     the part inside
    cluster     one cluster, running
    forks       its control plane: forked from a process that has imported one
    network     namespaces, links, routes, relays
    pods        what a kubelet does
    kubelet     a node's endpoint: logs and exec
    balancers   LoadBalancer Services
    hosts       machines outside every cluster
    workshop    the workshop, walked by a program
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.lab.state import State
    from isthmus.lab.topology import Topology, load

__all__ = ["State", "Topology", "load"]

_HOMES = {"State": "state", "Topology": "topology", "load": "topology"}


def __getattr__(name: str) -> object:
    """Only when asked for: pods of `lab.faces` pass through here, and must stay small."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
