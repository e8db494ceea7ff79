"""What every test may use: the loop that async tests run on, golden files, Hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.golden import Golden

settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests and async fixtures on plain asyncio, as the product does."""
    return "asyncio"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Compare text with a file beside the test: `golden("name.yaml", text)`."""
    held = Golden(request.path, rewrite=bool(os.environ.get("GOLDEN_REWRITE")))
    yield held
    held.close()
