"""The authorizer: roles and bindings, as the tables have them now.

`system:masters` may everything, also while the tables are empty: without that, nobody could ever
write the first role. Everybody else has what bindings give, and nothing before the first sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ParamSpec, Protocol, TypeVar

from isthmus.engine import Query
from isthmus.mesh.rbac import Asker, Grant, rights
from isthmus.mesh.rights import EVERYTHING, allows
from isthmus.model.rbac import PolicyRule
from isthmus.serve.kube.auth import MASTERS, Attributes, Decision, User

P = ParamSpec("P")
T = TypeVar("T")

REFUSED = Decision(allowed=False)
UNBOUND = Decision(allowed=True, reason=f"group {MASTERS}")


class Tables(Protocol):
    """Where queries are asked: the board, or a database."""

    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T: ...


class Rbac:
    """Answers from the roles and bindings of one cluster."""

    def __init__(self, tables: Tables, cluster: str) -> None:
        self._tables = tables
        self._cluster = cluster

    def decide(self, user: User, asked: Attributes) -> Decision:
        """Whether some rule allows it; the reason names the binding that gave the rule."""
        if MASTERS in user.groups:
            return UNBOUND
        allowed = _first(self._grants(user, ""), asked)
        if allowed is None and asked.namespace and not asked.path:
            allowed = _first(self._grants(user, asked.namespace), asked)
        return REFUSED if allowed is None else Decision(allowed=True, reason=allowed.because)

    def rights(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        """All rules that the user has there, each once."""
        if MASTERS in user.groups:
            return EVERYTHING
        places = dict.fromkeys(("", namespace))
        grants = (grant for place in places for grant in self._grants(user, place))
        return tuple(dict.fromkeys(rule for grant in grants for rule in grant.rules))

    def _grants(self, user: User, namespace: str) -> tuple[Grant, ...]:
        return self._tables.read(rights, Asker(self._cluster, namespace, user.name, user.groups))


def _first(grants: Sequence[Grant], asked: Attributes) -> Grant | None:
    for grant in grants:
        for rule in grant.rules:
            if allows(rule, asked):
                return grant
    return None
