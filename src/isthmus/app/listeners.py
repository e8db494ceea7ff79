"""Sockets, bound before anything else is started, so that a taken port is told at once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from isthmus.config.values import HostPort
from isthmus.errors import UserFault

BACKLOG = 1024
"""Connections that wait to be accepted: a reconnect storm is a thousand proxies in a second."""

_WHY = {
    errno.EADDRINUSE: "is taken",
    errno.EACCES: "may not be used by this user (ports below 1024 need privileges)",
    errno.EADDRNOTAVAIL: "is not an address of this machine",
}


def bind(name: str, at: HostPort) -> socket.socket:
    """A listening TCP socket for the surface `name`.

    Raises:
        UserFault: the address cannot be had; says why and which flag changes it.
    """
    host = address(name, at)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, at.port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as fault:
        listening.close()
        raise refused(name, at, fault) from fault
    return listening


Bind = Callable[[str, int], int]
"""Has a server that makes its own socket listen; returns the port. Raises UserFault."""


def bind_grpc(listen: Bind, name: str, at: HostPort) -> HostPort:
    """Have a server listen for the surface `name`; where it does.

    Raises:
        UserFault: the address cannot be had; says why and which flag changes it.
    """
    if at.port:
        bind(name, at).close()  # gRPC would not tell why it cannot
    host = address(name, at)
    return HostPort(host, listen(host, at.port))


def refused(name: str, at: HostPort, fault: OSError) -> UserFault:
    """What to tell of an address that cannot be had."""
    why = _WHY.get(fault.errno or 0, f"cannot be used: {fault.strerror}")
    return UserFault(f"the address {at} of listener {name} {why}; {_advice(name)}")


def address(name: str, at: HostPort) -> str:
    """The one IP address that `at.host` means here; a surface listens on one.

    Raises:
        UserFault: nobody knows the name.
    """
    try:
        found = socket.getaddrinfo(at.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as fault:
        raise UserFault(
            f"the host {at.host!r} of listener {name} is not known; {_advice(name)}"
        ) from fault
    return str(found[0][4][0])


def bound(listening: socket.socket) -> HostPort:
    """Where a socket really listens."""
    host, port = listening.getsockname()[:2]
    return HostPort(host, port)


def reachable(at: HostPort) -> HostPort:
    """The same for a client on this machine: what listens everywhere answers on loopback."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(at.host, at.host)  # noqa: S104  # compared only
    return HostPort(host, at.port)


def _advice(name: str) -> str:
    return f"choose another with --listen {name}=HOST:PORT (port 0 takes any free one)"
