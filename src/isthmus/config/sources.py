"""Which texts a setting has, and the words that name the place where they stand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.config.settings import SETTINGS, Setting, Shape
from isthmus.errors import Cause

Flags = Mapping[str, "str | bool | Sequence[str] | None"]
Layers = Mapping[str, "tuple[Given, ...]"]
"""For each setting's name what the sources say, the strongest first. A silent source is absent."""

FILE_LIMIT = 1 << 20  # bytes
TEXT_LIMIT = 4096  # characters of one value
KEY_SHOWN = 64  # characters of a key in an error
ITEMS_LIMIT = 1024  # members of one list


class Given(NamedTuple):
    """The texts of a setting in one source. No texts: a list that was given as empty."""

    place: str
    texts: tuple[str, ...]


def gather(
    flags: Flags,
    environ: Mapping[str, str],
    file: bytes | None,
    file_name: str,
    faults: list[Cause],
) -> Layers:
    """Collect what each source says about each setting; append what is wrong to `faults`."""
    written = _from_file(_parse(file, file_name, faults), file_name, faults)
    layers: dict[str, tuple[Given, ...]] = {}
    for setting in SETTINGS:
        said = (_from_flags(setting, flags), _from_environ(setting, environ), written.get(setting))
        tidied = (_tidy(setting, given, faults) for given in said if given is not None)
        layers[setting.name] = tuple(given for given in tidied if given is not None)
    return layers


def _from_flags(setting: Setting, flags: Flags) -> Given | None:
    value = flags.get(setting.name)
    match value:
        case None:
            return None
        case bool():
            return Given(setting.flag, (_switch(value),))
        case str():
            return Given(setting.flag, (value,))
        case _:
            return Given(setting.flag, tuple(value)) if value else None


def _from_environ(setting: Setting, environ: Mapping[str, str]) -> Given | None:
    value = environ.get(setting.variable)
    return Given(setting.variable, (value,)) if value else None


def _from_file(
    document: Mapping[str, object], file_name: str, faults: list[Cause]
) -> Mapping[Setting, Given]:
    known = {setting.key: setting for setting in SETTINGS}
    found: dict[Setting, Given] = {}
    for key, value in document.items():
        place = f"{file_name}: {_shown(key)}"
        setting = known.get(key)
        if setting is None:
            faults.append(Cause(place, "is no setting", "FieldValueNotSupported"))
            continue
        try:
            found[setting] = Given(place, _texts(setting, value))
        except ValueError as error:
            faults.append(Cause(place, str(error), "FieldValueTypeInvalid"))
    return found


def _shown(key: str) -> str:
    """A key as an error may print it: TOML's quoted keys may hold anything."""
    shown = key if key.isprintable() else repr(key)
    return shown if len(shown) <= KEY_SHOWN else f"{shown[:KEY_SHOWN]}..."


def _parse(file: bytes | None, name: str, faults: list[Cause]) -> dict[str, object]:
    if file is None:
        return {}
    if len(file) > FILE_LIMIT:
        faults.append(Cause(name, f"is larger than {FILE_LIMIT} bytes"))
        return {}
    try:
        return tomllib.loads(file.decode())
    except UnicodeDecodeError as error:
        faults.append(Cause(name, f"is not UTF-8 (byte {error.start})"))
    except RecursionError:
        faults.append(Cause(name, "is nested too deeply"))
    except ValueError as error:  # TOMLDecodeError is one; numbers of 5,000 digits are another
        faults.append(Cause(name, f"is not TOML: {error}"))
    return {}


def _texts(setting: Setting, value: object) -> tuple[str, ...]:
    """The texts of a TOML value, as if they had been written on the command line."""
    match setting.shape, value:
        case Shape.PAIRS, dict():
            return tuple(f"{name}={_text(inner)}" for name, inner in value.items())
        case ((Shape.PAIRS | Shape.LIST), list()):
            return tuple(_text(inner) for inner in value)
        case _:
            return (_text(value),)


def _text(value: object) -> str:
    match value:
        case bool():
            return _switch(value)
        case str():
            return value
        case int() if abs(value) < 1 << 64:
            return str(value)
        case _:
            raise ValueError("must be a text, or where several may stand an array of texts")


def _switch(value: bool) -> str:  # noqa: FBT001  # the one value it is about
    return "on" if value else "off"


def _tidy(setting: Setting, given: Given, faults: list[Cause]) -> Given | None:
    """Split lists at their commas; refuse what is too long or cannot be printed."""
    texts = given.texts
    if setting.shape in (Shape.LIST, Shape.PAIRS):
        parts = (part.strip() for text in texts for part in text.split(","))
        texts = tuple(part for part in parts if part)
    if len(texts) > ITEMS_LIMIT or any(len(text) > TEXT_LIMIT for text in texts):
        faults.append(Cause(given.place, "is too long"))
        return None
    if not all(text.isprintable() for text in texts):
        faults.append(Cause(given.place, "holds a control character"))
        return None
    return Given(given.place, texts)
