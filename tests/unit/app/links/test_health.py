from __future__ import annotations

import pytest

from isthmus.app.links.health import SILENCE, DataPlane, Fault, Health, fault_of
from isthmus.app.links.kubeconfig import Unusable
from isthmus.errors import (
    DeadlineExceeded,
    Forbidden,
    IsthmusError,
    NotFound,
    PeerFault,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from isthmus.mesh.links import Reached
from isthmus.model.annotations import DROP, Staleness

LATER = 100.0


def well(at: float = LATER) -> Health:
    health = Health()
    health.heard, health.shown = at, True
    return health


def test_before_the_first_sync_it_connects_or_is_refused() -> None:
    health = Health()
    assert health.state(LATER) is Reached.CONNECTING
    health.fault = Fault("Unreachable", "nobody")
    assert health.state(LATER) is Reached.CONNECTING
    assert health.words(LATER) == ("Unreachable", "nobody")
    health.fault = Fault("CredentialsRejected", "no", refused=True)
    assert health.state(LATER) is Reached.REFUSED
    assert health.look_again(LATER) is None
    assert not health.doubted(LATER)


def test_a_broken_connection_is_no_news_until_the_api_is_silent() -> None:
    health = well()
    health.fault = Fault("Unreachable", "nobody")
    assert health.state(LATER) is Reached.SYNCED
    assert health.look_again(LATER) == LATER + SILENCE
    assert health.state(LATER + SILENCE) is Reached.STALE
    assert health.words(LATER + SILENCE) == ("Unreachable", "nobody")


def test_a_silent_api_alone_takes_no_endpoint_away() -> None:
    health = well()
    for data_plane in (DataPlane.UNKNOWN, DataPlane.ANSWERS):
        health.data_plane = data_plane
        assert health.state(LATER + 1e6) is Reached.STALE
        assert health.usable(LATER + 1e6)


def test_silent_and_nobody_behind_it_is_dead() -> None:
    health = well()
    health.data_plane = DataPlane.SILENT
    assert health.usable(LATER)  # the API answers
    assert health.state(LATER + SILENCE) is Reached.DEAD
    assert not health.usable(LATER + SILENCE)
    reason, message = health.words(LATER + SILENCE)
    assert reason == "Dead"
    assert "data plane" in message


def test_refused_credentials_keep_what_was_seen() -> None:
    health = well()
    health.fault = Fault("CredentialsRejected", "no", refused=True)
    assert health.state(LATER) is Reached.REFUSED
    assert health.usable(LATER + 1e6)
    assert health.doubted(LATER)
    health.data_plane = DataPlane.SILENT
    assert health.state(LATER) is Reached.DEAD


def test_a_link_may_say_when_endpoints_leave() -> None:
    health = well()
    health.staleness = Staleness(30_000)
    assert health.usable(LATER + 29.9)
    assert health.look_again(LATER + SILENCE) == LATER + 30
    assert not health.usable(LATER + 30)
    assert health.look_again(LATER + 30) is None
    health.staleness = DROP
    assert health.usable(LATER + SILENCE - 0.1)
    assert not health.usable(LATER + SILENCE)
    health.heard = LATER + 60
    assert health.usable(LATER + 60)


def test_while_well_the_worst_is_told() -> None:
    health = well()
    assert health.words(LATER) == ("Synced", "the cluster's objects are known")
    health.skew = -3600.0
    assert health.words(LATER) == ("ClockSkew", "its clock is about 60 min behind ours")
    health.notice = "staleness: no"
    assert health.words(LATER) == ("Synced", "staleness: no")
    health.renewal = "the token ends in 5 s: no"
    assert health.words(LATER)[0] == "RenewalFailing"
    health.partial = "jobs: forbidden"
    assert health.words(LATER) == ("Partial", "jobs: forbidden")
    health.newer = Fault("BadKubeconfig", "junk", refused=True)
    assert health.words(LATER)[0] == "BadKubeconfig"
    assert health.state(LATER) is Reached.SYNCED


@pytest.mark.parametrize(
    ("error", "reason", "refused"),
    [
        (Unusable("NoKubeconfig", "x"), "NoKubeconfig", True),
        (Unauthenticated("x"), "CredentialsRejected", True),
        (Forbidden("x"), "Forbidden", True),
        (NotFound("x"), "NotAKubernetesApi", False),
        (DeadlineExceeded("x"), "TooSlow", False),
        (TooLarge("x"), "TooMuch", False),
        (PeerFault("x"), "BadAnswers", False),
        (Unavailable("x"), "Unreachable", False),
    ],
)
def test_every_error_has_its_word(error: IsthmusError, reason: str, refused: bool) -> None:
    assert fault_of(error) == Fault(reason, "x", refused)
