"""How one link fares: a machine without I/O. Times are `clock.now()`, seconds.

Two things are asked all the time: does the API answer, and does the data plane? Neither alone takes
endpoints away (unless the Link's staleness says so); both together do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from isthmus.app.links.kubeconfig import Unusable
from isthmus.errors import (
    BadRequest,
    DeadlineExceeded,
    Forbidden,
    IsthmusError,
    NotFound,
    PeerFault,
    TooLarge,
    Unauthenticated,
)
from isthmus.mesh.links import Reached
from isthmus.model.annotations import KEEP, Staleness
from isthmus.store.kubernetes import Distrusted

SILENCE: Final = 3.0
"""Seconds without any answer after which an API is silent."""
SKEW: Final = 60.0
"""Seconds between two clocks that are worth a word."""


class DataPlane(StrEnum):
    """What probes say. UNKNOWN where nothing could be asked: then nothing is concluded."""

    UNKNOWN = "unknown"
    ANSWERS = "answers"
    SILENT = "silent"


class Fault(NamedTuple):
    """Why something does not work. `refused`: by what the credentials are, not by the network."""

    reason: str
    message: str
    refused: bool = False


class Health:
    """What is known of one connection. Whoever changes a field asks for the verdict again."""

    def __init__(self) -> None:
        self.heard: float | None = None
        """When the serving connection heard something last; None before the first sync."""
        self.shown = False
        """The tables hold what was heard."""
        self.fault: Fault | None = None
        """Why there is no serving connection now."""
        self.newer: Fault | None = None
        """Why newer credentials are not in use."""
        self.partial = ""
        """Resources that cannot be followed, and why."""
        self.renewal = ""
        """Why the token is not renewed."""
        self.notice = ""
        """What is wrong with the Link and has no effect but this word."""
        self.skew = 0.0
        self.data_plane = DataPlane.UNKNOWN
        self.answered = False
        """The data plane answered from here once: only then its silence is believed."""
        self.gateway_alive: bool | None = None
        self.gateway_latency: float | None = None
        """Seconds of the last answer of its probe; None if that failed."""
        self.expires: float | None = None
        """When the token in use ends, seconds since the epoch by the other cluster's clock."""
        self.staleness: Staleness = KEEP

    @property
    def synced(self) -> bool:
        """Its objects are in the tables."""
        return self.heard is not None and self.shown

    def silent(self, now: float) -> bool:
        """Synced once, and nothing was heard since a while."""
        return self.heard is not None and now - self.heard >= SILENCE

    def doubted(self, now: float) -> bool:
        """Nothing new is known of the cluster: whether it lives must be asked elsewhere."""
        return self.synced and self.state(now) is not Reached.SYNCED

    def silence(self, now: float) -> float:
        """Seconds since something was heard; 0 while all is well, and before the first sync."""
        return max(0.0, now - self.heard) if self.heard is not None else 0.0

    def state(self, now: float) -> Reached:
        """The one word for it."""
        refused = self.fault is not None and self.fault.refused
        if not self.synced:
            return Reached.REFUSED if refused else Reached.CONNECTING
        if not refused and not self.silent(now):
            return Reached.SYNCED
        if self.data_plane is DataPlane.SILENT:
            return Reached.DEAD
        return Reached.REFUSED if refused else Reached.STALE

    def usable(self, now: float) -> bool:
        """Whether the cluster's endpoints are used."""
        match self.state(now):
            case Reached.DEAD:
                return False
            case Reached.STALE | Reached.REFUSED:
                most = self.staleness.leave_after
                return most is None or self.silence(now) * 1000 < most
            case _:
                return True

    def look_again(self, now: float) -> float | None:
        """When time alone changes the verdict; None if it does not."""
        if self.heard is None:
            return None
        spans = [SILENCE]
        if self.staleness.leave_after is not None:
            spans.append(self.staleness.leave_after / 1000)
        coming = [self.heard + span for span in spans if self.heard + span > now]
        return min(coming, default=None)

    def words(self, now: float) -> tuple[str, str]:
        """Reason and message for people."""
        state = self.state(now)
        if state in (Reached.REFUSED, Reached.CONNECTING):
            fault = self.fault or Fault("Connecting", "the cluster's objects are being listed")
            return fault.reason, fault.message
        if state is Reached.SYNCED:
            return self._while_well()
        why = self.fault or Fault("Silent", "the API does not answer")
        if state is Reached.DEAD:
            return "Dead", f"{why.message}; its data plane does not answer either"
        return why.reason, why.message

    def _while_well(self) -> tuple[str, str]:
        """The worst of what is not quite right."""
        if self.newer is not None:
            return self.newer.reason, f"the credentials before are in use: {self.newer.message}"
        if self.partial:
            return "Partial", self.partial
        if self.renewal:
            return "RenewalFailing", self.renewal
        if self.notice:
            return "Synced", self.notice
        if abs(self.skew) >= SKEW:
            side = "ahead of" if self.skew > 0 else "behind"
            # In minutes: seconds would make news of every answer.
            return "ClockSkew", f"its clock is about {abs(self.skew) / 60:.0f} min {side} ours"
        return "Synced", "the cluster's objects are known"


def fault_of(error: IsthmusError) -> Fault:
    """What an error means for a link."""
    match error:
        case Unusable():
            return Fault(error.word, error.message, refused=True)
        case Distrusted():
            return Fault("CertificateNotTrusted", error.message, refused=True)
        case Unauthenticated():
            return Fault("CredentialsRejected", error.message, refused=True)
        case Forbidden():
            return Fault("Forbidden", error.message, refused=True)
        case BadRequest():
            return Fault("BadKubeconfig", error.message, refused=True)
        case NotFound():
            return Fault("NotAKubernetesApi", error.message)
        case DeadlineExceeded():
            return Fault("TooSlow", error.message)
        case TooLarge():
            return Fault("TooMuch", error.message)
        case PeerFault():
            return Fault("BadAnswers", error.message)
        case _:
            return Fault("Unreachable", error.message)
