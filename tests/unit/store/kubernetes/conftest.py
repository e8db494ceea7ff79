from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.fakeapi import FakeApi


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi().serving() as made:
        yield made
