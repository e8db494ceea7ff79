"""What is true of a container, as values; `status` makes Kubernetes' words of it."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec


class Role(Enum):
    """Where a container stands in a pod's life."""

    INIT = "runs before the others, to its end"
    NATIVE_SIDECAR = "an init container that goes on beside the others (restartPolicy Always)"
    MAIN = "what the pod is for"


class Waiting(msgspec.Struct, frozen=True):
    """It does not run yet, or not now."""

    reason: str = "ContainerCreating"
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    """It runs."""

    since: datetime


class Terminated(msgspec.Struct, frozen=True, kw_only=True):
    """It has ended."""

    code: int
    signal: int = 0
    reason: str
    message: str = ""
    started: datetime | None = None
    finished: datetime


State = Waiting | Running | Terminated


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a status tells of one container."""

    name: str
    image: str
    role: Role = Role.MAIN
    state: State = Waiting()
    last: Terminated | None = None
    ready: bool = False
    started: bool = False
    restarts: int = 0
    id: str = ""


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a status tells of one pod."""

    records: tuple[Record, ...]
    """Of the init containers, then of the others, each in the order of the spec."""
    restart_policy: str = "Always"
    gates: tuple[str, ...] = ()
    """Condition types that readiness waits for (spec.readinessGates)."""
    host_ip: str = ""
    pod_ip: str = ""
    started: datetime | None = None
    placed: bool = False
    """Whether it has its network."""
    failure: str = ""
    """Why the pod as a whole has failed: a reason, with its message after a colon."""
    over: bool = False
    """Nothing of it will run again."""
