"""The IR in the words of gRPC's own xDS client and server (proxyless).

What it is: resources for `xds:///service.namespace:port`, and for servers that listen by xDS.
Channels with xDS credentials speak mesh TLS with sidecars of our own. What it is not: a way to do
so where some endpoints of a Service are not behind one, for gRPC has one transport for all of them;
such calls are plaintext, and a strict workload refuses them (see `faults`).

Its words:
    asker       the class of a gRPC process: its workload, namespace and node
    authority   what a client asks for, `color.faces.svc.cluster.local:80` or `color.faces:80`;
                the name of a listener and of its routes
"""

from isthmus.dialects.grpc.dialect import Asker, GrpcDialect, GrpcView, asker, grpc_view
from isthmus.dialects.grpc.faults import faults, inbound_faults

__all__ = ["Asker", "GrpcDialect", "GrpcView", "asker", "faults", "grpc_view", "inbound_faults"]
