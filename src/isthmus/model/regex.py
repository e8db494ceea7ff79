"""Regular expressions that people write: RE2, of bounded size (decision 26).

RE2 matches in linear time whatever the expression, so a stranger's text costs what its length says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from isthmus.model.names import Problems

MAX_REGEX: Final = 4096
"""Characters of one expression; longer ones are refused before they are looked at."""

_MEMORY: Final = 2 << 20
"""Bytes that a compiled expression may take: `((a{100}){100}){100}` is short and not small."""


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


_OPTIONS: Final = _options()


def regex_problems(pattern: str) -> Problems:
    """Why this is no RE2 expression that we would run; empty when it is one."""
    if len(pattern) > MAX_REGEX:
        return (f"may not be longer than {MAX_REGEX} characters",)
    try:
        re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as fault:
        return (f"must be a regular expression of RE2: {_said(fault)}",)
    return ()


@lru_cache(maxsize=128)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - re2 has no types
    """The expression, ready to search with; ValueError says why it is none. The newest are kept."""
    problems = regex_problems(pattern)
    if problems:
        raise ValueError(problems[0])
    return re2.compile(pattern, _OPTIONS)


def _said(fault: Exception) -> str:
    why = fault.args[0] if fault.args else "it does not compile"
    return why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
