from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, Invalid, UserFault
from isthmus.model.key import Key
from isthmus.serve.kube import options
from isthmus.serve.kube.options import (
    Match,
    Validation,
    get_options,
    list_options,
    watch_options,
    write_options,
)
from isthmus.serve.kube.paging import write_continue
from isthmus.serve.kube.query import MAX_PARAMETERS, MAX_QUERY, parse_query
from isthmus.serve.kube.status import refusal
from tests.unit.serve.kube.kinds import WIDGET


def faults(error: UserFault) -> set[str]:
    return {cause.path for cause in error.causes}


# ---- query


def test_a_query_keeps_every_value_in_order_decoded_once() -> None:
    query = parse_query("a=1&b=x%3Dy&a=2&empty=&plus=a+b&twice=%2525")
    assert query == {
        "a": ("1", "2"), "b": ("x=y",), "empty": ("",), "plus": ("a b",), "twice": ("%25",),
    }  # fmt: skip


def test_a_query_that_is_not_utf8_stands() -> None:
    assert parse_query("a=%ff") == {"a": ("\ufffd",)}


@pytest.mark.parametrize("raw", ["a" * (MAX_QUERY + 1), "&".join(["a=1"] * (MAX_PARAMETERS + 1))])
def test_a_query_too_long_is_refused(raw: str) -> None:
    with pytest.raises(BadRequest):
        parse_query(raw)


# ---- list


def test_a_plain_list_asks_for_everything_at_the_newest_revision() -> None:
    asked = list_options({}, WIDGET)
    assert asked == options.ListOptions()
    assert asked.selector.everything
    assert (asked.exact, asked.at_least) == (0, 0)


def test_kubectls_list() -> None:
    query = parse_query("limit=500&labelSelector=a%3Db&fieldSelector=metadata.name%3Dw&pretty=true")
    asked = list_options(query, WIDGET)
    assert asked.limit == 500
    assert asked.selector.name == "w"
    assert asked.selector.labels[0].key == "a"


@pytest.mark.parametrize(
    ("query", "revision", "exact", "at_least"),
    [
        ("", None, 0, 0),
        ("resourceVersion=", None, 0, 0),
        ("resourceVersion=0", 0, 0, 0),
        ("resourceVersion=7", 7, 0, 7),
        ("resourceVersion=7&resourceVersionMatch=NotOlderThan", 7, 0, 7),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan", 0, 0, 0),
        ("resourceVersion=7&resourceVersionMatch=Exact", 7, 7, 0),
    ],
)
def test_resource_versions_of_lists(
    query: str, revision: int | None, exact: int, at_least: int
) -> None:
    asked = list_options(parse_query(query), WIDGET)
    assert (asked.revision, asked.exact, asked.at_least) == (revision, exact, at_least)


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("resourceVersionMatch=Exact", {"resourceVersionMatch"}),
        ("resourceVersionMatch=Soon&resourceVersion=1", {"resourceVersionMatch"}),
        ("resourceVersionMatch=Exact&resourceVersion=0", {"resourceVersionMatch"}),
        ("sendInitialEvents=true", {"sendInitialEvents"}),
        ("sendInitialEvents=&resourceVersionMatch=Exact",
         {"sendInitialEvents", "resourceVersionMatch"}),
    ],
)  # fmt: skip
def test_combinations_that_lists_forbid(query: str, paths: set[str]) -> None:
    with pytest.raises(Invalid) as refused:
        list_options(parse_query(query), WIDGET)
    assert faults(refused.value) == paths


def test_a_forbidden_combination_is_said_as_kubernetes_says_it() -> None:
    with pytest.raises(Invalid) as refused:
        list_options(parse_query("resourceVersionMatch=Exact"), WIDGET)
    assert refusal(refused.value, "").status["message"] == (
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
        "resourceVersionMatch is forbidden unless resourceVersion is provided"
    )


@pytest.mark.parametrize(
    "query",
    [
        "limit=many",
        "limit=1.5",
        "limit=99999999999999999999",
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersion=٣",
        "timeoutSeconds=soon",
        "labelSelector=a%20b",
        "fieldSelector=spec.other%3D1",
        "continue=garbage",
    ],
)
def test_what_cannot_be_read_is_a_bad_request(query: str) -> None:
    with pytest.raises(BadRequest):
        list_options(parse_query(query), WIDGET)


def test_all_faults_are_named_at_once() -> None:
    query = "limit=x&resourceVersion=y&timeoutSeconds=z&labelSelector=%3D"
    with pytest.raises(BadRequest) as refused:
        list_options(parse_query(query), WIDGET)
    assert faults(refused.value) == {"limit", "resourceVersion", "timeoutSeconds", ""}
    assert 'limit: Invalid value: "x"' in refused.value.message
    assert "unable to parse requirement" in refused.value.message


def test_limits_and_timeouts_below_one_count_as_none() -> None:
    asked = list_options(parse_query("limit=-5&timeoutSeconds=0"), WIDGET)
    assert (asked.limit, asked.timeout) == (0, None)


def test_a_continued_list_is_exact_and_goes_on_after_the_key() -> None:
    last = Key(WIDGET.resource, "n", "w")
    token = write_continue(41, last, "n", b"secret")
    asked = list_options({"continue": (token,), "limit": ("2",)}, WIDGET, "n", b"secret")
    assert (asked.after, asked.exact, asked.limit) == (last, 41, 2)
    assert list_options(
        {"continue": (token,), "resourceVersion": ("0",)}, WIDGET, "n", b"secret"
    ).exact == 41  # fmt: skip


def test_a_continued_list_takes_no_revision_and_no_match() -> None:
    token = write_continue(41, Key(WIDGET.resource, "", "w"))
    with pytest.raises(BadRequest, match="not allowed when using continue"):
        list_options({"continue": (token,), "resourceVersion": ("7",)}, WIDGET)
    with pytest.raises(Invalid, match="forbidden when continue is provided"):
        list_options({"continue": (token,), "resourceVersionMatch": ("Exact",)}, WIDGET)


# ---- watch


def test_is_watch() -> None:
    assert options.is_watch(parse_query("watch=true"))
    assert options.is_watch(parse_query("watch=1"))
    assert options.is_watch(parse_query("watch"))
    assert not options.is_watch(parse_query("watch=false"))
    assert not options.is_watch(parse_query("watch=0"))
    assert not options.is_watch({})


KUBECTL_WAIT = (
    "allowWatchBookmarks=true&fieldSelector=metadata.name%3Dx&resourceVersionMatch=NotOlderThan"
    "&sendInitialEvents=true&timeoutSeconds=30&watch=true"
)


def test_kubectls_watch_list() -> None:
    asked = watch_options(parse_query(KUBECTL_WAIT), WIDGET)
    assert asked.bookmarks
    assert asked.from_start
    assert asked.initial_events is True
    assert asked.timeout == 30
    assert asked.selector.name == "x"


@pytest.mark.parametrize(
    ("query", "from_start"),
    [
        ("", True),
        ("resourceVersion=0", True),
        ("resourceVersion=5", False),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=5", True),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", False),
    ],
)
def test_where_a_watch_begins(query: str, from_start: bool) -> None:
    assert watch_options(parse_query(query), WIDGET).from_start is from_start


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("sendInitialEvents=true", 1),
        ("resourceVersionMatch=NotOlderThan", 1),
        ("resourceVersionMatch=Exact", 2),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 2),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", 1),
    ],
)
def test_combinations_that_watches_forbid(query: str, count: int) -> None:
    with pytest.raises(Invalid) as refused:
        watch_options(parse_query(query), WIDGET)
    assert len(refused.value.causes) == count


def test_a_watch_names_unreadable_values() -> None:
    with pytest.raises(BadRequest) as refused:
        watch_options(parse_query("resourceVersion=x&timeoutSeconds=y"), WIDGET)
    assert faults(refused.value) == {"resourceVersion", "timeoutSeconds"}


# ---- get


def test_a_get_may_name_a_revision() -> None:
    assert get_options(parse_query("resourceVersion=7")).revision == 7
    assert get_options({}).revision is None
    with pytest.raises(BadRequest):
        get_options(parse_query("resourceVersion=x"))


def test_a_revision_of_the_future_is_a_timeout_that_says_so() -> None:
    told = refusal(options.too_new(99, 5), "").status
    assert (told["code"], told["reason"]) == (504, "Timeout")
    assert told["message"] == "Too large resource version: 99, current: 5"
    assert told["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


# ---- write


def test_a_plain_write_warns_of_unknown_fields() -> None:
    assert write_options({}) == options.WriteOptions(validation=Validation.WARN)
    assert write_options(parse_query("fieldValidation=")).validation is Validation.WARN


def test_kubectls_write() -> None:
    query = parse_query("fieldManager=kubectl-create&fieldValidation=Strict&dryRun=All&dryRun=")
    assert write_options(query) == options.WriteOptions(
        manager="kubectl-create", validation=Validation.STRICT, dry_run=True
    )


def test_server_side_apply_may_force_and_must_name_its_manager() -> None:
    assert write_options(parse_query("fieldManager=m&force=true"), apply=True).force
    with pytest.raises(Invalid) as refused:
        write_options(parse_query("force=true"), apply=True)
    assert faults(refused.value) == {"fieldManager"}


def test_all_faults_of_a_write_are_named() -> None:
    query = {
        "fieldManager": ("\n" * 129,), "fieldValidation": ("Maybe",), "dryRun": ("true",),
        "force": ("true",),
    }  # fmt: skip
    with pytest.raises(Invalid) as refused:
        write_options(query)
    paths = [cause.path for cause in refused.value.causes]
    assert paths == ["fieldManager", "fieldManager", "force", "fieldValidation", "dryRun"]


def test_match_has_an_unset_value() -> None:
    assert Match("") is Match.UNSET
