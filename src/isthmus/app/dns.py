"""Cluster DNS: its two sockets at one port, and the names that the operator gave."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from isthmus.app import listeners
from isthmus.config import ServerConfig
from isthmus.config.values import HostPort
from isthmus.engine import Put
from isthmus.errors import UserFault
from isthmus.mesh.dns import HOSTS

NAME = "dns"
_TRIES = 16


def bind(at: HostPort) -> tuple[socket.socket, socket.socket]:
    """A UDP and a listening TCP socket at one address and port.

    Raises:
        UserFault: one of them cannot be had; says why.
    """
    for _ in range(_TRIES):
        listening = listeners.bind(NAME, at)
        try:
            return _datagrams(listeners.bound(listening), listening.family), listening
        except OSError as fault:
            listening.close()
            if at.port:  # a free TCP port need not be a free UDP port: then take another
                raise listeners.refused(NAME, at, fault) from fault
    raise UserFault(f"no port of {at.host} is free for both UDP and TCP")


def _datagrams(at: HostPort, family: socket.AddressFamily) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.bind((at.host, at.port))
    except OSError:
        made.close()
        raise
    return made


def hosts(config: ServerConfig) -> Iterator[Put[str, tuple[str, ...]]]:
    """The operator's names as rows."""
    by_name: dict[str, list[str]] = {}
    for name, ip in config.dns_hosts:
        by_name.setdefault(name, []).append(ip)
    for name, ips in by_name.items():
        yield Put(HOSTS, name, tuple(ips))
