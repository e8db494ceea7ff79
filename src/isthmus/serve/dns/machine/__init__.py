"""Cluster DNS without I/O: packets in, packets out.

    wire      the parts of a message that every packet has: header, question, EDNS; and frames
    records   resource records as bytes
    answers   the queries whose values are finished answers
    resolver  from a packet to the packet that answers it

Nothing here raises for what a client sends, reads beyond it, or takes time that grows faster.
"""

from isthmus.serve.dns.machine.answers import Finished, finished
from isthmus.serve.dns.machine.resolver import Read, Resolver
from isthmus.serve.dns.machine.wire import Frames, Rcode, Transport

__all__ = ["Finished", "Frames", "Rcode", "Read", "Resolver", "Transport", "finished"]
