"""The gRPC services that linkerd2-proxy asks: streams of what is true, told to who can take it.

What it is: a machine without I/O that knows what a client holds and what to send it next, and a
thin shell of grpc.aio around it that deals in bytes. What it is not: it knows no messages and no
mesh; `isthmus.app` hands it each call as a `Method` of a dialect.

Its words:
    Method     one call: a request becomes a key, a query answers it, steps are its messages
    Refusal    a request that gets a status instead of a stream
    Stream     one client: what it holds, what is true, so what to send
    Streams    all of them: limits, counts, and the end
    GrpcServer the listener, with health checks and reflection
"""

from isthmus.serve.linkerd.machine import Stream
from isthmus.serve.linkerd.method import Method, Read, Service
from isthmus.serve.linkerd.server import GrpcServer
from isthmus.serve.linkerd.streams import Streams

__all__ = ["GrpcServer", "Method", "Read", "Service", "Stream", "Streams"]
