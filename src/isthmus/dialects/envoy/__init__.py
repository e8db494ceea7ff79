"""The IR in Envoy's words: clusters, endpoints, listeners and routes of sidecars, as bytes.

What it is: queries whose values are resources, encoded once and shared by all streams; the names
that lead to them; the bootstrap of a sidecar. What it is not: it serves nothing and keeps nothing.

Its words:
    asker      the class of a sidecar: its workload and node
    view       the names of everything that a sidecar is told
    cell       where the resource of a name is found
    labels     metric labels packed into one text (see `stats`)
"""

from isthmus.dialects.envoy.bootstrap import Bootstrap, bootstrap
from isthmus.dialects.envoy.faults import faults
from isthmus.dialects.envoy.node import NodeAsker, NodeDialect, node_view
from isthmus.dialects.envoy.view import Asker, EnvoyDialect, SidecarView, asker, sidecar_view

__all__ = [
    "Asker",
    "Bootstrap",
    "EnvoyDialect",
    "NodeAsker",
    "NodeDialect",
    "SidecarView",
    "asker",
    "bootstrap",
    "faults",
    "node_view",
    "sidecar_view",
]
