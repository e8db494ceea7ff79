"""Secrets that hold the token of a ServiceAccount, as far as they are nobody's secret.

Other Secrets have no row here, and of these the token itself is not in it: only whether there is
one.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Final

import msgspec

from isthmus.engine import Table
from isthmus.mesh.tables import Source, place
from isthmus.model.core import Secret
from isthmus.model.key import ObjectKey

TYPE: Final = "kubernetes.io/service-account-token"
NAME: Final = "kubernetes.io/service-account.name"
UID: Final = "kubernetes.io/service-account.uid"


class AccountSecret(msgspec.Struct, frozen=True):
    """A Secret of that type.

    `account` and `account_uid` are what it says of the ServiceAccount, `filled` is whether a token
    is in it, `root_ca` and `within` what stands there for the CA's certificate and the namespace.
    """

    uid: str
    deletion_timestamp: str
    account: str
    account_uid: str
    filled: bool
    root_ca: str
    within: str


ACCOUNT_SECRETS: Table[ObjectKey, AccountSecret] = Table("account_secrets", scope=place)

LISTED: Final = frozenset({"account_secrets"})
"""The tables whose names may be listed: a controller fills them one by one."""


_SECRET = msgspec.json.Decoder(Secret)


def account_secret(value: bytes) -> AccountSecret | None:
    """The row of stored bytes; None for Secrets of other types.

    Raises:
        msgspec.MsgspecError: it cannot be read.
    """
    row = _SECRET.decode(value)
    if row.type != TYPE:
        return None
    meta, data = row.metadata, row.data
    return AccountSecret(
        uid=meta.uid,
        deletion_timestamp=meta.deletion_timestamp,
        account=meta.annotations.get(NAME, ""),
        account_uid=meta.annotations.get(UID, ""),
        filled=bool(data.get("token")),
        root_ca=_plain(data.get("ca.crt", "")),
        within=_plain(data.get("namespace", "")),
    )


def _plain(text: str) -> str:
    """Base64 as text; "" if it is none."""
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:
        return ""


ACCOUNT_SOURCES: Final[Mapping[str, Source]] = {
    "secrets": Source(ACCOUNT_SECRETS, account_secret),
}
"""By the resource part of store keys."""
