"""What is counted of requests: a bounded set of labels, whatever clients make up."""

from __future__ import annotations

from isthmus.app.figures import Requests
from isthmus.serve.kube.api import Call, Verdict
from isthmus.serve.kube.auth import Attributes


async def no_body() -> bytes:
    return b""


def verdict(verb: str | None, code: int) -> Verdict:
    made = Verdict(Call(id="x", method="GET", path="/", headers={}, body=no_body))
    made.asked = Attributes(verb) if verb is not None else None
    made.code, made.seconds = code, 2.0
    return made


def test_requests_are_counted_by_verb_and_code() -> None:
    requests = Requests()
    for verb, code in (("get", 200), ("get", 200), ("watch", 200), ("brew", 405), (None, 401)):
        requests.observe(verdict(verb, code))
    assert requests.counts == {
        ("get", "200"): 2,
        ("watch", "200"): 1,
        ("other", "405"): 1,
        ("refused", "401"): 1,
    }
    assert requests.seconds == 8.0
