"""Reading YAML from people: every look-up notes what is wrong and goes on with a stand-in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from isthmus.config import SETTINGS, Shape, resolve
from isthmus.config.values import CLUSTER, LABEL
from isthmus.errors import Cause, Invalid, UserFault
from isthmus.serve.kube.yaml_body import strict_yaml

NOWHERE = IPv4Network("0.0.0.0/32")
"""Stands in for a network that could not be read; the fault is told, so nobody sees it."""

GIVEN = frozenset({"cluster", "context_name", "data_dir", "service_cidr"})
"""Settings of a server that the lab itself decides."""


class Reader:
    """One YAML mapping and its path. All readers of one file share one list of faults."""

    def __init__(
        self,
        body: bytes,
        where: Path,
        *,
        value: Any = None,  # noqa: ANN401  # whatever YAML holds
        path: str = "",
        faults: list[Cause] | None = None,
    ) -> None:
        self.where = where
        self.faults: list[Cause] = [] if faults is None else faults
        self._path = path
        self._value: dict[str, Any] = value if isinstance(value, dict) else {}
        if value is None:
            self._value = self._parse(body)

    def _parse(self, body: bytes) -> dict[str, Any]:
        try:
            document, repeated = strict_yaml(body)
        except UserFault as fault:
            raise UserFault(f"the topology {self.where}: {fault.message}") from fault
        for path in repeated:
            self.faults.append(Cause(path, "is written twice", "FieldValueDuplicate"))
        return document

    def fault(self, path: str, message: str, reason: str = "FieldValueInvalid") -> None:
        """Note a fault at `path`, below this mapping."""
        self.faults.append(Cause(self._at(path), message, reason))

    def _at(self, path: str) -> str:
        return f"{self._path}.{path}" if self._path else path

    def has(self, name: str) -> bool:
        """Whether anything is written there."""
        return self._value.get(name) is not None

    def known(self, *names: str) -> None:
        """Fault every field that is not one of `names`."""
        for name in self._value:
            if name not in names:
                there = ", ".join(names)
                self.fault(name, f"is no field of this; there are: {there}", "FieldValueForbidden")

    def text(self, name: str) -> str:
        """A text that must be there; a number counts as its digits."""
        value = self._value.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value:
            return value
        if value in (None, ""):
            self.fault(name, "must be written", "FieldValueRequired")
        else:
            self.fault(name, "must be a text", "FieldValueTypeInvalid")
        return ""

    def label(self, name: str) -> str:
        """A DNS label."""
        value = self.text(name)
        if value and not LABEL.fullmatch(value):
            self.fault(name, f"{value!r} is not a DNS label (a-z, 0-9 and -, at most 63)")
        return value

    def name(self, name: str) -> str:
        """A cluster's name."""
        value = self.text(name)
        if value and not CLUSTER.fullmatch(value):
            self.fault(name, f"{value!r} is not a cluster name (a-z, 0-9, - and _, at most 63)")
        return value

    def choice(self, name: str, words: Sequence[str], default: str) -> str:
        """One of `words`."""
        value = self._value.get(name)
        if value is None:
            return default
        if value not in words:
            self.fault(name, f"{value!r} is not one of {', '.join(words)}")
            return default
        return str(value)

    def cidr(self, name: str, widest: int, narrowest: int) -> IPv4Network:
        """An IPv4 network of a length from `widest` to `narrowest`, host bits zero."""
        value = self.text(name)
        if not value:
            return NOWHERE
        try:
            found = IPv4Network(value)
        except ValueError as fault:
            self.fault(name, f"{value!r} is not an IPv4 network: {fault}")
            return NOWHERE
        if not widest <= found.prefixlen <= narrowest:
            self.fault(name, f"{value} is not from /{widest} to /{narrowest}")
            return NOWHERE
        return found

    def words(self, name: str) -> tuple[str, ...]:
        """A list of texts, empty if not there."""
        return self.words_at(name, self._value.get(name))

    def words_at(self, path: str, value: object) -> tuple[str, ...]:
        """The same of a value at hand."""
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fault(path, "must be a list", "FieldValueTypeInvalid")
            return ()
        for at, each in enumerate(value):
            if not isinstance(each, str | int | float):
                self.fault(f"{path}[{at}]", "must be a text", "FieldValueTypeInvalid")
        return tuple(str(each) for each in value)

    def texts(self, name: str) -> dict[str, str]:
        """A mapping of texts, empty if not there."""
        found = {}
        for key, value in self.mapping(name):
            if isinstance(value, bool):
                found[key] = "true" if value else "false"
            elif isinstance(value, str | int | float):
                found[key] = str(value)
            else:
                self.fault(f"{name}.{key}", "must be a text", "FieldValueTypeInvalid")
        return found

    def mapping(self, name: str) -> Iterator[tuple[str, Any]]:
        """The pairs of a mapping, none if it is not there."""
        value = self._value.get(name)
        if value is None:
            return
        if not isinstance(value, dict):
            self.fault(name, "must be a mapping", "FieldValueTypeInvalid")
            return
        yield from value.items()

    def inner(self, name: str) -> Reader:
        """A reader of the mapping there."""
        value = self._value.get(name)
        if not isinstance(value, dict):
            self.fault(name, "must be a mapping", "FieldValueTypeInvalid")
            value = {}
        return self._inner(self._at(name), value)

    def objects(self, name: str) -> Iterator[Reader]:
        """A reader for each mapping of a list."""
        value = self._value.get(name)
        if value is None:
            return
        if not isinstance(value, list):
            self.fault(name, "must be a list", "FieldValueTypeInvalid")
            return
        for at, each in enumerate(value):
            if isinstance(each, dict):
                yield self._inner(self._at(f"{name}[{at}]"), each)
            else:
                self.fault(f"{name}[{at}]", "must be a mapping", "FieldValueTypeInvalid")

    def _inner(self, path: str, value: dict[str, Any]) -> Reader:
        return Reader(b"", self.where, value=value, path=path, faults=self.faults)

    def paths(self, name: str) -> tuple[Path, ...]:
        """Files that must exist, relative to the topology's."""
        found = []
        for at, word in enumerate(self.words(name)):
            path = (self.where.parent / word).absolute()
            if not path.is_file():
                self.fault(f"{name}[{at}]", f"there is no file {path}", "FieldValueNotFound")
            found.append(path)
        return tuple(found)

    def server_flags(self, name: str) -> dict[str, str | bool | tuple[str, ...]]:
        """Settings of `isthmus server`, checked as the server itself would."""
        settings = {setting.key: setting for setting in SETTINGS}
        found: dict[str, str | bool | tuple[str, ...]] = {}
        for key, value in self.mapping(name):
            setting = settings.get(key.replace("_", "-"))
            if setting is None or setting.name in GIVEN:
                says = "is decided by the lab" if setting else "is no flag of `isthmus server`"
                self.fault(f"{name}.{key}", says, "FieldValueForbidden")
            elif setting.shape is Shape.SWITCH and isinstance(value, bool):
                found[setting.name] = value
            elif setting.shape is Shape.TEXT:
                found[setting.name] = str(value)
            else:
                found[setting.name] = self._pairs(f"{name}.{key}", value)
        self._resolved(name, found)
        return found

    def _pairs(self, path: str, value: object) -> tuple[str, ...]:
        if isinstance(value, dict):
            return tuple(f"{key}={each}" for key, each in value.items())
        return self.words_at(path, value if isinstance(value, list) else [value])

    def _resolved(self, name: str, flags: dict[str, str | bool | tuple[str, ...]]) -> None:
        home = {key: os.environ[key] for key in ("HOME",) if key in os.environ}
        try:
            resolve(flags, home)
        except Invalid as fault:
            for cause in fault.causes:
                key = cause.path.removeprefix("--")
                self.fault(f"{name}.{key}" if key else name, cause.message, cause.reason)
