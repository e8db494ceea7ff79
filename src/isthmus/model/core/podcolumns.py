"""What `kubectl get pods` shows: the status word and the counts, from many small facts.

The word is the last of these that applies: phase, status.reason, a scheduling gate, the first init
container that is not through (`Init:0/2`, `Init:CrashLoopBackOff`), the first container that waits
or has ended (`CrashLoopBackOff`, `Completed`, `ExitCode:3`), and Terminating once deletion was
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from isthmus.model.columns import AGE, NONE, WIDE
from isthmus.model.document import get, items, number, text, truth
from isthmus.model.kind import Column, Document
from isthmus.model.times import human_duration, parse_seconds


class _Shown(NamedTuple):
    """A pod's cells before they are text. `restarted`: seconds since the epoch, or None."""

    ready: int
    total: int
    word: str
    restarts: int
    restarted: float | None


class _Tally:
    """Counts restarts, and remembers the last one."""

    def __init__(self) -> None:
        self.restarts = 0
        self.last: float | None = None

    def add(self, status: Mapping[str, Any]) -> None:
        self.restarts += number(status, "restartCount")
        ended = parse_seconds(text(status, "lastState.terminated.finishedAt"))
        if ended is not None:
            self.last = ended if self.last is None else max(self.last, ended)


def _shown(pod: Document) -> _Shown:
    sidecars = {
        text(each, "name")
        for each in items(pod, "spec.initContainers")
        if text(each, "restartPolicy") == "Always"
    }
    total = len(items(pod, "spec.containers")) + len(sidecars)
    word = _first_word(pod)
    init = _Init(pod, sidecars)
    tally, ready = init.tally, init.ready
    if init.word and not _condition(pod, "Initialized"):
        word = init.word
    else:
        word = init.word or word
        tally = init.sidecar_tally
        word, running = _container_word(pod, word, tally)
        ready += running
    return _Shown(ready, total, _last_word(pod, word), tally.restarts, tally.last)


def _first_word(pod: Document) -> str:
    word = text(pod, "status.reason") or text(pod, "status.phase")
    for each in items(pod, "status.conditions"):
        if text(each, "type") == "PodScheduled" and text(each, "reason") == "SchedulingGated":
            word = "SchedulingGated"
    return word


def _last_word(pod: Document, word: str) -> str:
    if not get(pod, "metadata.deletionTimestamp"):
        return word
    if text(pod, "status.reason") == "NodeLost":
        return "Unknown"
    ended = text(pod, "status.phase") in ("Succeeded", "Failed")
    return word if ended else "Terminating"


class _Init:
    """The init containers, read in order up to the first that is not through."""

    def __init__(self, pod: Document, sidecars: set[str]) -> None:
        self.word = ""
        self.ready = 0
        self.tally = _Tally()
        self.sidecar_tally = _Tally()
        many = len(items(pod, "spec.initContainers"))
        for index, status in enumerate(items(pod, "status.initContainerStatuses")):
            self.tally.add(status)
            sidecar = text(status, "name") in sidecars
            if sidecar:
                self.sidecar_tally.add(status)
            ended = get(status, "state.terminated")
            if isinstance(ended, dict) and not number(ended, "exitCode"):
                continue
            if sidecar and truth(status, "started"):
                self.ready += truth(status, "ready")
                continue
            self.word = _init_word(status, f"Init:{index}/{many}")
            return


def _init_word(status: Mapping[str, Any], otherwise: str) -> str:
    ended, waits = get(status, "state.terminated"), text(status, "state.waiting.reason")
    if isinstance(ended, dict):
        return f"Init:{_end_word(ended)}"
    if waits and waits != "PodInitializing":
        return f"Init:{waits}"
    return otherwise


def _end_word(ended: Mapping[str, Any]) -> str:
    reason, signal = text(ended, "reason"), number(ended, "signal")
    if reason:
        return reason
    return f"Signal:{signal}" if signal else f"ExitCode:{number(ended, 'exitCode')}"


def _container_word(pod: Document, word: str, tally: _Tally) -> tuple[str, int]:
    """The word of the first container that has something to say, and how many are ready."""
    ready = 0
    for status in reversed(items(pod, "status.containerStatuses")):
        tally.add(status)
        ended, waits = get(status, "state.terminated"), text(status, "state.waiting.reason")
        if waits:
            word = waits
        elif isinstance(ended, dict):
            word = _end_word(ended)
        elif truth(status, "ready") and isinstance(get(status, "state.running"), dict):
            ready += 1
    if word == "Completed" and ready:
        word = "Running" if _condition(pod, "Ready") else "NotReady"
    return word, ready


def _condition(pod: Document, name: str) -> bool:
    return any(
        text(each, "type") == name and text(each, "status") == "True"
        for each in items(pod, "status.conditions")
    )


def _ready(pod: Document, _now: float) -> str:
    shown = _shown(pod)
    return f"{shown.ready}/{shown.total}"


def _restarts(pod: Document, now: float) -> str:
    shown = _shown(pod)
    if not shown.restarts or shown.restarted is None:
        return str(shown.restarts)
    return f"{shown.restarts} ({human_duration(now - shown.restarted)} ago)"


def _ip(pod: Document, _now: float) -> str:
    listed = [text(each, "ip") for each in items(pod, "status.podIPs")]
    return (listed[0] if listed else text(pod, "status.podIP")) or NONE


def _gates(pod: Document, _now: float) -> str:
    gates = list(_gate_names(pod))
    return f"{sum(_condition(pod, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def _gate_names(pod: Document) -> Iterator[str]:
    for each in items(pod, "spec.readinessGates"):
        yield text(each, "conditionType")


POD_COLUMNS: Final = (
    Column("Ready", _ready),
    Column("Status", lambda pod, _: _shown(pod).word),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", _ip, priority=WIDE),
    Column("Node", lambda pod, _: text(pod, "spec.nodeName") or NONE, priority=WIDE),
    Column(
        "Nominated Node",
        lambda pod, _: text(pod, "status.nominatedNodeName") or NONE,
        priority=WIDE,
    ),
    Column("Readiness Gates", _gates, priority=WIDE),
)
