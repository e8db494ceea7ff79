"""Secrets of type kubernetes.io/service-account-token: filled, kept right, and removed in time.

Who makes such a Secret and names a ServiceAccount in its annotation gets a token there that holds
as long as both exist. It goes with its account; one made before its account waits for it.
"""

from __future__ import annotations

from base64 import b64encode

from isthmus.controllers.settings import SETTINGS
from isthmus.controllers.steps import JSON, Delete, Issue, Plan, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.accounts import ACCOUNT_SECRETS, UID, AccountSecret
from isthmus.mesh.census import Place
from isthmus.mesh.tables import SERVICE_ACCOUNTS
from isthmus.model.key import ObjectKey

SECRETS = "secrets"


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every such Secret of a namespace."""
    return ACCOUNT_SECRETS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """A token where there is none, the rest where it is wrong; deletion without the account."""
    row = ACCOUNT_SECRETS.get(db, key)
    if row is None or row.deletion_timestamp:
        return ()
    account = SERVICE_ACCOUNTS.get(db, key._replace(name=row.account))
    uid = account.metadata.uid if account is not None else ""
    if row.account_uid and row.account_uid != uid:
        return (Delete(SECRETS, key.namespace, key.name, row.uid),)
    if account is None or account.metadata.deletion_timestamp:
        return ()
    settings = SETTINGS.get(db, key.cluster)
    merge = _missing(key, row, uid, settings.root_ca if settings is not None else "")
    where = (SECRETS, key.namespace, key.name, row.uid)
    if not row.filled:
        return (Issue(*where, row.account, uid, canonical(merge)),)
    return (Update(*where, canonical(merge)),) if merge else ()


def _missing(key: ObjectKey, row: AccountSecret, uid: str, root_ca: str) -> dict[str, JSON]:
    """What the Secret does not say yet, beside the token."""
    merge: dict[str, JSON] = {}
    if row.account_uid != uid:
        merge["metadata"] = {"annotations": {UID: uid}}
    wanted = [("ca.crt", row.root_ca, root_ca), ("namespace", row.within, key.namespace)]
    data = {name: _base64(text) for name, held, text in wanted if text and held != text}
    if data:
        merge["data"] = data
    return merge


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
