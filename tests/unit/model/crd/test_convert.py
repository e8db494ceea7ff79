from __future__ import annotations

from isthmus.model.crd.convert import escaped, to_cel
from isthmus.model.crd.structural import read


def test_names_as_rules_write_them() -> None:
    names = ("a", "a-b", "a.b/c", "a__b", "namespace", "true", "in")
    assert [escaped(name) for name in names] == [
        "a", "a__dash__b", "a__dot__b__slash__c", "a__underscores__b", "__namespace__",
        "__true__", "__in__",
    ]  # fmt: skip


def test_what_does_not_fit_stays_as_it_is() -> None:
    """Its type is another fault; rules are not asked then."""
    said = {
        "type": "object",
        "properties": {
            "t": {"type": "string", "format": "date-time"},
            "d": {"type": "string", "format": "duration"},
            "b": {"type": "string", "format": "byte"},
            "y": {"type": "string", "format": "date"},
            "n": {"type": "number"},
            "l": {"type": "array", "items": {"type": "string"}},
        },
    }
    odd = {"t": "x", "d": "x", "b": "x", "y": "x", "n": "x", "l": 3, "unknown": 1}
    root = read(said, "").root
    assert to_cel(root, odd) == {name: odd[name] for name in "tdbynl"}
    assert to_cel(root, [1]) == [1]
    whole = {"kind": "K", "metadata": {"name": "n", "labels": {}}, "n": 1}
    assert to_cel(root, whole, root=True) == {"kind": "K", "metadata": {"name": "n"}, "n": 1.0}
