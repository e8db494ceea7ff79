"""One client's share is used up by that client only, and given back."""

from __future__ import annotations

import pytest

from isthmus.errors import TooManyRequests
from isthmus.serve.kube.limits import Limits, Share, Shares, within


def test_a_share_is_counted_per_client_and_kind_and_given_back() -> None:
    shares = Shares(Limits(requests=2, watches=1))
    with shares.hold("a", Share.REQUEST), shares.hold("a", Share.REQUEST):
        with pytest.raises(TooManyRequests) as caught, shares.hold("a", Share.REQUEST):
            pytest.fail("a third request was let in")
        assert caught.value.retry_after >= 1
        with shares.hold("a", Share.WATCH), shares.hold("b", Share.REQUEST):
            assert shares.clients == 2
    assert shares.clients == 0
    with shares.hold("a", Share.REQUEST):
        assert shares.clients == 1


def test_a_request_that_fails_gives_its_share_back() -> None:
    shares = Shares(Limits(requests=1))
    with pytest.raises(KeyError), shares.hold("a", Share.REQUEST):
        raise KeyError
    assert shares.clients == 0


@pytest.mark.parametrize(
    ("files", "room"), [(10, 8), (64, 8), (128, 64), (1024, 768), (2**20, 8192)]
)
def test_connections_leave_files_for_the_server_itself(files: int, room: int) -> None:
    assert within(Limits(), files).connections == room
