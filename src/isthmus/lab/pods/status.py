"""PodStatus from facts: pure. Phases, conditions and reasons as Kubernetes defines them.

Rules: "Pod Lifecycle" (phases, conditions, container states); kubelet's reasons
(ContainersNotReady, ContainersNotInitialized, PodCompleted, ReadinessGatesNotReady).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

from isthmus.lab.pods.states import PodFacts, Record, Role, Running, State, Terminated, Waiting
from isthmus.model.times import format_time

Document = dict[str, Any]

Condition = tuple[str, bool, str, str]
"""Type, whether it is True, reason, message."""


def pod_status(facts: PodFacts, held: Sequence[Mapping[str, Any]], now: datetime) -> Document:
    """The status to be stored. `held`: the conditions that are stored now, for their times."""
    phase = phase_of(facts)
    reason, _, message = facts.failure.partition(": ")
    status: Document = {
        "phase": phase,
        "conditions": _conditions(facts, phase, held, now),
        "reason": reason or None,
        "message": message or None,
    }
    if facts.host_ip:
        status |= {"hostIP": facts.host_ip, "hostIPs": [{"ip": facts.host_ip}]}
    if facts.pod_ip:
        status |= {"podIP": facts.pod_ip, "podIPs": [{"ip": facts.pod_ip}]}
    if facts.started is not None:
        status["startTime"] = format_time(facts.started)
    before, others = _split(facts.records)
    status["containerStatuses"] = [_container(each) for each in others]
    if before:
        status["initContainerStatuses"] = [_container(each) for each in before]
    return status


def _split(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    before: list[Record] = []
    others: list[Record] = []
    for each in records:
        (others if each.role is Role.MAIN else before).append(each)
    return before, others


# ---------------------------------------------------------------------------------------- phase


def phase_of(facts: PodFacts) -> str:
    """Pending, Running, Succeeded or Failed."""
    if facts.failure:
        return "Failed"
    before, others = _split(facts.records)
    if any(_stuck(each, facts.restart_policy) for each in before):
        return "Failed"
    if not facts.over and not initialized(before):
        return "Pending"
    if facts.over and all(isinstance(each.state, Terminated) for each in others):
        good = all(isinstance(s := each.state, Terminated) and s.code == 0 for each in others)
        return "Succeeded" if good else "Failed"
    if any(isinstance(each.state, Waiting) and each.last is None for each in others):
        return "Pending"
    return "Running"


def _stuck(record: Record, policy: str) -> bool:
    state = record.state
    failed = isinstance(state, Terminated) and state.code != 0
    return record.role is Role.INIT and failed and policy == "Never"


def initialized(before: Iterable[Record]) -> bool:
    """Whether all init containers are through, and all native sidecars have started."""
    for each in before:
        if each.role is Role.NATIVE_SIDECAR:
            if not each.started:
                return False
        elif not (isinstance(each.state, Terminated) and each.state.code == 0):
            return False
    return True


# ----------------------------------------------------------------------------------- conditions


def _conditions(
    facts: PodFacts, phase: str, held: Sequence[Mapping[str, Any]], now: datetime
) -> list[Document]:
    old = {str(each.get("type")): each for each in held}
    true = {kind for kind, each in old.items() if each.get("status") == "True"}
    wanted = _wanted(facts, phase, true)
    return [_condition(each, old.get(each[0], {}), now) for each in wanted]


def _wanted(facts: PodFacts, phase: str, true: set[str]) -> list[Condition]:
    before, others = _split(facts.records)
    done = phase == "Succeeded"
    was = facts.over or "Initialized" in true  # a sidecar that ends later changes nothing
    waits = [
        each.name
        for each in before
        if not initialized([each]) and not (was and each.role is Role.NATIVE_SIDECAR)
    ]
    init = ("Initialized", not waits, "", "")
    if waits:
        told = f"containers with incomplete status: [{' '.join(waits)}]"
        init = ("Initialized", False, "ContainersNotInitialized", told)
    ready = _containers_ready(before, others, done=done)
    gates = [gate for gate in facts.gates if gate not in true]
    whole = ("Ready", *ready[1:])
    if ready[1] and gates:
        told = f'the status of pod readiness gate "{gates[0]}" is not "True"'
        whole = ("Ready", False, "ReadinessGatesNotReady", told)
    return [
        ("PodScheduled", True, "", ""),
        ("PodReadyToStartContainers", facts.placed and not facts.over, "", ""),
        init,
        ready,
        whole,
    ]


def _containers_ready(before: list[Record], others: list[Record], *, done: bool) -> Condition:
    if done:
        return ("ContainersReady", False, "PodCompleted", "")
    beside = [each for each in before if each.role is Role.NATIVE_SIDECAR]
    unready = [each.name for each in (*beside, *others) if not each.ready]
    if unready:
        told = f"containers with unready status: [{' '.join(unready)}]"
        return ("ContainersReady", False, "ContainersNotReady", told)
    return ("ContainersReady", True, "", "")


def _condition(wanted: Condition, old: Mapping[str, Any], now: datetime) -> Document:
    kind, true, reason, message = wanted
    status = "True" if true else "False"
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": since or format_time(now),
        "reason": reason or None,
        "message": message or None,
    }


# ----------------------------------------------------------------------------------- containers


def _container(record: Record) -> Document:
    status: Document = {
        "name": record.name,
        "image": record.image,
        "imageID": "",
        "ready": record.ready,
        "started": record.started,
        "restartCount": record.restarts,
        "state": _state(record.state, record.id),
        "lastState": {} if record.last is None else _state(record.last, record.id),
    }
    if record.id:
        status["containerID"] = f"process://{record.id}"
    return status


def _state(state: State, identifier: str) -> Document:
    match state:
        case Waiting(reason=reason, message=message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(since=since):
            return {"running": {"startedAt": format_time(since)}}
        case Terminated():
            return {"terminated": _terminated(state, identifier)}
        case _:
            assert_never(state)


def _terminated(state: Terminated, identifier: str) -> Document:
    found: Document = {"exitCode": state.code, "reason": state.reason}
    if state.signal:
        found["signal"] = state.signal
    if state.message:
        found["message"] = state.message
    if state.started is not None:
        found["startedAt"] = format_time(state.started)
    found["finishedAt"] = format_time(state.finished)
    if identifier:
        found["containerID"] = f"process://{identifier}"
    return found
