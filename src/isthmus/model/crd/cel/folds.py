"""The macros over lists and maps: all, exists, existsOne, map, filter, transformList/Map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from isthmus.model.crd.cel.code import Code, Frame, Run, TypeFault, members, must_be_bool
from isthmus.model.crd.cel.types import BOOL, CelType, items, list_of
from isthmus.model.crd.cel.values import CelError


class Plan(NamedTuple):
    """What a macro runs over: the range, how many variables, their first slot, units per round."""

    over: Run
    names: int
    slot: int
    units: int

    def rounds(self, frame: Frame) -> Iterator[Any]:
        """Set the variables to each member in turn, and pay for the round."""
        found = members(self.over(frame), self.names)
        spend, slot, units = frame[0].spend, self.slot, self.units
        if self.names == 1:
            for each in found:
                spend(units)
                frame[slot] = each
                yield each
        else:
            for key, value in found:
                spend(units)
                frame[slot], frame[slot + 1] = key, value
                yield key


def result(kind: str, over: CelType, steps: Sequence[Code]) -> CelType:
    """The type of the macro's value; TypeFault for a predicate that is no bool."""
    predicates = steps if kind in ("all", "exists", "existsOne", "filter") else steps[:-1]
    for step in predicates:
        must_be_bool(step, f"the predicate of {kind}()")
    most = items(over)
    match kind:
        case "all" | "exists" | "existsOne":
            return BOOL
        case "filter" if over.name == "list":
            return list_of(over.inner, most)
        case "filter":
            return list_of(CelType("string") if over.name == "map" else CelType("dyn"), most)
        case "map" | "transformList":
            return list_of(steps[-1].type, most)
        case "transformMap":
            return CelType("map", item=steps[-1].type, limit=most)
        case _:
            raise TypeFault(f"undeclared reference to '{kind}'")


def run(kind: str, plan: Plan, steps: Sequence[Code]) -> Run:
    """The macro as code."""
    runs = [step.run for step in steps]
    match kind:
        case "all":
            return _decided(plan, runs[0], by=False)
        case "exists":
            return _decided(plan, runs[0], by=True)
        case "existsOne":
            return _exactly_one(plan, runs[0])
        case "filter":
            return lambda frame: [each for each in plan.rounds(frame) if _holds(runs[0](frame))]
        case "transformMap":
            return _transformed(plan, runs)
        case _:
            return _mapped(plan, runs)


def _holds(value: Any) -> bool:  # noqa: ANN401 - a value of CEL
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _decided(plan: Plan, predicate: Run, *, by: bool) -> Run:
    """One member decides, whatever errors others have."""

    def found(frame: Frame) -> bool:
        fault: CelError | None = None
        for _ in plan.rounds(frame):
            try:
                if _holds(predicate(frame)) is by:
                    return by
            except CelError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return not by

    return found


def _exactly_one(plan: Plan, predicate: Run) -> Run:
    return lambda frame: sum(_holds(predicate(frame)) for _ in plan.rounds(frame)) == 1


def _mapped(plan: Plan, runs: Sequence[Run]) -> Run:
    gives = runs[-1]
    if len(runs) == 1:
        return lambda frame: [gives(frame) for _ in plan.rounds(frame)]
    keeps = runs[0]
    return lambda frame: [gives(frame) for _ in plan.rounds(frame) if _holds(keeps(frame))]


def _transformed(plan: Plan, runs: Sequence[Run]) -> Run:
    gives, keeps = runs[-1], runs[0] if len(runs) > 1 else None

    def made(frame: Frame) -> dict[Any, Any]:
        return {
            key: gives(frame) for key in plan.rounds(frame) if keeps is None or _holds(keeps(frame))
        }

    return made
