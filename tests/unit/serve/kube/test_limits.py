"""One client's share is used up by that client only, and given back."""

from __future__ import annotations

import pytest

from isthmus.errors import TooManyRequests
from isthmus.serve.kube.limits import Limits, Shares


def test_a_share_is_counted_per_client_and_kind_and_given_back() -> None:
    shares = Shares(Limits(requests=2, watches=1))
    with shares.hold("a", watching=False), shares.hold("a", watching=False):
        with pytest.raises(TooManyRequests) as caught, shares.hold("a", watching=False):
            pytest.fail("a third request was let in")
        assert caught.value.retry_after >= 1
        with shares.hold("a", watching=True), shares.hold("b", watching=False):
            assert shares.clients == 2
    assert shares.clients == 0
    with shares.hold("a", watching=False):
        assert shares.clients == 1


def test_a_request_that_fails_gives_its_share_back() -> None:
    shares = Shares(Limits(requests=1))
    with pytest.raises(KeyError), shares.hold("a", watching=False):
        raise KeyError
    assert shares.clients == 0
