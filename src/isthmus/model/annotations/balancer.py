"""balancer.linkerd.io/* and balancer.alpha.linkerd.io/*, on Services and EgressNetworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeVar

from isthmus.model.annotations import keys
from isthmus.model.annotations.grammar import (
    Problem,
    Unfit,
    parse_count,
    parse_duration,
    parse_ratio,
    parse_truth,
    parsed,
)

T = TypeVar("T")

_FEWEST_MILLIS: Final = 10
_MOST_REQUESTS: Final = 1_000_000


class AccrualMode(StrEnum):
    """By failures in a row, or by those and the success rate."""

    CONSECUTIVE = "consecutive"
    UNIFIED = "unified"


class SuccessRate(NamedTuple):
    """Ejects below `threshold` (0..1; 0 = never) over `window` ms, from `min_requests` on."""

    threshold: float = 0.8
    window: int = 10_000
    min_requests: int = 5


class Accrual(NamedTuple):
    """After `max_failures` in a row an endpoint rests `min_penalty` to `max_penalty` ms.

    `jitter` is a ratio. `success_rate` belongs to the unified mode.
    """

    mode: AccrualMode
    max_failures: int = 7
    min_penalty: int = 1_000
    max_penalty: int = 60_000
    jitter: float = 0.5
    success_rate: SuccessRate | None = None
    honor_retry_after: bool = False


class LoadBias(NamedTuple):
    """Failing endpoints are held to be `penalty` ms slower; `max_retry_after` bounds their wish."""

    penalty: int = 5_000
    max_retry_after: int = 300_000


class _Spoilt(Exception):
    """Carries a Problem out of a group."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.why)
        self.problem = problem


def failure_accrual(annotations: Mapping[str, str]) -> Accrual | Problem | None:
    """The accrual, None if no annotation asks for one."""
    word = annotations.get(keys.FAILURE_ACCRUAL)
    if word is None:
        return None
    if word not in tuple(AccrualMode):
        return Problem(keys.FAILURE_ACCRUAL, word[:128], "must be consecutive or unified")
    try:
        return _accrual(AccrualMode(word), annotations)
    except _Spoilt as spoilt:
        return spoilt.problem


def load_bias(annotations: Mapping[str, str]) -> LoadBias | Problem | None:
    """The bias, None if it is not switched on."""
    try:
        if not _get(annotations, keys.PENALIZE_FAILURES, parse_truth, otherwise=False):
            return None
        penalty = _get(annotations, keys.BIAS_PENALTY, _short_duration, otherwise=5_000)
        most = _get(annotations, keys.BIAS_MAX_RETRY_AFTER, parse_duration, otherwise=300_000)
    except _Spoilt as spoilt:
        return spoilt.problem
    return LoadBias(penalty, most)


def _accrual(mode: AccrualMode, annotations: Mapping[str, str]) -> Accrual:
    failures = _get(annotations, keys.MAX_FAILURES, partial(parse_count, bits=32), otherwise=7)
    most = _get(annotations, keys.MAX_PENALTY, _positive_duration, otherwise=60_000)
    least = _get(annotations, keys.MIN_PENALTY, parse_duration, otherwise=1_000)
    jitter = _get(annotations, keys.JITTER_RATIO, partial(parse_ratio, most=100), otherwise=0.5)
    if least > most:
        shown = annotations.get(keys.MIN_PENALTY, "1s")
        raise _Spoilt(Problem(keys.MIN_PENALTY, shown, "must be no more than max-penalty"))
    if mode is AccrualMode.CONSECUTIVE:
        return Accrual(mode, failures, least, most, jitter)
    rate = _success_rate(annotations)
    honor = _get(annotations, keys.HONOR_RETRY_AFTER, parse_truth, otherwise=False)
    return Accrual(mode, failures, least, most, jitter, rate, honor)


def _success_rate(annotations: Mapping[str, str]) -> SuccessRate:
    key = keys.SUCCESS_THRESHOLD
    threshold = _get(annotations, key, partial(parse_ratio, most=1), otherwise=0.8)
    window = _get(annotations, keys.SUCCESS_WINDOW, _positive_duration, otherwise=10_000)
    requests = _get(
        annotations, keys.SUCCESS_MIN_REQUESTS, partial(parse_count, bits=32), otherwise=5
    )
    if threshold and window < _FEWEST_MILLIS:
        shown = annotations.get(keys.SUCCESS_WINDOW, "")
        raise _Spoilt(Problem(keys.SUCCESS_WINDOW, shown, "must be at least 10ms"))
    if threshold and requests > _MOST_REQUESTS:
        shown = annotations.get(keys.SUCCESS_MIN_REQUESTS, "")
        raise _Spoilt(
            Problem(keys.SUCCESS_MIN_REQUESTS, shown, f"must be no more than {_MOST_REQUESTS}")
        )
    return SuccessRate(threshold, window, requests)


def _get(annotations: Mapping[str, str], key: str, parse: Callable[[str], T], *, otherwise: T) -> T:
    found = parsed(annotations, key, parse)
    if isinstance(found, Problem):
        raise _Spoilt(found)
    return otherwise if found is None else found


def _positive_duration(text: str) -> int:
    millis = parse_duration(text)
    if not millis:
        raise Unfit("must be more than 0")
    return millis


def _short_duration(text: str) -> int:
    millis = parse_duration(text)
    if millis >= 2**32:
        raise Unfit("the duration is too long")
    return millis
