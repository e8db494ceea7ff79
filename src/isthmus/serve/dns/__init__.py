"""Cluster DNS: the names of Services, pods and hosts, over UDP and TCP.

What it is: authoritative for the cluster's domain and for the reverse names of its addresses, and
small. What it is not: no resolver. It asks nobody, so foreign names are refused, not looked up.

Its words:
    machine    everything but the sockets, without I/O
    resolver   a packet in, a packet out
    finished   an answer as bytes, kept by the engine until something that it was made of changes
    server     the sockets, and their bounds
"""

from isthmus.serve.dns.machine import Resolver
from isthmus.serve.dns.server import DnsServer

__all__ = ["DnsServer", "Resolver"]
