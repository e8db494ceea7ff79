"""The built-in Kubernetes kinds as their wire describes them.

What it is: `messages.txt` (numbers, names, types and merge facts of the messages that the served
kinds reach), a Schema made of each on demand, and a reader of
`application/vnd.kubernetes.protobuf`. What it is not: an encoder. Answers are JSON; every client we
know takes them.

Its words: a *message* is one protobuf message type, named shortly (`core.v1.PodSpec`); a *form* is
how a special message looks in JSON (Time is RFC 3339 text, Quantity is text, ...); *keepzero* marks
optional pointers, whose zero on the wire was meant; an *inline* field's own fields stand in the
parent.
"""

from isthmus.model.wire.protobuf import MAGIC, decode, decode_message, message_of
from isthmus.model.wire.schemas import schema_of

__all__ = ["MAGIC", "decode", "decode_message", "message_of", "schema_of"]
