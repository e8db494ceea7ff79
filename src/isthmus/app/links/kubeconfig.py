"""The kubeconfig in a Secret: how to reach a cluster, with everything embedded.

It comes from another cluster. So it may name no file of ours, no program to run and no proxy, and
credentials are told only to a server that proves itself.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from yarl import URL

from isthmus.errors import UserFault
from isthmus.mesh.credentials import KUBECONFIG
from isthmus.model.core import Secret
from isthmus.model.document import get, items, text
from isthmus.model.kind import Document
from isthmus.serve.kube.yaml_body import strict_yaml
from isthmus.store.kubernetes import Access

_FILES: Final = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_REFUSED: Final = {
    "cluster": ("proxy-url",),
    "user": ("exec", "auth-provider", "username", "password", "as"),
}
_LONGEST: Final = 16 * 1024
"""Characters of a token."""


class Unusable(UserFault):
    """Credentials that cannot be used; `word` says why in CamelCase."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


def kubeconfig_of(secret: bytes) -> bytes:
    """The kubeconfig in the stored bytes of a Secret; Unusable if there is none."""
    try:
        data = msgspec.json.decode(secret, type=Secret).data.get(KUBECONFIG, "")
        found = base64.b64decode(data, validate=True)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise Unusable("BadSecret", "the Secret's data cannot be read") from None
    if not found.strip():
        raise Unusable("NoKubeconfig", f"the Secret has no {KUBECONFIG}")
    return found


def access_of(kubeconfig: bytes) -> Access:
    """How to reach the cluster of the current context; Unusable says what is wrong."""
    try:
        document, _ = strict_yaml(kubeconfig)
    except UserFault as fault:
        raise Unusable("BadKubeconfig", f"the kubeconfig: {fault.message}") from None
    context = _entry(document, "context", text(document, "current-context"))
    cluster = _entry(document, "cluster", text(context, "cluster"))
    user = _entry(document, "user", text(context, "user"))
    for kind, entry in (("cluster", cluster), ("user", user)):
        _refuse(kind, entry)
    found = Access(
        server=_server(text(cluster, "server")),
        authority=_pem(cluster, "certificate-authority-data"),
        token=_token(user),
        certificate=_pem(user, "client-certificate-data"),
        key=_pem(user, "client-key-data"),
        server_name=text(cluster, "tls-server-name"),
    )
    if not found.token and not (found.certificate and found.key):
        raise _bad("the user has neither a token nor a certificate with its key")
    return found


def _bad(why: str) -> Unusable:
    return Unusable("BadKubeconfig", f"the kubeconfig: {why}")


def _entry(document: Document, kind: str, name: str) -> Document:
    """The named cluster, user or context; the first of that name counts."""
    if not name:
        what = "current-context" if kind == "context" else f"{kind} of its current context"
        raise _bad(f"it has no {what}")
    for each in items(document, f"{kind}s"):
        found = get(each, kind)
        if text(each, "name") == name and isinstance(found, dict):
            return found
    raise _bad(f"there is no {kind} {name[:64]!r}")


def _refuse(kind: str, entry: Document) -> None:
    for name in _FILES[kind]:
        if entry.get(name):
            raise _bad(f"{name} names a file; only embedded data is taken ({name}-data)")
    for name in _REFUSED[kind]:
        if entry.get(name):
            raise _bad(f"{name} is not taken")
    if entry.get("insecure-skip-tls-verify") is True:
        raise _bad("insecure-skip-tls-verify would tell the credentials to whoever answers")


def _server(said: str) -> str:
    try:
        url = URL(said)
        good = url.scheme == "https" and url.host and url.port and not url.user
    except ValueError:
        good = False
    if not good or "?" in said or "#" in said:
        raise _bad("server must be https://HOST[:PORT]")
    return said.rstrip("/")


def _token(user: Document) -> str:
    said = text(user, "token").strip()
    if len(said) > _LONGEST or not said.isascii() or any(mark <= " " for mark in said):
        raise _bad("the token is none")
    return said


def _pem(entry: dict[str, Any], name: str) -> str:
    data = text(entry, name)
    try:
        found = base64.b64decode(data, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise _bad(f"{name} is not base64 of PEM text") from None
    if data and "-----BEGIN " not in found:
        raise _bad(f"{name} is not PEM")
    return found
