from __future__ import annotations

from typing import Any

from isthmus.model.crd.printed import columns, faults

NOW = 1_800_000_000.0


def version(*said: dict[str, Any]) -> dict[str, Any]:
    return {"additionalPrinterColumns": list(said)}


def cells(document: dict[str, Any], *said: dict[str, Any]) -> list[object]:
    return [column.cell(document, NOW) for column in columns(version(*said))]


def column(kind: str, path: str = ".v", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": "V", "type": kind, "jsonPath": path} | more


def test_values_are_shown_by_the_type_of_their_column() -> None:
    def shown(kind: str, value: object) -> object:
        return cells({"v": value}, column(kind))[0]

    assert shown("string", "a") == "a"
    assert shown("string", 5) == "5"
    assert shown("string", True) == "true"
    assert shown("string", {"a": [1]}) == '{"a":[1]}'
    assert shown("integer", 5) == 5
    assert shown("integer", 5.0) == 5
    assert shown("integer", "5") is None
    assert shown("number", 1.5) == 1.5
    assert shown("boolean", False) is False
    assert shown("boolean", "x") is None
    assert shown("integer", True) is None
    assert shown("date", "2027-01-15T07:00:00Z") == "60m"
    assert shown("date", "soon") == "<unknown>"
    assert shown("string", None) is None
    assert cells({}, column("string")) == [None]


def test_without_columns_there_is_the_age() -> None:
    (age,) = columns({})
    assert age.name == "Age"
    (wide,) = columns(version(column("date", priority=1, description="d")))
    assert (wide.type, wide.priority, wide.description) == ("string", 1, "d")


def test_faults_of_columns() -> None:
    def said(*columns: dict[str, Any]) -> list[str]:
        return [f"{each.path}: {each.message}" for each in faults(version(*columns), "v")]

    assert said(column("string")) == []
    assert (
        "additionalPrinterColumns[1].name: Duplicate value"
        in said(column("date"), column("date"))[0]
    )
    assert "type: Unsupported value" in said(column("text"))[0]
    assert "jsonPath: Invalid value" in said(column("string", "v"))[0]
    assert "format: Unsupported value" in said(column("string", format="hat"))[0]
    missing = said({})
    assert [each.rpartition(": ")[0].rpartition(".")[2] for each in missing] == [
        "name",
        "type",
        "jsonPath",
    ]
    assert "at most" in said(*[column("string", name=f"c{n}") for n in range(100)])[0]
