"""Identity: workloads and hosts prove who they are, and get certificates that say so to others.

What it is: `io.linkerd.proxy.identity.Identity/Certify` as linkerd2-proxy asks it, a stream of the
trust anchors for agents, and the listener in front of both. What it is not: it makes no keys,
knows no mesh, and takes nobody's word: who somebody is comes from a token that was reviewed, from a
host's certificate that TLS has verified, or from an invitation that is good once.

Words:
    Certifier  the checks, in order, and the leaf
    Hosts      Nodes as hosts: invitations, the key that speaks for one, what is bound to one
    Front      the listener: TLS and, on loopback alone, plain text; knows the peer's certificate
    Shelf      the trust material in the objects of a store
"""

from isthmus.serve.identity.certify import Certifier
from isthmus.serve.identity.contract import Caller, Heard, Reviewed, Reviewer
from isthmus.serve.identity.hosts import Hosts
from isthmus.serve.identity.server import IdentityServer
from isthmus.serve.identity.shelf import ObjectShelf

__all__ = [
    "Caller",
    "Certifier",
    "Heard",
    "Hosts",
    "IdentityServer",
    "ObjectShelf",
    "Reviewed",
    "Reviewer",
]
