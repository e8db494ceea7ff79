"""The question: who sends what to whom, read from the texts that people write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.names import parse_ip

LONGEST: Final = 4096
"""Characters of one part of a question."""
MOST_HEADERS: Final = 64
THROWS: Final = 1000

KINDS: Final = {
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "po": "Pod",
    "pod": "Pod",
    "pods": "Pod",
    "sa": "ServiceAccount",
    "serviceaccount": "ServiceAccount",
    "serviceaccounts": "ServiceAccount",
    "externalworkload": "ExternalWorkload",
}
"""What may stand between a namespace and a name."""

SESSIONS: Final = ("http", "grpc", "tls", "tcp")


class From(msgspec.Struct, frozen=True):
    """Who sends. `kind` "Identity" is whoever proves the identity `name`, of no namespace here.

    `address` is where from, "" where nobody said.
    """

    kind: str
    namespace: str
    name: str
    address: str = ""


class To(msgspec.Struct, frozen=True):
    """Whom it is for: a host, or a pod (`namespace` is then set). Port 0 = not said.

    `address` is what the client's resolver gives for the host, "" where nobody said.
    """

    host: str
    namespace: str = ""
    port: int = 0
    address: str = ""


class Question(msgspec.Struct, frozen=True):
    """One request or connection. `throw` of 1000 is where the dice fall, for weights and shares.

    `session` is one of SESSIONS; "" where nobody said. `at` chooses among endpoints: an address,
    a pod, or a cluster.
    """

    sender: From
    to: To
    method: str = ""
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    session: str = ""
    throw: int = 0
    at: str = ""


def question(said: Mapping[str, str]) -> Question:
    """The question of a page's query.

    Raises:
        BadRequest: a part of it cannot be read.
    """
    for name, text in said.items():
        if len(text) > LONGEST:
            raise BadRequest(f"{name} is longer than {LONGEST} characters")
    session = said.get("session", "")
    if session and session not in SESSIONS:
        raise BadRequest(f"session {session!r} is none of {', '.join(SESSIONS)}")
    path = said.get("path", "")
    if path and not path.startswith(("/", "*")):
        raise BadRequest(f"the path {path!r} does not begin with /")
    return Question(
        sender(said.get("from", "")),
        receiver(said.get("to", ""), said.get("address", "")),
        said.get("method", ""),
        path,
        tuple(headers(said.get("headers", ""))),
        session,
        _number(said.get("throw", "0"), THROWS - 1, "throw"),
        said.get("at", ""),
    )


def sender(text: str) -> From:
    """`shop/deploy/cart`, `shop/sa/cart`, `shop/cart-a`, `IDENTITY`; with `@ADDRESS` behind it.

    Raises:
        BadRequest: it is none of these.
    """
    named, _, address = text.rpartition("@") if "@" in text else (text, "", "")
    if address and parse_ip(address) is None:
        raise BadRequest(f"{address!r} behind @ is no IP address")
    if named.startswith("spiffe://"):
        return From("Identity", "", named, address)
    match named.split("/"):
        case [namespace, kind, name] if namespace and name and kind.lower() in KINDS:
            return From(KINDS[kind.lower()], namespace, name, address)
        case [namespace, name] if namespace and name and namespace not in KINDS:
            return From("Pod", namespace, name, address)
        case [identity] if "." in identity:
            return From("Identity", "", identity, address)
        case _:
            raise BadRequest(
                f"{text!r} is nobody: write NAMESPACE/POD, NAMESPACE/deploy/NAME, "
                "NAMESPACE/sa/NAME, or the identity in a certificate"
            )


def receiver(text: str, address: str = "") -> To:
    """`cart`, `cart.shop:80`, `10.0.0.1:80`, `[fd00::1]:80`, `NAMESPACE/POD:PORT`.

    Raises:
        BadRequest: it is none of these.
    """
    if address and parse_ip(address) is None:
        raise BadRequest(f"{address!r} is no IP address")
    host, colon, digits = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, digits = text, ""
    port = _number(digits, 65535, "port") if colon and digits else 0
    namespace, slash, name = host.rpartition("/")
    if not name or (slash and not namespace):
        raise BadRequest(f"{text!r} is no host, address or NAMESPACE/POD")
    if slash:
        return To(name, namespace.removesuffix("/pod"), port)
    return To(name.strip("[]").removesuffix(".").lower(), "", port, address)


def headers(text: str) -> list[tuple[str, str]]:
    """One header in each line, `name: value`.

    Raises:
        BadRequest: a line is no header, or there are too many.
    """
    found = []
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise BadRequest(f"the header {line!r} is not NAME: VALUE")
        found.append((name.strip(), value.strip()))
    if len(found) > MOST_HEADERS:
        raise BadRequest(f"there are {len(found)} headers; {MOST_HEADERS} are read")
    return found


def _number(text: str, most: int, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= most):
        raise BadRequest(f"{name} {text!r} is no number up to {most}")
    return int(text)
