from __future__ import annotations

import pytest

from isthmus.errors import BadRequest
from isthmus.serve.kube.apply.fields import EMPTY, parse, show, write


def test_a_place_and_what_is_below_are_told_apart() -> None:
    fields = parse({"f:a": {"f:b": {}}, "f:c": {".": {}, "f:d": {}}, "f:e": {}})
    assert list(fields.paths()) == [("f:c",), ("f:e",), ("f:a", "f:b"), ("f:c", "f:d")]
    assert write(fields) == {"f:a": {"f:b": {}}, "f:c": {".": {}, "f:d": {}}, "f:e": {}}


def test_keys_and_values_have_one_spelling() -> None:
    one = parse({'k:{"protocol":"TCP", "port":80}': {}, 'v: "x"': {}, "i: 1": {}})
    assert one == parse({'k:{"port":80,"protocol":"TCP"}': {}, 'v:"x"': {}, "i:1": {}})
    long = "x" * 1000
    assert parse({f'v: "{long}"': {}}) == parse({f'v:"{long}"': {}})


def test_unknown_kinds_of_steps_are_passed_over() -> None:
    assert parse({"q:a": {"f:b": {}}, "": {}, "f": {}}) == EMPTY


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {"f:a": None}, {"f:a": []}, {"f:a": {"f:b": 1}}, {"k:": {}}, {"k:[]": {}},
        {"k:{}": {}}, {"k:{": {}}, {"v:": {}}, {"v:x": {}}, {"i:x": {}}, {"i:true": {}},
        {"i:1.5": {}}, {"q:a": 1}, {"v:" + "[" * 100_000: {}},
    ],
)  # fmt: skip
def test_what_is_no_set_is_refused(value: object) -> None:
    with pytest.raises(BadRequest, match="fieldsV1"):
        parse(value)


def test_depth_is_bounded() -> None:
    value: dict[str, object] = {}
    for _ in range(200):
        value = {"f:a": value}
    with pytest.raises(BadRequest, match="nested more than"):
        parse(value)


def test_paths_as_people_know_them() -> None:
    steps = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', "f:tags", 'v:"x"', "i:3")
    assert show(steps) == '.spec[port=80,protocol="TCP"].tags[="x"][3]'
