from __future__ import annotations

import pytest

from isthmus.model.crd.jsonpath import MAX_FOUND, find, parse, simple

DOCUMENT = {
    "spec": {"a": 1, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "a.b": {"c-d": 5}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Ok"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        (".spec.none", []),
        (".spec.l[0].n", ["x"]),
        (".spec.l[-1].n", ["y"]),
        (".spec.l[7]", []),
        (".spec.l[*].n", ["x", "y"]),
        (".spec.l.*.v", [1, 2]),
        (".status.*[0].type", ["Ready"]),
        (r".spec.a\.b['c-d']", [5]),
        ("['spec'][\"a\"]", [1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'No')].status", []),
        (".status.conditions[?(@.status)].type", ["Ready"]),
        (".spec.l[?(@.v>1)].n", ["y"]),
        (".spec.l[?(@.v!=1)].n", ["y"]),
        (".spec.l[?(@.n<2)].n", []),
    ],
)
def test_paths_lead_somewhere(path: str, found: list[object]) -> None:
    assert find(parse(path), DOCUMENT) == found


@pytest.mark.parametrize(
    "path",
    ["", "spec", ".", ".spec[", ".spec[a]", ".a[?(@.b==)]", "{.a}", "..a", ".a b", ".a" * 600],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path|longer"):
        parse(path)


def test_simple_paths_only_name_fields() -> None:
    assert simple(".spec.replicas") == ("spec", "replicas")
    assert [simple(each) for each in ("spec", ".a[0]", ".a.", ".a['b']", "")] == [None] * 5


def test_no_path_leads_to_more_than_anybody_shows() -> None:
    many = {"l": [{"l": list(range(1000))}] * 1000}
    assert len(find(parse(".l[*].l[*]"), many)) == MAX_FOUND
