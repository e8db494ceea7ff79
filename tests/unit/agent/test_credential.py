"""Renewal by a turned clock: when, how spread, what is believed, and what a failure costs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random

import pytest
from cryptography import x509

from isthmus.agent.contract import Means
from isthmus.agent.credential import Answer, Credential, checked
from isthmus.aio import Latest, ManualClock
from isthmus.ca import Trust, chains, issue, request
from isthmus.ca.request import make_key
from isthmus.errors import PeerFault, Unavailable
from tests.support.log import ListLog
from tests.support.trusts import NOW, ordinary

NAME = "face.faces.serviceaccount.identity.linkerd.cluster.local"
DAY = 86_400


class Service:
    """Signs whatever it is asked."""

    def __init__(self, clock: ManualClock, trust: Trust) -> None:
        self.clock = clock
        self.trust = trust
        self.down = False
        self.asked: list[float] = []

    async def certify(self, identity: str, token: bytes, csr: bytes) -> Answer:
        self.asked.append(self.clock.now())
        if self.down:
            raise Unavailable("not now")
        key = request.read(csr).key
        made = issue(self.trust, key, (identity,), now=self.clock.utc(), lifetime=timedelta(days=1))
        return Answer(chains.der(made.leaf), tuple(map(chains.der, made.intermediates)))


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.trust = ordinary()
        self.service = Service(self.clock, self.trust)
        self.anchors = Latest(self.trust.bundle)
        self.log = ListLog()
        self.credential = Credential(
            NAME, self._token, self.service, self.anchors, Means(self.clock, Random(3), self.log)
        )

    async def _token(self) -> bytes:
        return b"t"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        task = asyncio.get_running_loop().create_task(self.credential.run())
        await self.clock.until_waiting(1)
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait((task,))


async def test_it_is_renewed_at_two_thirds_or_a_little_before() -> None:
    async with World().running() as world:
        first = world.credential.held.value
        await world.clock.turn(DAY * 0.59)
        assert world.credential.held.value == first
        await world.clock.turn(DAY * 0.08)
        second = world.credential.held.value
        assert first is not None
        assert second is not None
        assert second.leaf.key != first.leaf.key
        assert len(world.service.asked) == 2


async def test_a_service_that_is_away_is_asked_with_growing_pauses() -> None:
    world = World()
    world.service.down = True
    async with world.running():
        await world.clock.turn(120)
        asked = world.service.asked
        gaps = [after - before for before, after in itertools.pairwise(asked)]
        assert gaps[0] < 1
        assert 20 < max(gaps) <= 36
        assert world.log.events().count("no certificate yet") == 1
        world.service.down = False
        await world.clock.turn(40)
        assert world.credential.held.value is not None
        assert world.credential.why == ""


async def test_a_failed_renewal_keeps_what_is_held() -> None:
    async with World().running() as world:
        first = world.credential.held.value
        world.service.down = True
        await world.clock.turn(DAY * 0.8)
        assert world.credential.held.value == first


async def test_new_anchors_beside_the_old_are_taken_without_a_renewal() -> None:
    async with World().running() as world:
        both = world.trust.bundle + ordinary().bundle
        world.anchors.set(both)
        await world.clock.turn(1)
        held = world.credential.held.value
        assert held is not None
        assert held.bundle == both
        assert len(world.service.asked) == 1


async def test_anchors_that_no_longer_bear_it_mean_a_new_certificate() -> None:
    async with World().running() as world:
        world.service.trust = ordinary()
        world.anchors.set(world.service.trust.bundle)
        await world.clock.turn(1)
        held = world.credential.held.value
        assert held is not None
        assert held.bundle == world.service.trust.bundle
        chain = chains.read_pem(held.leaf.certificate, "held")
        assert chain[0].issuer == world.service.trust.issuer.subject


def test_what_is_held_hides_its_key() -> None:
    world = World()
    asyncio.run(world.credential.renew())
    assert "PRIVATE" not in repr(world.credential.held.value)


# ----------------------------------------------------------------------------- what is not believed

TRUST = ordinary()
KEY = make_key()


def answer(trust: Trust = TRUST, name: str = NAME, key: object = None) -> Answer:
    made = issue(trust, (key or KEY).public_key(), (name,), now=NOW)  # type: ignore[attr-defined]
    return Answer(chains.der(made.leaf), tuple(map(chains.der, made.intermediates)))


def test_the_right_answer_is_a_leaf_with_its_chain() -> None:
    leaf = checked(answer(), NAME, KEY, TRUST.bundle, ManualClock())
    assert len(x509.load_pem_x509_certificates(leaf.certificate)) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (answer(ordinary()), "not trusted"),
        (answer(name="other.faces"), "another's"),
        (answer(key=make_key()), "another's"),
        (Answer(b"rubbish", ()), "no certificate"),
        (Answer(chains.der(TRUST.anchors[0]), ()), "another's"),
        (answer()._replace(intermediates=()), "not trusted"),
    ],
)
def test_any_other_answer_is_refused(given: Answer, says: str) -> None:
    with pytest.raises(PeerFault, match=says):
        checked(given, NAME, KEY, TRUST.bundle, ManualClock())
