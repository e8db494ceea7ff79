"""One rule, one question; and whether rules cover others."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import msgspec
import pytest

from isthmus.engine import Table
from isthmus.mesh import accounts, rbac
from isthmus.mesh.rights import EVERYTHING, TooManyRights, allows, missing
from isthmus.model.kind import Document
from isthmus.model.rbac import PolicyRule
from tests.support.rights import allow, allow_urls


class Q(NamedTuple):
    """A question."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""


def rule(document: Document) -> PolicyRule:
    return msgspec.convert(document, PolicyRule)


PODS = Q("get", "", "pods")
LOG = Q("get", "", "pods", "log")
SCALE = Q("get", "apps", "deployments", "scale")


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (allow("get", "pods"), PODS, True),
        (allow("get", "pods"), PODS._replace(verb="list"), False),
        (allow("get", "pods"), PODS._replace(verb="GET"), False),
        (allow("*", "pods"), PODS._replace(verb="anything"), True),
        (allow("get", "pods"), PODS._replace(group="apps"), False),
        (allow("get", "pods", groups="*"), PODS._replace(group="apps"), True),
        (allow("get", "pods"), LOG, False),
        (allow("get", "pods/log"), LOG, True),
        (allow("get", "pods/log"), PODS, False),
        (allow("get", "*/log"), LOG, True),
        (allow("get", "*/log"), PODS, False),
        (allow("get", "*"), LOG, True),
        (allow("get", "*/scale", groups="apps"), SCALE, True),
        (allow("get", "pods/*"), LOG, False),
        (allow("get", "pod"), PODS, False),
        (allow("get", "pods", names="x"), PODS._replace(name="x"), True),
        (allow("get", "pods", names="x"), PODS._replace(name="xy"), False),
        (allow("get", "pods", names="x"), PODS, False),
        (allow("create", "pods", names="x"), Q("create", "", "pods"), False),
        (allow("list", "pods", names="x"), Q("list", "", "pods"), False),
        (allow("list", "pods", names="x"), Q("list", "", "pods", name="x"), True),
        (allow("get", "pods", names="*"), PODS._replace(name="x"), False),
        (allow("*", "*", groups="*"), Q("get", path="/api"), False),
        (allow_urls("get", "/api"), Q("get", path="/api"), True),
        (allow_urls("get", "/api"), Q("get", path="/api/v1"), False),
        (allow_urls("get", "/api/*"), Q("get", path="/api/v1"), True),
        (allow_urls("get", "/api/*"), Q("get", path="/apiary"), False),
        (allow_urls("get", "*"), Q("get", path="/x"), True),
        (allow_urls("get", "*"), Q("post", path="/x"), False),
        (allow_urls("get", "/a*b"), Q("get", path="/axb"), False),
        (allow_urls("*", "*"), PODS, False),
        (allow("get", "pods") | {"verbs": []}, PODS, False),
    ],
)
def test_rules(given: Document, asked: Q, allowed: bool) -> None:  # a table
    assert allows(rule(given), asked) is allowed


@pytest.mark.parametrize(
    ("held", "wanted", "lacking"),
    [
        ([], [allow("get", "pods")], [allow("get", "pods")]),
        ([allow("get,list", "pods,services")], [allow("list", "pods")], []),
        ([allow("get", "pods"), allow("list", "pods")], [allow("get,list", "pods")], []),
        ([allow("get", "pods")], [allow("get,list", "pods")], [allow("list", "pods")]),
        ([allow("get", "*")], [allow("get", "pods/log")], []),
        ([allow("get", "pods")], [allow("get", "*")], [allow("get", "*")]),
        ([allow("get", "*/log")], [allow("get", "pods/log")], []),
        ([allow("get", "pods")], [allow("get", "pods/log")], [allow("get", "pods/log")]),
        ([allow("get", "pods")], [allow("get", "pods", names="x")], []),
        ([allow("get", "pods", names="x")], [allow("get", "pods")], [allow("get", "pods")]),
        (
            [allow("get", "pods", names="x")],
            [allow("get", "pods", names="x,y")],
            [allow("get", "pods", names="y")],
        ),
        ([allow("*", "*", groups="*")], [allow_urls("get", "/x")], [allow_urls("get", "/x")]),
        ([allow_urls("get", "/a/*")], [allow_urls("get", "/a/b,/a/b*")], []),
        ([allow_urls("get", "/a/b")], [allow_urls("get", "/a/*")], [allow_urls("get", "/a/*")]),
        ([allow("get", "pods", groups="apps")], [allow("get", "pods")], [allow("get", "pods")]),
    ],
)
def test_coverage(held: list[Document], wanted: list[Document], lacking: list[Document]) -> None:
    found = missing(map(rule, held), map(rule, wanted))
    assert found == tuple(map(rule, lacking))


def test_those_who_may_everything_lack_nothing() -> None:
    assert (
        missing(EVERYTHING, [rule(allow("x", "y", groups="z")), rule(allow_urls("*", "*"))]) == ()
    )


def test_a_rule_of_a_million_rights_is_not_taken_apart() -> None:
    many = ",".join(f"n{number}" for number in range(100))
    huge = rule(allow(many, many, groups=many))
    with pytest.raises(TooManyRights):
        missing([rule(allow("get", "pods"))], [huge])
    assert missing(EVERYTHING, [huge]) == ()
    assert missing([huge], [huge]) == ()


@pytest.mark.parametrize(
    ("namespace", "name", "user"),
    [
        ("a", "bot", "system:serviceaccount:a:bot"),
        ("a", "bot.x", "system:serviceaccount:a:bot.x"),
        ("a:b", "c", ""),
        ("a", "b:c", ""),
        ("", "bot", ""),
        ("a", "", ""),
        ("a.b", "bot", ""),
        ("A", "bot", ""),
    ],
)
def test_accounts_are_users_of_one_spelling(namespace: str, name: str, user: str) -> None:
    assert rbac.account_user(namespace, name) == user


@pytest.mark.parametrize("module", [rbac, accounts])
def test_only_what_a_controller_attends_can_be_listed(module: ModuleType) -> None:
    tables = [each for each in vars(module).values() if isinstance(each, Table)]
    listed = {table.name for table in tables if table.listed is not None}
    assert listed - {"serviceaccounts"} == module.LISTED
