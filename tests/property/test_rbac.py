"""Laws of RBAC: queries answer as a reader of all roles and bindings would, after any history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.engine import Change, Database, Delete
from isthmus.mesh.rbac import RBAC_SOURCES
from isthmus.mesh.rights import TooManyRights, allows, missing
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Document
from isthmus.model.rbac import PolicyRule
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.auth import Attributes, User
from isthmus.serve.kube.rbac import Rbac
from tests.support.examples import examples
from tests.support.rights import HERE, account, binding, group, put, role, user

VERBS = ("get", "list", "create", "impersonate")
GROUPS = ("", "apps", "policy.linkerd.io")
RESOURCES = ("pods", "pods/log", "secrets", "deployments", "deployments/scale")
NAMES = ("x", "y")
SPACES = ("", "a", "b")
PATHS = ("/api", "/api/v1", "/metrics", "/version")

lists = st.lists


def some(values: Iterable[str], *, star: bool = True) -> st.SearchStrategy[list[str]]:
    pool = (*values, *("*" if star else ()))
    return lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True)


RESOURCE_RULES = st.fixed_dictionaries(
    {
        "verbs": some(VERBS),
        "apiGroups": some(GROUPS),
        "resources": some((*RESOURCES, "*/log", "*/scale")),
    },
    optional={"resourceNames": some(NAMES, star=False)},
)
URL_RULES = st.fixed_dictionaries(
    {"verbs": some(VERBS), "nonResourceURLs": some((*PATHS, "/api/*", "/a*"))}
)
RULES = st.one_of(RESOURCE_RULES, RESOURCE_RULES, URL_RULES)

SUBJECTS = st.one_of(
    st.sampled_from(["alice", "bob"]).map(user),
    st.sampled_from(["devs", "system:serviceaccounts:a"]).map(group),
    st.builds(account, st.sampled_from(["a", "b"]), st.sampled_from(["bot", "x"])),
)
USERS = st.one_of(
    st.builds(
        User,
        st.sampled_from(["alice", "bob", "carol"]),
        lists(st.sampled_from(["devs", "ops"]), unique=True).map(tuple),
    ),
    st.sampled_from([("a", "bot"), ("b", "bot"), ("a", "x")]).map(
        lambda at: User(
            f"system:serviceaccount:{at[0]}:{at[1]}", (f"system:serviceaccounts:{at[0]}",)
        )
    ),
)
ROLE_NAMES = st.sampled_from(["r1", "r2", "r3"])
OBJECTS = st.one_of(
    st.builds(
        lambda name, rules, namespace: role(name, *rules, namespace=namespace),
        ROLE_NAMES, lists(RULES, max_size=3), st.sampled_from(SPACES),
    ),
    st.builds(
        lambda name, kind, to, subjects, namespace: binding(
            name, f"{kind if namespace else 'ClusterRole'}/{to}", *subjects, namespace=namespace
        ),
        ROLE_NAMES, st.sampled_from(["Role", "ClusterRole"]), ROLE_NAMES,
        lists(SUBJECTS, max_size=3), st.sampled_from(SPACES),
    ),
)  # fmt: skip
QUESTIONS = st.one_of(
    st.builds(
        lambda verb, api, full, namespace, name: Attributes(
            verb, api, "v1", full.partition("/")[0], full.partition("/")[2], namespace, name
        ),
        st.sampled_from(VERBS), st.sampled_from(GROUPS), st.sampled_from(RESOURCES),
        st.sampled_from(SPACES), st.sampled_from(["", *NAMES]),
    ),
    st.builds(lambda verb, path: Attributes(verb, path=path), st.sampled_from(VERBS),
              st.sampled_from(PATHS)),
)  # fmt: skip


class History(dict[tuple[str, str, str], Document]):
    """What stands in the store, by kind, namespace and name."""

    def write(self, document: Document) -> Change:
        """Create or replace an object."""
        self[at(document)] = document
        return put(document)

    def remove(self, document: Document) -> Change:
        """Delete an object, if it is there."""
        self.pop(at(document), None)
        kind = BUILT_IN.by_api_version(document["apiVersion"], document["kind"])
        assert kind is not None
        _, namespace, name = at(document)
        return Delete(RBAC_SOURCES[kind.resource].table, ObjectKey(HERE, namespace, name))


def at(document: Document) -> tuple[str, str, str]:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


# ---------------------------------------------------------------------- the naive reading


def naive(world: History, who: User, asked: Attributes) -> bool:
    """Look at every binding, and in each that means them at every rule."""
    return any(rule_allows(rule, asked) for rule in rules_of(world, who, asked))


def rules_of(world: History, who: User, asked: Attributes) -> Iterator[Document]:
    for (kind, namespace, _), document in world.items():
        if not kind.endswith("Binding"):
            continue
        here = not namespace or (namespace == asked.namespace and not asked.path)
        if here and any(means(each, who) for each in document["subjects"]):
            to = document["roleRef"]
            within = namespace if to["kind"] == "Role" else ""
            yield from world.get((to["kind"], within, to["name"]), {}).get("rules", ())


def means(subject: Document, who: User) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == who.name)
        case "Group":
            return subject["name"] in who.groups
        case _:
            return who.name.split(":") == [
                "system", "serviceaccount", subject["namespace"], subject["name"]
            ]  # fmt: skip


def rule_allows(rule: Document, asked: Attributes) -> bool:
    if not {"*", asked.verb}.intersection(rule["verbs"]):
        return False
    if asked.path:
        urls = rule.get("nonResourceURLs", ())
        return any(
            asked.path.startswith(url[:-1]) if url.endswith("*") else asked.path == url
            for url in urls
        )
    if "resources" not in rule or not {"*", asked.group}.intersection(rule["apiGroups"]):
        return False
    full = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    wanted = {"*", full, f"*/{asked.subresource}" if asked.subresource else full}
    names = rule.get("resourceNames")
    return bool(wanted.intersection(rule["resources"])) and (not names or asked.name in names)


# --------------------------------------------------------------------------------- laws


STEPS = lists(st.tuples(st.sampled_from(["write", "write", "remove"]), OBJECTS), max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(STEPS, lists(st.tuples(USERS, QUESTIONS), min_size=1, max_size=8), st.data())
def test_after_any_history_the_answers_are_those_of_a_naive_reader(
    steps: list[tuple[str, Document]], questions: list[tuple[User, Attributes]], data: st.DataObject
) -> None:
    world, db = History(), Database()
    rights = Rbac(db, HERE)
    for verb, document in steps:
        db.commit([getattr(world, verb)(document)])
        who, asked = data.draw(st.sampled_from(questions))
        assert rights.decide(who, asked).allowed is naive(world, who, asked)
    scratch = Database()
    scratch.commit([put(document) for document in world.values()])
    anew = Rbac(scratch, HERE)
    for who, asked in questions:
        decision = rights.decide(who, asked)
        assert decision.allowed is naive(world, who, asked)
        assert decision == anew.decide(who, asked)
        assert list(rights.rights(who, "a")) == list(anew.rights(who, "a"))


@settings(max_examples=examples(100), deadline=None)
@given(lists(OBJECTS, max_size=8), USERS, QUESTIONS)
def test_rights_that_are_told_are_those_that_decide(
    objects: list[Document], who: User, asked: Attributes
) -> None:
    db = Database()
    db.commit([put(document) for document in objects])
    rights = Rbac(db, HERE)
    told = any(allows(rule, asked) for rule in rights.rights(who, asked.namespace))
    assert rights.decide(who, asked).allowed is told


def of(rules: list[Document]) -> list[PolicyRule]:
    return list(msgspec.convert(rules, tuple[PolicyRule, ...]))


@given(lists(RULES, max_size=4), lists(RULES, max_size=3), lists(QUESTIONS, max_size=8))
def test_who_lacks_nothing_may_all_of_it(
    held: list[Document], wanted: list[Document], questions: list[Attributes]
) -> None:
    own, rules = of(held), of(wanted)
    lacking = missing(own, rules)
    for asked in questions:
        if not lacking and any(allows(rule, asked) for rule in rules):
            assert any(allows(rule, asked) for rule in own)
    assert missing([*own, *lacking], rules) == ()
    assert missing(rules, rules) == ()
    for single in lacking:
        assert missing(own, [single]) == (single,)


@given(lists(RULES, max_size=4), lists(RULES, min_size=1, max_size=3), st.integers(0, 60))
def test_patience_ends_or_the_answer_is_the_same(
    held: list[Document], wanted: list[Document], patience: int
) -> None:
    own, rules = of(held), of(wanted)
    try:
        found = missing(own, rules, patience)
    except TooManyRights:
        return
    assert found == missing(own, rules)
