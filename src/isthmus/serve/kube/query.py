"""Reading parameters: every value checked, every fault gathered, then raised together.

A value that cannot be read is BadRequest; values that can be read but not combined are Invalid
(Kubernetes does so, and kubectl falls back to plain lists on 422).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from urllib.parse import parse_qsl

from isthmus.errors import BadRequest, Cause, Invalid, Subject

Query = Mapping[str, tuple[str, ...]]
"""A query string: every value of every name, in order."""

MAX_QUERY = 131_072
MAX_PARAMETERS = 256
MAX_REVISION = 2**63 - 1


def parse_query(raw: str) -> Query:
    """The parameters of a raw (still percent-encoded) query string, or BadRequest when too long."""
    if len(raw) > MAX_QUERY:
        raise BadRequest(f"the query string is longer than {MAX_QUERY} characters")
    if raw.count("&") >= MAX_PARAMETERS:
        raise BadRequest(f"the query string has more than {MAX_PARAMETERS} parameters")
    found: dict[str, tuple[str, ...]] = {}
    for name, value in parse_qsl(raw, keep_blank_values=True, errors="replace"):
        found[name] = (*found.get(name, ()), value)
    return found


class Reader:
    """Takes parameters out of a query and gathers what is wrong.

    `what` is the options' kind in group meta.k8s.io, for the message.
    """

    def __init__(self, query: Query, what: str) -> None:
        self._query = query
        self._what = what
        self._unreadable: list[Cause] = []
        self._invalid: list[Cause] = []

    def text(self, name: str) -> str:
        values = self._query.get(name, ())
        return values[0] if values else ""

    def flag(self, name: str) -> bool | None:
        """Kubernetes reads every text but "false" and "0" as true, also the empty one."""
        values = self._query.get(name, ())
        return values[0].lower() not in ("false", "0") if values else None

    def number(self, name: str, *, lowest: int = -MAX_REVISION) -> int | None:
        text = self.text(name)
        return None if text == "" else self.number_of(name, text, lowest)

    def number_of(self, name: str, text: str, lowest: int) -> int | None:
        value = int(text) if _NUMBER.fullmatch(text) else None
        if value is None or not lowest <= value <= MAX_REVISION:
            self.unreadable(name, f"Invalid value: {shown(text)}: must be an integer")
            return None
        return value

    def revision(self) -> int | None:
        return self.number("resourceVersion", lowest=0)

    def choice(self, name: str, choices: type[StrEnum], text: str) -> str | None:
        """The text when it is one of the choices; None when it is empty or not."""
        if text in list(choices):
            return text or None
        named = ", ".join(f'"{choice}"' for choice in choices if choice)
        self.invalid(
            name,
            f"Unsupported value: {shown(text)}: supported values: {named}",
            "FieldValueNotSupported",
        )
        return None

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a repeatable parameter, the empty ones left out."""
        return tuple(value for value in self._query.get(name, ()) if value)

    def dry_run(self, values: Iterable[str]) -> bool:
        """Only "All" is known, and anything else must never count as "really write it"."""
        found = list(values)
        for value in found:
            if value != "All":
                said = f'Unsupported value: {shown(value)}: supported values: "All"'
                self.invalid("dryRun", said, "FieldValueNotSupported")
        return bool(found)

    def unreadable(self, path: str, message: str) -> None:
        self._unreadable.append(Cause(path, message))

    def invalid(self, path: str, message: str, reason: str = "FieldValueInvalid") -> None:
        self._invalid.append(Cause(path, message, reason))

    def forbidden(self, path: str, message: str) -> None:
        self.invalid(path, f"Forbidden: {message}", "FieldValueForbidden")

    def attempt(self, fault: BadRequest) -> None:
        self._unreadable.extend(fault.causes or (Cause("", fault.message, ""),))

    def done(self) -> None:
        """Raise what was gathered."""
        if self._unreadable:
            raise BadRequest(_lines(self._unreadable), causes=self._unreadable)
        if self._invalid:
            about = Subject(group="meta.k8s.io", kind=self._what)
            raise Invalid(_lines(self._invalid), about=about, causes=self._invalid)


_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def shown(text: str) -> str:
    """A value as messages show it: quoted, cut when long."""
    return f'"{text}"' if len(text) <= 64 else f'"{text[:64]}..."'


def _lines(causes: Iterable[Cause]) -> str:
    return ", ".join(f"{c.path}: {c.message}" if c.path else c.message for c in causes)
