"""Where a server listens."""

from __future__ import annotations

import grpc

from isthmus.errors import UserFault


def bind(
    server: grpc.aio.Server, host: str, port: int, credentials: grpc.ServerCredentials | None = None
) -> int:
    """Listen at an IP address, in plain text or with TLS; return the port, chosen if it was 0.

    Raises:
        UserFault: the address cannot be had.
    """
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if credentials is None:
            return server.add_insecure_port(at)
        return server.add_secure_port(at, credentials)
    except RuntimeError as fault:
        raise UserFault(f"the address {at} cannot be used") from fault
