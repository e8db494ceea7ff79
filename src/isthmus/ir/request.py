"""What arrives at a proxy, as far as decisions look at it."""

from __future__ import annotations

from isthmus.ir.names import Identity, Value


class HttpRequest(Value, frozen=True, tag="http"):
    """One request. `path` is the request target with its query; `version` is 1 or 2.

    `authority` is the Host header of HTTP/1. Header names are of any case; a name may repeat.
    """

    method: str = "GET"
    authority: str = ""
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    scheme: str = "http"
    version: int = 1

    def header(self, name: str) -> str | None:
        """The values of a header joined by commas, or None."""
        wanted = name.lower()
        values = [value for key, value in self.headers if key.lower() == wanted]
        return ",".join(values) if values else None


class TlsHello(Value, frozen=True, tag="tls"):
    """A connection that begins with TLS; `sni` "" if it names no server."""

    sni: str = ""


class RawBytes(Value, frozen=True, tag="raw"):
    """A connection of any other protocol, also of one where the server speaks first."""


Request = HttpRequest | TlsHello | RawBytes


class Peer(Value, frozen=True):
    """The client of a server's proxy.

    `address` is IP text. `tls`: it came by mesh TLS, which ended at this proxy; `identity` is what
    its certificate proves, None if it showed none.
    """

    address: str
    tls: bool = False
    identity: Identity | None = None
