"""The functions and operators of CEL itself (cel-spec, "Standard definitions")."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from isthmus.model.crd.cel.library.table import Work, function, method
from isthmus.model.crd.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    NULL,
    OPTIONAL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    joined,
    list_of,
    optional_of,
)
from isthmus.model.crd.cel.values import (
    NONE,
    NUMBERS,
    CelError,
    Optional,
    TypeName,
    Uint,
    equal,
    type_name,
)
from isthmus.model.times import format_micro_time, parse_time

# ------------------------------------------------------------------------------------ arithmetic


def whole(value: int) -> int:
    """An int of 64 bits, or CelError."""
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


def unsigned(value: int) -> Uint:
    """A uint of 64 bits, or CelError."""
    if not 0 <= value < 2**64:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def _divided(one: int, other: int) -> int:
    """Towards zero."""
    if other == 0:
        raise CelError("divide by zero")
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _remainder(one: int, other: int) -> int:
    """With the sign of the dividend."""
    if other == 0:
        raise CelError("modulus by zero")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if not one or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


function("_+_", INT, INT, gives=INT)(lambda a, b: whole(a + b))
function("_-_", INT, INT, gives=INT)(lambda a, b: whole(a - b))
function("_*_", INT, INT, gives=INT)(lambda a, b: whole(a * b))
function("_/_", INT, INT, gives=INT)(lambda a, b: whole(_divided(a, b)))
function("_%_", INT, INT, gives=INT)(lambda a, b: whole(_remainder(a, b)))
function("_+_", UINT, UINT, gives=UINT)(lambda a, b: unsigned(int(a) + int(b)))
function("_-_", UINT, UINT, gives=UINT)(lambda a, b: unsigned(int(a) - int(b)))
function("_*_", UINT, UINT, gives=UINT)(lambda a, b: unsigned(int(a) * int(b)))
function("_/_", UINT, UINT, gives=UINT)(lambda a, b: unsigned(_divided(int(a), int(b))))
function("_%_", UINT, UINT, gives=UINT)(lambda a, b: unsigned(_remainder(int(a), int(b))))

function("_+_", DOUBLE, DOUBLE, gives=DOUBLE)(lambda a, b: a + b)
function("_-_", DOUBLE, DOUBLE, gives=DOUBLE)(lambda a, b: a - b)
function("_*_", DOUBLE, DOUBLE, gives=DOUBLE)(lambda a, b: a * b)
function("_/_", DOUBLE, DOUBLE, gives=DOUBLE)(_quotient)
function("-_", INT, gives=INT)(lambda a: whole(-a))
function("-_", DOUBLE, gives=DOUBLE)(lambda a: -a)
function("!_", BOOL, gives=BOOL)(lambda a: not a)


def _sum_limit(args: Sequence[CelType]) -> int | None:
    limits = [each.limit for each in args]
    return None if None in limits else sum(each or 0 for each in limits)


def _text_sum(args: Sequence[CelType]) -> CelType:
    return CelType("string", limit=_sum_limit(args))


def _list_sum(args: Sequence[CelType]) -> CelType:
    return list_of(joined(args[0].inner, args[1].inner), _sum_limit(args))


function("_+_", STRING, STRING, gives=_text_sum)(lambda a, b: a + b)
function("_+_", BYTES, BYTES, gives=BYTES)(lambda a, b: a + b)
function("_+_", LIST, LIST, gives=_list_sum)(lambda a, b: a + b)


def _moved(moment: datetime, by: timedelta) -> datetime:
    try:
        return moment + by
    except OverflowError:
        raise CelError("timestamp overflow") from None


function("_+_", TIMESTAMP, DURATION, gives=TIMESTAMP)(_moved)
function("_+_", DURATION, TIMESTAMP, gives=TIMESTAMP)(lambda a, b: _moved(b, a))
function("_+_", DURATION, DURATION, gives=DURATION)(lambda a, b: a + b)
function("_-_", TIMESTAMP, TIMESTAMP, gives=DURATION)(lambda a, b: a - b)
function("_-_", TIMESTAMP, DURATION, gives=TIMESTAMP)(lambda a, b: _moved(a, -b))
function("_-_", DURATION, DURATION, gives=DURATION)(lambda a, b: a - b)

# ------------------------------------------------------------------------------------ comparison

for _type in (BOOL, STRING, BYTES, TIMESTAMP, DURATION):
    function("_<_", _type, _type, gives=BOOL)(lambda a, b: a < b)
    function("_<=_", _type, _type, gives=BOOL)(lambda a, b: a <= b)
    function("_>_", _type, _type, gives=BOOL)(lambda a, b: a > b)
    function("_>=_", _type, _type, gives=BOOL)(lambda a, b: a >= b)
for _type in (INT, UINT, DOUBLE):
    for _other in (INT, UINT, DOUBLE):
        function("_<_", _type, _other, gives=BOOL)(lambda a, b: a < b)
        function("_<=_", _type, _other, gives=BOOL)(lambda a, b: a <= b)
        function("_>_", _type, _other, gives=BOOL)(lambda a, b: a > b)
        function("_>=_", _type, _other, gives=BOOL)(lambda a, b: a >= b)

function("_==_", DYN, DYN, gives=BOOL, work=Work.DEEP)(equal)
function("_!=_", DYN, DYN, gives=BOOL, work=Work.DEEP)(lambda a, b: not equal(a, b))


@function("_in_", DYN, LIST, gives=BOOL, work=Work.DEEP)
def _in_list(value: Any, within: list[Any]) -> bool:  # noqa: ANN401 - a value of CEL
    return any(equal(value, each) for each in within)


@function("_in_", DYN, MAP, gives=BOOL)
def _in_map(value: Any, within: dict[Any, Any]) -> bool:  # noqa: ANN401 - a value of CEL
    return isinstance(value, str | int) and value in within


# ----------------------------------------------------------------------------------- conversions

for _type in (STRING, BYTES, LIST, MAP):
    function("size", _type, gives=INT, method=None)(len)

function("int", INT, gives=INT)(lambda a: a)
function("int", UINT, gives=INT)(lambda a: whole(int(a)))
function("uint", UINT, gives=UINT)(lambda a: a)
function("uint", INT, gives=UINT)(unsigned)
function("double", DOUBLE, gives=DOUBLE)(lambda a: a)
function("double", INT, gives=DOUBLE)(float)
function("double", UINT, gives=DOUBLE)(float)
function("bool", BOOL, gives=BOOL)(lambda a: a)
function("bytes", BYTES, gives=BYTES)(lambda a: a)
function("bytes", STRING, gives=BYTES)(lambda a: a.encode("utf-8", "surrogatepass"))
function("string", STRING, gives=lambda args: args[0])(lambda a: a)
function("string", INT, gives=CelType("string", limit=20))(str)
function("string", UINT, gives=CelType("string", limit=20))(lambda a: str(int(a)))
function("string", BOOL, gives=CelType("string", limit=5))(lambda a: "true" if a else "false")
function("type", DYN, gives=TYPE)(lambda a: TypeName(type_name(a)))
function("dyn", DYN, gives=DYN)(lambda a: a)
function("timestamp", TIMESTAMP, gives=TIMESTAMP)(lambda a: a)
function("duration", DURATION, gives=DURATION)(lambda a: a)


def _from_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise CelError("integer overflow")
    return int(value)


function("int", DOUBLE, gives=INT)(_from_double)
function("uint", DOUBLE, gives=UINT)(lambda a: unsigned(_from_double(a)))
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_REAL = re.compile(
    r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?", re.ASCII
)


@function("int", STRING, gives=INT)
def _int_of_text(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise CelError("type conversion error from 'string' to 'int'")
    return whole(int(text))


@function("uint", STRING, gives=UINT)
def _uint_of_text(text: str) -> Uint:
    if not _WHOLE.fullmatch(text):
        raise CelError("type conversion error from 'string' to 'uint'")
    return unsigned(int(text))


@function("double", STRING, gives=DOUBLE)
def _double_of_text(text: str) -> float:
    if not _REAL.fullmatch(text) and text not in ("NaN", "Inf", "+Inf", "-Inf"):
        raise CelError("type conversion error from 'string' to 'double'")
    return float(text)


@function("bool", STRING, gives=BOOL)
def _bool_of_text(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


@function("string", BYTES, gives=STRING)
def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


@function("string", DOUBLE, gives=CelType("string", limit=32))
def number_text(value: float) -> str:
    """A double as CEL writes it: `1`, `1.5`, `1e+21`, `NaN`, `+Inf`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


@function("string", TIMESTAMP, gives=CelType("string", limit=40))
def time_text(moment: datetime) -> str:
    """A timestamp in RFC 3339, without zeros at the end of its fraction."""
    text = format_micro_time(moment)
    return text[:-1].rstrip("0").rstrip(".") + "Z"


@function("string", DURATION, gives=CelType("string", limit=40))
def duration_text(value: timedelta) -> str:
    """A duration in seconds: `90s`, `1.5s`."""
    seconds = value / timedelta(microseconds=1) / 1e6
    return f"{number_text(seconds)}s"


@function("timestamp", STRING, gives=TIMESTAMP)
def timestamp(text: str) -> datetime:
    """A moment of an RFC 3339 text; CelError."""
    moment = parse_time(text)
    if moment is None:
        raise CelError("type conversion error from 'string' to 'timestamp'")
    return moment


@function("timestamp", INT, gives=TIMESTAMP)
def _timestamp_of_seconds(seconds: int) -> datetime:
    return _moved(datetime(1970, 1, 1, tzinfo=UTC), _seconds(seconds))


@function("int", TIMESTAMP, gives=INT)
def _seconds_of_timestamp(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


@function("int", DURATION, gives=INT)
def _nanoseconds(value: timedelta) -> int:
    return whole(value // timedelta(microseconds=1) * 1000)


def _seconds(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise CelError("duration overflow") from None


_DURATION = re.compile(
    r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,9})?(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0", re.ASCII
)
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


@function("duration", STRING, gives=DURATION)
def duration(text: str) -> timedelta:
    """A duration as Go writes it (`1h30m`); CelError."""
    if len(text) > 200 or not _DURATION.fullmatch(text):
        raise CelError("type conversion error from 'string' to 'duration'")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return _seconds(-total if text.startswith("-") else total)


# ----------------------------------------------------------------------- times and their parts


def _zone(name: str) -> tzinfo:
    found = re.fullmatch(r"([+-])?([0-9]{2}):([0-9]{2})", name)
    if found:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return _fixed(-offset if found[1] == "-" else offset)
    if not re.fullmatch(r"[A-Za-z0-9_+\-/]{1,64}", name):
        raise CelError(f"unknown time zone {name[:64]}")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise CelError(f"unknown time zone {name[:64]}") from None


def _fixed(offset: timedelta) -> tzinfo:
    try:
        return timezone(offset)
    except ValueError:
        raise CelError("unknown time zone") from None


_PARTS: dict[str, Any] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
    "getMilliseconds": lambda t: t.microsecond // 1000,
}
for _name, _part in _PARTS.items():
    method(_name, TIMESTAMP, gives=INT)(_part)
    method(_name, TIMESTAMP, STRING, gives=INT)(
        lambda t, zone, part=_part: part(t.astimezone(_zone(zone)))
    )
for _name, _unit in (("getHours", 3600), ("getMinutes", 60), ("getSeconds", 1)):
    method(_name, DURATION, gives=INT)(lambda d, unit=_unit: int(d / timedelta(seconds=unit)))
method("getMilliseconds", DURATION, gives=INT)(lambda d: int(d / timedelta(milliseconds=1)))

# ------------------------------------------------------------------------------------- optionals


def _of_first(args: Sequence[CelType]) -> CelType:
    return optional_of(args[0])


def _inner(args: Sequence[CelType]) -> CelType:
    return args[0].inner


function("optional.of", DYN, gives=_of_first)(lambda a: Optional(True, a))
function("optional.none", gives=OPTIONAL)(lambda: NONE)
method("hasValue", OPTIONAL, gives=BOOL)(lambda a: a.present)
method("orValue", OPTIONAL, DYN, gives=_inner)(lambda a, b: a.value if a.present else b)
method("or", OPTIONAL, OPTIONAL, gives=lambda args: args[0])(lambda a, b: a if a.present else b)


@function("optional.ofNonZeroValue", DYN, gives=_of_first)
def _non_zero(value: Any) -> Optional:  # noqa: ANN401 - a value of CEL
    if value is None or (type_name(value) in ("bool", *NUMBERS) and not value):
        return NONE
    return (
        Optional(True, value) if not isinstance(value, str | bytes | list | dict) or value else NONE
    )


@method("value", OPTIONAL, gives=_inner)
def _value(held: Optional) -> Any:  # noqa: ANN401 - a value of CEL
    if not held.present:
        raise CelError("optional.none() dereference")
    return held.value


CONSTANTS: dict[str, TypeName] = {
    each.name: TypeName(each.name)
    for each in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, LIST, MAP, NULL, TYPE, TIMESTAMP, DURATION)
}
"""Types that expressions may name."""
