"""gRPC clients inside a workload that ask the control plane themselves, without their Envoy.

They find a bootstrap and a socket in a folder of the workload's own. The socket leads where the
Envoy's leads, with the workload's certificate, and is open to processes in the workload's network
namespace alone: the kernel says who connects, and in which namespace that process is. Beside it lie
key, certificate and trust, for channels that are made with xDS credentials: who asks for this has
the workload hold its own key.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Final

from isthmus.agent.contract import Namespace, Seat
from isthmus.agent.credential import Held
from isthmus.agent.tunnel import Admit, Peer, listen_unix

FOLDER: Final = "grpc"
"""Beside the folder of the proxy, which the workload cannot read."""
SOCKET: Final = "ads.sock"
BOOTSTRAP: Final = "bootstrap.json"
KEY: Final = "key.pem"
CHAIN: Final = "chain.pem"
BUNDLE: Final = "bundle.pem"

PROVIDER: Final = "default"
"""What resources call the instance that reads these files."""
_REFRESH: Final = "10s"
"""How often gRPC looks whether they are others."""


def open_folder(folder: Path, seat: Seat, seen: str, held: Held) -> socket.socket:
    """Fill the folder and listen in it; `seen` is its path inside the workload."""
    write(folder, held)
    _write(folder / BOOTSTRAP, bootstrap(seat, seen))
    listening = listen_unix(folder / SOCKET)
    (folder / SOCKET).chmod(0o666)  # whichever user the workload is; who may is asked of the kernel
    return listening


def write(folder: Path, held: Held) -> None:
    """Certificate, key and trust; gRPC takes no key beside another's certificate."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    files = {KEY: held.leaf.key, CHAIN: held.leaf.certificate, BUNDLE: held.bundle}
    for name, data in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            _write(path, data)


def _write(path: Path, data: bytes) -> None:
    """Renamed into place, to be read by whichever user the workload is."""
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def bootstrap(seat: Seat, folder: str) -> bytes:
    """What gRPC reads at its start (GRPC_XDS_BOOTSTRAP)."""
    server = {
        "server_uri": f"unix://{folder}/{SOCKET}",
        "channel_creds": [{"type": "insecure"}],
        "server_features": ["xds_v3"],
    }
    files = {
        "certificate_file": f"{folder}/{CHAIN}",
        "private_key_file": f"{folder}/{KEY}",
        "ca_certificate_file": f"{folder}/{BUNDLE}",
        "refresh_interval": _REFRESH,
    }
    node: dict[str, object] = {"id": f"{seat.namespace}/{seat.name}", "cluster": seat.account}
    if seat.zone:
        node |= {"locality": {"zone": seat.zone}}
    providers = {PROVIDER: {"plugin_name": "file_watcher", "config": files}}
    said = {"xds_servers": [server], "node": node, "certificate_providers": providers}
    return json.dumps(said).encode()


def from_inside(namespace: Namespace) -> Admit:
    """Whether a process lives in the namespace."""
    with namespace.entered():
        own = Path("/proc/thread-self/ns/net").stat()

    def admit(peer: Peer) -> bool:
        try:
            theirs = Path(f"/proc/{peer.pid}/ns/net").stat()
        except OSError:  # it has ended
            return False
        return (theirs.st_dev, theirs.st_ino) == (own.st_dev, own.st_ino)

    return admit
