"""Links, addresses and routes, by rtnetlink. Each step may be done again.

`Links` belongs to one namespace and one thread that runs no event loop (pyroute2 runs its own).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from isthmus.lab.network.namespace import Namespace

LOOPBACK = 1
"""The index of `lo` in every namespace."""


@contextmanager
def _unless_there(*also: int) -> Iterator[None]:
    try:
        yield
    except NetlinkError as fault:
        if fault.code not in {errno.EEXIST, *also}:
            raise OSError(fault.code, str(fault)) from fault


class Links:
    """What `ip link`, `ip address` and `ip route` do, in one namespace."""

    def __init__(self, namespace: Namespace) -> None:
        with namespace.entered():
            self._route = IPRoute()

    def close(self) -> None:
        """Close the socket."""
        self._route.close()

    def index(self, name: str) -> int:
        """The number of a link; OSError when there is none."""
        found = self._route.link_lookup(ifname=name)
        if not found:
            raise OSError(errno.ENODEV, "there is no such link", name)
        return int(found[0])

    def bridge(self, name: str) -> int:
        """Make a bridge and take it up."""
        with _unless_there():
            self._route.link("add", ifname=name, kind="bridge")
        index = self.index(name)
        self.up(index)
        return index

    def veth(self, name: str, peer: str, into: Namespace, mac: str) -> int:
        """A pair of links: `name` here, `peer` inside another namespace with address `mac`."""
        with _unless_there():
            self._route.link(
                "add",
                ifname=name,
                kind="veth",
                peer={"ifname": peer, "net_ns_fd": into.handle, "address": mac},
            )
        return self.index(name)

    def attach(self, index: int, bridge: int) -> None:
        """Make a link a port of a bridge, and take it up."""
        self._route.link("set", index=index, master=bridge, state="up")

    def up(self, index: int) -> None:
        """Take a link up."""
        self._route.link("set", index=index, state="up")

    def remove(self, name: str) -> None:
        """Remove a link, and with it its peer; harmless when it is gone."""
        found = self._route.link_lookup(ifname=name)
        if found:
            with _unless_there(errno.ENODEV, errno.EINVAL):
                self._route.link("del", index=found[0])

    def address(self, index: int, ip: IPv4Address | str, length: int = 32) -> None:
        """Give a link an address."""
        with _unless_there():
            self._route.addr("add", index=index, address=str(ip), prefixlen=length)

    def forget(self, index: int, ip: IPv4Address | str, length: int = 32) -> None:
        """Take an address away; harmless when it is gone."""
        with _unless_there(errno.EADDRNOTAVAIL):
            self._route.addr("del", index=index, address=str(ip), prefixlen=length)

    def default(self, gateway: IPv4Address) -> None:
        """Send everything else to `gateway`."""
        with _unless_there():
            self._route.route("add", dst="default", gateway=str(gateway))

    def via(self, network: IPv4Network, gateway: IPv4Address) -> None:
        """Send what is for `network` to `gateway`."""
        with _unless_there():
            self._route.route("add", dst=str(network), gateway=str(gateway))

    def unreachable(self, network: IPv4Network) -> None:
        """Refuse what is for `network` at once, instead of letting it time out."""
        with _unless_there():
            self._route.route("add", dst=str(network), type="unreachable")


def mac_of(ip: IPv4Address) -> str:
    """A link's address made of its IP: who gets the IP next is found where the last was."""
    return "02:42:" + ":".join(f"{byte:02x}" for byte in ip.packed)
