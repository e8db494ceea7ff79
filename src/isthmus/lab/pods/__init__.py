"""Pods as processes of this machine: what a kubelet does, for a lab.

What it is: a client of the API server like any other, that binds pods to its nodes, gives each a
network namespace and an address, runs the containers as processes, probes and restarts them, and
writes their status. What it is not: a sandbox. Containers share this machine's files, users and
process numbers; only network, mounts and names are their own.

    node        the nodes of a cluster: registration, scheduling, one `Pod` for each pod
    pod         one pod's life
    container   one container: runs, probes, restarts, exec
    process     a process in a pod's namespaces
    sidecar     the seam for the agent's proxy
    status      PodStatus from facts, pure
    sources, environment, volumes, naming, mounts    what a container finds
    logs        output, kept and followed
    api         the client
"""

from isthmus.lab.pods.sidecar import Bare, Place, Sidecar, Sidecars

__all__ = ["Bare", "Place", "Sidecar", "Sidecars"]
