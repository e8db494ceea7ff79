"""Label selectors as objects hold them: matching, faults, and the text that `kubectl get` shows.

The selectors of queries (`-l a=b`, `--field-selector`) are parsed where queries are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.errors import Cause
from isthmus.model.document import items, mapping, strings, text, texts
from isthmus.model.faults import forbidden, invalid, required
from isthmus.model.meta import LabelSelector, Requirement
from isthmus.model.metacheck import labels_faults
from isthmus.model.names import label_value_problems, qualified_problems


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether every pair and every requirement holds of the labels; an empty selector selects all.

    A requirement with an unknown operator holds of nothing.
    """
    pairs = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return pairs and all(holds(each, labels) for each in selector.match_expressions)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds; an absent label satisfies NotIn and DoesNotExist."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def document_selects(selector: object, labels: Mapping[str, str]) -> bool:
    """`selects` for a selector inside a document."""
    return selects(read_selector(selector), labels)


def read_selector(selector: object) -> LabelSelector:
    """The LabelSelector in a document, leniently: what is not of its type is left out."""
    return LabelSelector(
        match_labels=texts(selector, "matchLabels"),
        match_expressions=tuple(
            Requirement(
                key=text(each, "key"),
                operator=text(each, "operator"),
                values=tuple(strings(each, "values")),
            )
            for each in items(selector, "matchExpressions")
        ),
    )


def selector_faults(selector: object, path: str) -> Iterator[Cause]:
    """Faults of a LabelSelector at `path`; that it selects everything is none of them."""
    yield from labels_faults(texts(selector, "matchLabels"), f"{path}.matchLabels")
    for index, each in enumerate(items(selector, "matchExpressions")):
        yield from _requirement_faults(each, f"{path}.matchExpressions[{index}]")


def _requirement_faults(each: dict[str, Any], path: str) -> Iterator[Cause]:
    operator, values = text(each, "operator"), strings(each, "values")
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(
                    f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                )
        case "Exists" | "DoesNotExist":
            if values:
                says = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", says)
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    for problem in qualified_problems(text(each, "key")):
        yield invalid(f"{path}.key", text(each, "key"), problem)
    for index, value in enumerate(values):
        for problem in label_value_problems(value):
            yield invalid(f"{path}.values[{index}]", value, problem)


def selector_text(selector: object) -> str:
    """`app=a,tier in (x,y),!old`: keys sorted; "" if it selects everything."""
    parts = [(key, f"{key}={value}") for key, value in texts(selector, "matchLabels").items()]
    for each in read_selector(selector).match_expressions:
        values = ",".join(sorted(each.values))
        shown = {
            "In": f"{each.key} in ({values})",
            "NotIn": f"{each.key} notin ({values})",
            "Exists": each.key,
            "DoesNotExist": f"!{each.key}",
        }
        parts.append((each.key, shown.get(each.operator, f"{each.key} {each.operator}")))
    return ",".join(part for _, part in sorted(parts))


def pairs_text(pairs: Mapping[str, str]) -> str:
    """`a=b,c=d` of a map of labels, sorted; `<none>` if there are none."""
    shown = [f"{key}={value}" for key, value in sorted(pairs.items())]
    return ",".join(shown) or "<none>"


def is_empty(selector: object) -> bool:
    """Whether a LabelSelector has neither pairs nor requirements."""
    return not mapping(selector, "matchLabels") and not items(selector, "matchExpressions")
