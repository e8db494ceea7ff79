from __future__ import annotations

import pytest

from tests.unit.store.around import Around


@pytest.fixture
def around() -> Around:
    return Around()
