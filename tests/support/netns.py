"""A network namespace as a pod has one: loopback, one address, a default route."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from pyroute2 import IPRoute
from pyroute2.nftables.main import NFTables

from isthmus.agent import redirect
from isthmus.lab.network.namespace import Namespace

ADDRESS: Final = "10.9.9.9"


@contextmanager
def pod() -> Iterator[Namespace]:
    """Needs root, or a user namespace of one's own; without either the test fails, as it should."""
    made = Namespace.make("test pod")
    try:
        with made.entered(), IPRoute() as routes:
            routes.link("set", index=1, state="up")
            routes.link("add", ifname="eth0", kind="veth", peer="eth1")
            inner, outer = (routes.link_lookup(ifname=name)[0] for name in ("eth0", "eth1"))
            for index in (inner, outer):
                routes.link("set", index=index, state="up")
            routes.addr("add", index=inner, address=ADDRESS, prefixlen=24)
            routes.route("add", dst="default", gateway="10.9.9.1")
        yield made
    finally:
        made.close()


@contextmanager
def beyond(inside: Namespace) -> Iterator[Namespace]:
    """Who has `inside` as a router. Its link ends with it."""
    made = Namespace.make("beyond")
    try:
        with inside.entered(), IPRoute() as routes:
            outer = routes.link_lookup(ifname="eth1")[0]
            routes.link("set", index=outer, net_ns_fd=made.handle)
        with made.entered(), IPRoute() as routes:
            routes.link("set", index=1, state="up")
            here = routes.link_lookup(ifname="eth1")[0]
            routes.addr("add", index=here, address="10.9.9.1", prefixlen=24)
            routes.link("set", index=here, state="up")
            routes.route("add", dst="default", gateway=ADDRESS)
        yield made
    finally:
        made.close()


def serve(inside: Namespace, port: int) -> None:
    """Who connects there is told the port."""
    listening = inside.listen("0.0.0.0", port)
    listening.setblocking(True)

    def answer() -> None:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(str(port).encode())

    threading.Thread(target=answer, daemon=True).start()


_ASK = """
import os, socket, sys
host, port, uid, source, mark = sys.argv[1:]
if uid: os.setgid(int(uid)); os.setuid(int(uid))
asking = socket.socket()
asking.settimeout(1)
if mark: asking.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, int(mark))
if source: asking.bind((source, 0))
try:
    asking.connect((host, int(port)))
    print(asking.recv(10).decode())
except OSError as fault:
    print(type(fault).__name__)
"""


def ask(
    inside: Namespace,
    host: str,
    port: int,
    *,
    uid: int | str = "",
    source: str = "",
    mark: str = "",
) -> str:
    """Which port answers who connects to `host:port` from inside."""
    arguments = [host, str(port), str(uid), source, mark]
    with inside.entered():
        done = subprocess.run(
            [sys.executable, "-c", _ASK, *arguments], capture_output=True, text=True, check=False
        )
    return done.stdout.strip() or done.stderr


def tables(inside: Namespace) -> list[str]:
    """Names of the nf_tables tables inside. In a thread: pyroute2 wants a loop of its own."""

    def look() -> list[str]:
        with inside.entered():
            asking = NFTables(nfgen_family=2)
            try:
                return redirect.tables_here(asking)
            finally:
                asking.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(look).result()
