"""The IR in the words of linkerd2-proxy-api, as bytes.

What it is: questions read from requests, answers encoded once and shared by all streams, and the
messages that lead a client from what it holds to what is true. What it is not: it serves nothing
and keeps nothing.

Its words:
    question   a request's bytes as the key of an answer, or a fault: a gRPC status and a text
    book       the addresses that a Get stream should hold
    entry      one address, encoded
    delta      the messages from one book to another
"""

from isthmus.dialects.linkerd.book import AddressBook, Entry, delta
from isthmus.dialects.linkerd.destination import (
    Fault,
    addresses,
    get_question,
    profile_bytes,
    profile_question,
)
from isthmus.dialects.linkerd.faults import faults
from isthmus.dialects.linkerd.inbound import inbound_question, server_policy
from isthmus.dialects.linkerd.inbound_faults import inbound_faults, server_faults
from isthmus.dialects.linkerd.outbound import outbound_policy, outbound_question
from isthmus.dialects.linkerd.policy_faults import policy_faults

__all__ = [
    "AddressBook",
    "Entry",
    "Fault",
    "addresses",
    "delta",
    "faults",
    "get_question",
    "inbound_faults",
    "inbound_question",
    "outbound_policy",
    "outbound_question",
    "policy_faults",
    "profile_bytes",
    "profile_question",
    "server_faults",
    "server_policy",
]
