from __future__ import annotations

import pytest

from tests.support.controlled import Cluster


@pytest.fixture
async def cluster() -> Cluster:
    """A cluster at rest with the namespace `shop`."""
    cluster = Cluster()
    await cluster.namespace()
    await cluster.settle()
    return cluster
