"""What any proxy needs to be told, in no proxy's words.

The IR is the narrow waist of the house: `mesh` writes it, every dialect reads it and nothing else.
All values are frozen and compare by content; big values are built from shared members, so that
equality of an unchanged part costs a pointer comparison.

Its words:

- *origin*: the object (and the path inside it) that a route, rule, backend or authorization comes
  from. It is the metric label, the guilty object of a rejected configuration, the line of explain.
- *target*: a set of endpoints one can balance over, with how to reach and verify them.
- *outbound*: what a client proxy does with connections to one parent (service, egress network).
- *inbound*: what a server proxy does with connections to one port of one workload.
- *view*: the names of all that one proxy is told; contents are shared between proxies.
- *decision*: what comes of one request, read off an outbound or inbound (`ir.decide`).

It is not: how Envoy, linkerd2-proxy or gRPC spell any of this (see `dialects`), nor how people
wrote it down (see `model`).

The modules are its chapters: `names`, `identity`, `hosts`, `paths`; `endpoint`, `target`, `rules`;
`outbound`, `inbound`, `gateway`, `proxy`, `profile`, `chain`, `faults`; `request`, `matching`,
`precedence`, `decide`. Import from those; here are only the heads.
"""

from isthmus.ir.chain import CompiledChain
from isthmus.ir.endpoint import Endpoint, EndpointSet
from isthmus.ir.faults import Unsupported
from isthmus.ir.gateway import HttpGateway, SniGateway, Terminating
from isthmus.ir.inbound import Inbound
from isthmus.ir.names import Default, Dns, Origin, Ref, Source, Spiffe, TargetId
from isthmus.ir.outbound import Outbound
from isthmus.ir.profile import Profile
from isthmus.ir.proxy import ProxyView
from isthmus.ir.target import Backend, Target

__all__ = [
    "Backend",
    "CompiledChain",
    "Default",
    "Dns",
    "Endpoint",
    "EndpointSet",
    "HttpGateway",
    "Inbound",
    "Origin",
    "Outbound",
    "Profile",
    "ProxyView",
    "Ref",
    "SniGateway",
    "Source",
    "Spiffe",
    "Target",
    "TargetId",
    "Terminating",
    "Unsupported",
]
