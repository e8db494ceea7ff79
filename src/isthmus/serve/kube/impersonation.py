"""Counting as somebody else: the Impersonate headers, each of which one must have the right to.

Kubernetes ("User impersonation"): a user, groups, a uid and extras are put on; each is one question
with the verb `impersonate`, so who may wear one user's name may not wear another's groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from isthmus.errors import BadRequest
from isthmus.mesh.rbac import account_user
from isthmus.serve.kube.auth import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    Authorizer,
    User,
    require,
)

MAX_IMPERSONATED = 64
"""Most groups and extras that one request may put on."""

_EXTRA = "impersonate-extra-"


def impersonate(headers: Sequence[tuple[str, str]], user: User, authorizer: Authorizer) -> User:
    """Who the request counts as: `user`, or whom its Impersonate headers name if `user` may.

    Each name, group, uid and extra put on is one question with the verb `impersonate`. Groups or
    extras without a user are BadRequest.
    """
    worn = [
        (key.lower(), value) for key, value in headers if key.lower().startswith("impersonate-")
    ]
    if not worn:
        return user
    if len(worn) > MAX_IMPERSONATED:
        raise BadRequest(f"more than {MAX_IMPERSONATED} Impersonate headers")
    if not all(value.isprintable() for _, value in worn):
        raise BadRequest("an Impersonate header holds characters that no name has")
    names = [value for key, value in worn if key == "impersonate-user"]
    if len(names) != 1 or not names[0]:
        raise BadRequest("impersonation needs exactly one Impersonate-User header")
    groups = tuple(value for key, value in worn if key == "impersonate-group")
    uid = next((value for key, value in worn if key == "impersonate-uid"), "")
    extra = _extra(worn)
    for asked in _worn(names[0], groups, uid, extra):
        require(authorizer, user, asked)
    return User(names[0], _groups_of(names[0], groups), uid, extra)


def _extra(worn: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in worn:
        if key.startswith(_EXTRA):
            name = unquote(key.removeprefix(_EXTRA))
            if not name or not name.isprintable():
                raise BadRequest("an Impersonate-Extra header has no usable key")
            extra[name] = (*extra.get(name, ()), value)
    return extra


def _worn(
    name: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]
) -> list[Attributes]:
    asked = [_impersonated_user(name)]
    asked += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    about = Attributes("impersonate", group="authentication.k8s.io", version="v1")
    if uid:
        asked.append(about._replace(resource="uids", name=uid))
    for key, values in extra.items():
        asked += [about._replace(resource="userextras", subresource=key, name=v) for v in values]
    return asked


def _impersonated_user(name: str) -> Attributes:
    """Accounts are asked about as such, in their namespace; what only looks like one is a user."""
    prefix, _, account = name.rpartition(":")
    namespace = prefix.rpartition(":")[2]
    if name == account_user(namespace, account):
        about = Attributes("impersonate", resource="serviceaccounts")
        return about._replace(namespace=namespace, name=account)
    return Attributes("impersonate", resource="users", name=name)


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    asked = _impersonated_user(name)
    derived: tuple[str, ...] = ()
    if asked.resource == "serviceaccounts" and not groups:
        derived = ("system:serviceaccounts", f"system:serviceaccounts:{asked.namespace}")
    if name == ANONYMOUS.name or UNAUTHENTICATED in groups:
        return tuple(dict.fromkeys((*groups, UNAUTHENTICATED)))
    return tuple(dict.fromkeys((*groups, *derived, AUTHENTICATED)))
