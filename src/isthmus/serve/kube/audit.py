"""What is written down of a request: one line of JSON per write, and per refusal of anything.

A line says when, who (and who as whom, and from where), what, and what became of it. It never says
what was in a body, a header or an answer: no token, no Secret, no message that might quote one. It
is ASCII without control characters, whatever the request held, so that no request can write a line
of its own, nor hide one. The URI stands in it as it came, percent-encoded, beside what it was read
as.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from isthmus.errors import IsthmusError
from isthmus.model.times import format_micro_time
from isthmus.serve.kube.api import WRITES, Call, Verdict
from isthmus.serve.kube.auth import Attributes, User

REFUSALS: Final = frozenset({401, 403, 429})
"""Status codes of requests that were refused for whose they are."""

REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""API groups of questions: their `create` writes nothing."""

LONGEST: Final = 2048
"""Characters of one text; what is cut ends in three dots."""

MOST: Final = 32
"""Groups that are named."""

_SECRET: Final = re.compile(r"([?&][^=&]*(?:token|secret|password|key)[^=&]*=)[^&]*", re.IGNORECASE)


def noteworthy(verdict: Verdict) -> bool:
    """Whether a line is written: for writes, for refusals, and for what nobody could read."""
    asked = verdict.asked
    if verdict.code in REFUSALS:
        return True
    if asked is None:
        return verdict.code >= 400
    return asked.verb in WRITES and asked.group not in REVIEWS and not asked.path


def line(verdict: Verdict, when: Any) -> bytes:  # noqa: ANN401  # a datetime
    """The line, with its end. `when` is the moment at which the request ended."""
    call = verdict.call
    said: dict[str, Any] = {
        "time": format_micro_time(when),
        "id": call.id,
        "user": _user(verdict.user),
        "by": _user(verdict.by) if verdict.by is not verdict.user else None,
        "as": [value for _, value in call.impersonation[:MOST]] or None,
        "address": call.address,
        **_asked(verdict.asked, call),
        "uri": _uri(call.path),
        "agent": call.headers.get("user-agent"),
        "dryRun": _dry_run(call) or None,
        "verdict": _outcome(verdict),
        "code": verdict.code,
        "reason": verdict.error.reason if isinstance(verdict.error, IsthmusError) else None,
        "because": verdict.reason or None,
        "seconds": round(verdict.seconds, 6),
    }
    shown = {name: _cut(value) for name, value in said.items() if value is not None}
    return escaped(shown)


def escaped(fields: dict[str, Any]) -> bytes:
    """One line of JSON in printable ASCII."""
    text = json.dumps(fields, ensure_ascii=True, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode() + b"\n"


def _user(user: User | None) -> dict[str, Any] | None:
    if user is None:
        return None
    named = {"name": user.name, "uid": user.uid, "groups": list(user.groups[:MOST])}
    return {name: _cut(value) for name, value in named.items() if value}


def _asked(asked: Attributes | None, call: Call) -> dict[str, Any]:
    """What was asked, as the authorizer was; of what nobody could read, the method."""
    if asked is None:
        return {"verb": call.method.lower()}
    fields = asked._asdict()
    return {"verb": fields.pop("verb"), **{name: text for name, text in fields.items() if text}}


def _outcome(verdict: Verdict) -> str:
    """allowed, refused, or failed (allowed, and then it could not be done)."""
    if verdict.code in REFUSALS or verdict.asked is None:
        return "refused"
    return "allowed" if verdict.code < 400 else "failed"


def _uri(raw: str) -> str:
    """The URI without the values of parameters that are called like secrets."""
    return _SECRET.sub(r"\1...", raw[: 2 * LONGEST])


def _dry_run(call: Call) -> bool:
    return "dryRun=" in call.path


def _cut(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return [_cut(each) for each in value]
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}..."
    return value
