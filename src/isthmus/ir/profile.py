"""What GetProfile answers: service profiles, and single workloads found by address."""

from __future__ import annotations

from isthmus.ir.endpoint import Endpoint
from isthmus.ir.names import Ref, Value
from isthmus.ir.rules import Budget


class PathRegex(Value, frozen=True, tag="path"):
    """The whole path matches (RE2)."""

    regex: str


class Method(Value, frozen=True, tag="method"):
    """The method, upper case."""

    name: str


class Status(Value, frozen=True, tag="status"):
    """A status within bounds; 0 = no bound."""

    low: int
    high: int


class All(Value, frozen=True, tag="all"):
    """Every one of them."""

    of: tuple[Condition, ...]


class Any(Value, frozen=True, tag="any"):
    """At least one of them."""

    of: tuple[Condition, ...]


class Not(Value, frozen=True, tag="not"):
    """The opposite."""

    of: Condition


Condition = PathRegex | Method | Status | All | Any | Not


class ResponseClass(Value, frozen=True):
    """Which responses count as failures."""

    condition: Condition
    failure: bool


class ProfileRoute(Value, frozen=True):
    """One route of a ServiceProfile; `timeout` in ms, None = none."""

    name: str
    condition: Condition
    classes: tuple[ResponseClass, ...] = ()
    retryable: bool = False
    timeout: int | None = None


class Override(Value, frozen=True):
    """Send `weight` (ten-thousandths of the quantity 1) to `authority` (host:port)."""

    authority: str
    weight: int


class Profile(Value, frozen=True):
    """One consistent answer.

    `name` is the fully qualified name without port, "" for single workloads. `endpoint` is set
    for a single workload only. `refused` marks a port that the service does not declare: an
    empty answer.
    """

    name: str = ""
    opaque: bool = False
    routes: tuple[ProfileRoute, ...] = ()
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    endpoint: Endpoint | None = None
    parent: Ref | None = None
    parent_port: int = 0
    profile: Ref | None = None
    refused: bool = False
