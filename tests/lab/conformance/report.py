"""What a run found, in the form of upstream's ConformanceReport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus import __version__
from tests.lab.conformance.cases import GRPC, HTTP, Conformance

UPSTREAM = "v1.6.1"
_NOT_OF_THE_MESH = ("HTTPRoute",)
"""Features with these beginnings are no extended features of a mesh profile."""


Results = Sequence[tuple[Conformance, bool]]


def report(results: Results, date: str) -> dict[str, Any]:
    """The report; a profile succeeded if none of its core tests failed."""
    profiles = [_profile(name, results) for name in (HTTP, GRPC)]
    provisional = sorted(test.name for test, passed in results if test.provisional and passed)
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ConformanceReport",
        "date": date,
        "gatewayAPIChannel": "standard",
        "gatewayAPIVersion": UPSTREAM,
        "implementation": {
            "organization": "isthmus",
            "project": "isthmus",
            "url": "",
            "version": __version__,
            "contact": [],
        },
        "mode": "default",
        "profiles": profiles,
        "succeededProvisionalTests": provisional,
    }


def _profile(name: str, results: Results) -> dict[str, Any]:
    own = [(test, passed) for test, passed in results if name in test.profiles]
    core = [(test, passed) for test, passed in own if not _extended(test)]
    more = [one for one in own if _extended(one[0]) and not one[0].provisional]
    found: dict[str, Any] = {"name": name, "core": _part(core)}
    features = sorted({each for test, _ in own for each in _extended(test)})
    if more:
        found["extended"] = {**_part(more), "supportedFeatures": features}
    words = [f"Core tests {_word(core)}."]
    words += [f"Extended tests {_word(more)}."] if more else []
    return {**found, "summary": " ".join(words)}


def _extended(test: Conformance) -> list[str]:
    mesh = [each for each in test.features if not each.startswith(_NOT_OF_THE_MESH)]
    return mesh or ([test.features[0]] if test.provisional else [])


def _part(results: Results) -> dict[str, Any]:
    failed = sorted(test.name for test, passed in results if not passed)
    counts = {"Failed": len(failed), "Passed": len(results) - len(failed), "Skipped": 0}
    found: dict[str, Any] = {
        "result": "failure" if failed else "success",
        "statistics": counts,
    }
    return found | ({"failedTests": failed} if failed else {})


def _word(results: Results) -> str:
    return "succeeded" if all(passed for _, passed in results) else "failed"
