"""timeout.linkerd.io/* and retry.linkerd.io/*, on Services, EgressNetworks and routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from isthmus.model.annotations import keys
from isthmus.model.annotations.grammar import (
    Problem,
    Unfit,
    first_problem,
    parse_count,
    parse_duration,
    parsed,
)


class Timeouts(NamedTuple):
    """Milliseconds. 0 is a limit of its own on `request`: it stands in the way of the parent's."""

    request: int | None = None
    response: int | None = None
    idle: int | None = None


class HttpRetry(NamedTuple):
    """At most `limit` further attempts; `statuses` are inclusive ranges, possibly none.

    `timeout` is the milliseconds that one attempt may take to answer.
    """

    limit: int
    timeout: int | None
    statuses: tuple[tuple[int, int], ...]


class GrpcRetry(NamedTuple):
    """As HttpRetry, by gRPC code numbers."""

    limit: int
    timeout: int | None
    codes: tuple[int, ...]


_CODE: Final = re.compile(r"[0-9]{3}")
_WORDS: Final = {"5xx": (500, 599), "gateway-error": (502, 504)}
GRPC_CODES: Final = {
    "cancelled": 1,
    "deadline-exceeded": 4,
    "resource-exhausted": 8,
    "internal": 13,
    "unavailable": 14,
}


def timeouts(annotations: Mapping[str, str]) -> Timeouts | Problem:
    """The three limits that are set, or the first that is not understood."""
    request = parsed(annotations, keys.TIMEOUT_REQUEST, parse_duration)
    response = parsed(annotations, keys.TIMEOUT_RESPONSE, parse_duration)
    idle = parsed(annotations, keys.TIMEOUT_IDLE, parse_duration)
    if isinstance(request, Problem):
        return request
    if isinstance(response, Problem):
        return response
    return idle if isinstance(idle, Problem) else Timeouts(request, response, idle)


def http_retry(annotations: Mapping[str, str]) -> HttpRetry | Problem | None:
    """The retry of HTTP requests, None if nothing asks for one."""
    base = _limit_and_timeout(annotations)
    statuses = parsed(annotations, keys.RETRY_HTTP, _statuses)
    if isinstance(base, Problem):
        return base
    if isinstance(statuses, Problem):
        return statuses
    limit, timeout = base
    if limit is None and timeout is None and statuses is None:
        return None
    return HttpRetry(limit or 1, timeout, statuses or ())


def grpc_retry(annotations: Mapping[str, str]) -> GrpcRetry | Problem | None:
    """The retry of gRPC calls, None if nothing asks for one."""
    base = _limit_and_timeout(annotations)
    codes = parsed(annotations, keys.RETRY_GRPC, _codes)
    if isinstance(base, Problem):
        return base
    if isinstance(codes, Problem):
        return codes
    limit, timeout = base
    if limit is None and timeout is None and codes is None:
        return None
    return GrpcRetry(limit or 1, timeout, codes or ())


def _limit_and_timeout(
    annotations: Mapping[str, str],
) -> tuple[int | None, int | None] | Problem:
    """Both, where 0 is as good as absent."""
    limit = parsed(annotations, keys.RETRY_LIMIT, partial(parse_count, bits=16))
    timeout = parsed(annotations, keys.RETRY_TIMEOUT, parse_duration)
    if isinstance(limit, Problem):
        return limit
    return timeout if isinstance(timeout, Problem) else (limit or None, timeout or None)


def _statuses(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(_status(each) for each in text.split(","))


def _status(text: str) -> tuple[int, int]:
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    if any(each.isspace() for each in text):
        raise Unfit(f"{text[:32]!r} has a space, and a list of statuses may have none")
    low, dash, high = text.partition("-")
    ends = [low, high] if dash else [low, low]
    if not all(_CODE.fullmatch(each) and 100 <= int(each) <= 599 for each in ends):
        raise Unfit(f"{text[:32]!r} is no status from 100 to 599, no range, no 5xx, gateway-error")
    if int(ends[0]) > int(ends[1]):
        raise Unfit(f"the range {text} ends before it begins")
    return int(ends[0]), int(ends[1])


def _codes(text: str) -> tuple[int, ...]:
    codes = tuple(GRPC_CODES.get(each.lower(), -1) for each in text.split(","))
    if -1 in codes:
        raise Unfit(f"must be a list, without spaces, of {', '.join(GRPC_CODES)}")
    return codes


def problems(annotations: Mapping[str, str], *, grpc: bool) -> tuple[Problem, ...]:
    """What is wrong with the limits and retries of a route."""
    retry = grpc_retry(annotations) if grpc else http_retry(annotations)
    found = (first_problem(timeouts(annotations)), first_problem(retry))
    return tuple(each for each in found if each is not None)


def parent_problems(annotations: Mapping[str, str]) -> tuple[Problem, ...]:
    """What is wrong with the limits and retries of a Service or EgressNetwork, each once."""
    found = (*problems(annotations, grpc=False), *problems(annotations, grpc=True))
    return tuple(dict.fromkeys(found))
