"""TLS contexts of the mesh, made from values: keys pass through memory, never through a disk.

Mesh TLS is 1.3 alone. There is no resumption: a session would remember a peer whose certificate has
expired since, or whose anchor was taken away.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence

from isthmus.ca.authority import Leaf
from isthmus.errors import UserFault


def server(leaf: Leaf, bundle: bytes, *, required: bool, alpn: Sequence[str]) -> ssl.SSLContext:
    """A listener's: shows `leaf`, verifies clients against `bundle`.

    `required`: a client without a certificate is refused; else it is taken as nobody. A client
    whose certificate is not good is refused either way.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    context.num_tickets = 0
    _furnish(context, leaf, bundle, alpn)
    return context


def client(leaf: Leaf | None, bundle: bytes, *, alpn: Sequence[str]) -> ssl.SSLContext:
    """A client's: trusts `bundle` alone, compares the server's name, shows `leaf` if given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _furnish(context, leaf, bundle, alpn)
    return context


def _furnish(
    context: ssl.SSLContext, leaf: Leaf | None, bundle: bytes, alpn: Sequence[str]
) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not bundle.strip():  # an empty bundle must not become "whatever the machine trusts"
        raise UserFault("there are no trust anchors to verify peers with")
    try:
        context.load_verify_locations(cadata=bundle.decode())
        if leaf is not None:
            _load(context, leaf)
    except (ssl.SSLError, ValueError) as fault:
        raise UserFault(f"certificates that TLS cannot use: {fault}") from fault
    context.set_alpn_protocols(list(alpn))


def _load(context: ssl.SSLContext, leaf: Leaf) -> None:
    """OpenSSL reads keys from files alone: one in memory, without a name, for a moment."""
    handle = os.memfd_create("leaf", os.MFD_CLOEXEC)
    try:
        with open(handle, "wb", closefd=False) as file:  # a handle, not a path
            file.write(leaf.certificate + leaf.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
