"""gRPC clients inside a workload that ask the control plane themselves, without their Envoy.

They find a bootstrap and a socket in a folder of the workload's own. The socket leads where the
Envoy's leads, with the workload's certificate, and is open to processes in the workload's network
namespace alone: the kernel says who connects, and in which namespace that process is.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Final

from isthmus.agent.contract import Namespace, Seat
from isthmus.agent.tunnel import Admit, Peer, listen_unix

FOLDER: Final = "grpc"
"""Beside the folder of the proxy, which the workload cannot read."""
SOCKET: Final = "ads.sock"
BOOTSTRAP: Final = "bootstrap.json"


def open_folder(folder: Path, seat: Seat, seen: str) -> socket.socket:
    """Make the folder anew and listen in it; `seen` is its path inside the workload."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    file = folder / BOOTSTRAP
    file.write_bytes(bootstrap(seat, f"{seen}/{SOCKET}"))
    file.chmod(0o644)
    listening = listen_unix(folder / SOCKET)
    (folder / SOCKET).chmod(0o666)  # whichever user the workload is; who may is asked of the kernel
    return listening


def bootstrap(seat: Seat, at: str) -> bytes:
    """What gRPC reads at its start (GRPC_XDS_BOOTSTRAP)."""
    server = {
        "server_uri": f"unix://{at}",
        "channel_creds": [{"type": "insecure"}],
        "server_features": ["xds_v3"],
    }
    node: dict[str, object] = {"id": f"{seat.namespace}/{seat.name}", "cluster": seat.account}
    if seat.zone:
        node |= {"locality": {"zone": seat.zone}}
    return json.dumps({"xds_servers": [server], "node": node}).encode()


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
