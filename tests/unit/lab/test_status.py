"""PodStatus: phases, conditions and states as Kubernetes defines them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from isthmus.lab.pods.states import PodFacts, Record, Role, Running, State, Terminated, Waiting
from isthmus.lab.pods.status import phase_of, pod_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUNNING = Running(NOW)


def ended(code: int) -> Terminated:
    reason = "Error" if code else "Completed"
    return Terminated(code=code, reason=reason, started=NOW, finished=NOW)


def record(name: str, state: State, role: Role = Role.MAIN, **more: object) -> Record:
    return msgspec.structs.replace(Record(name=name, image="x", role=role, state=state), **more)


def facts(*records: Record, **more: object) -> PodFacts:
    return msgspec.structs.replace(PodFacts(records=records), **more)


INIT = Role.INIT


@pytest.mark.parametrize(
    ("phase", "shown"),
    [
        ("Pending", facts(record("a", Waiting()))),
        ("Pending", facts(record("a", RUNNING), record("b", Waiting()))),
        ("Pending", facts(record("i", RUNNING, INIT), record("a", Waiting()))),
        ("Pending", facts(record("i", ended(1), INIT), record("a", Waiting()))),
        ("Failed", facts(record("i", ended(1), INIT), restart_policy="Never")),
        ("Running", facts(record("i", ended(0), INIT), record("a", RUNNING))),
        ("Running", facts(record("a", Waiting("CrashLoopBackOff"), last=ended(1)))),
        ("Running", facts(record("a", ended(0)), record("b", RUNNING))),
        ("Succeeded", facts(record("a", ended(0)), over=True)),
        ("Failed", facts(record("a", ended(0)), record("b", ended(3)), over=True)),
        ("Failed", facts(record("a", RUNNING), failure="Evicted: no room")),
    ],
)  # fmt: skip
def test_phases(phase: str, shown: PodFacts) -> None:
    assert phase_of(shown) == phase


def conditions(shown: PodFacts, held: list[dict[str, object]] | None = None) -> dict[str, str]:
    status = pod_status(shown, held or [], NOW)
    return {
        each["type"]: each["status"] + (f" {each['reason']}" if each["reason"] else "")
        for each in status["conditions"]
    }


def test_a_ready_pod() -> None:
    shown = facts(record("a", RUNNING, ready=True), placed=True)
    assert set(conditions(shown).values()) == {"True"}


def test_conditions_say_which_containers_are_missing() -> None:
    shown = facts(record("i", RUNNING, INIT), record("a", Waiting()), placed=True)
    found = pod_status(shown, [], NOW)["conditions"]
    told = {each["type"]: each["message"] for each in found}
    assert told["Initialized"] == "containers with incomplete status: [i]"
    assert told["Ready"] == "containers with unready status: [a]"
    assert conditions(shown)["Initialized"] == "False ContainersNotInitialized"


def test_a_completed_pod_is_not_ready_because_it_is_done() -> None:
    shown = facts(record("a", ended(0)), over=True)
    assert conditions(shown)["Ready"] == "False PodCompleted"
    assert conditions(shown)["PodReadyToStartContainers"] == "False"


def test_readiness_gates_hold_a_pod_back_until_somebody_opens_them() -> None:
    shown = facts(record("a", RUNNING, ready=True), gates=("example.org/ok",))
    assert conditions(shown)["Ready"] == "False ReadinessGatesNotReady"
    assert conditions(shown)["ContainersReady"] == "True"
    held: list[dict[str, object]] = [{"type": "example.org/ok", "status": "True"}]
    assert conditions(shown, held)["Ready"] == "True"


def test_a_native_sidecar_counts_for_readiness_and_its_end_undoes_nothing() -> None:
    native = Role.NATIVE_SIDECAR
    unready = facts(record("s", RUNNING, native, started=True), record("a", RUNNING, ready=True))
    assert conditions(unready)["Ready"] == "False ContainersNotReady"
    over = facts(record("s", ended(0), native), record("a", ended(0)), over=True)
    assert phase_of(over) == "Succeeded"
    assert conditions(over)["Initialized"] == "True"


def test_times_of_conditions_change_only_with_their_status() -> None:
    first = pod_status(facts(record("a", RUNNING)), [], NOW)
    later = NOW + timedelta(minutes=1)
    again = pod_status(facts(record("a", RUNNING)), first["conditions"], later)
    assert again["conditions"] == first["conditions"]
    ready = pod_status(facts(record("a", RUNNING, ready=True)), first["conditions"], later)
    changed = {
        each["type"]
        for each, old in zip(ready["conditions"], first["conditions"], strict=True)
        if each["lastTransitionTime"] != old["lastTransitionTime"]
    }
    assert changed == {"ContainersReady", "Ready"}


def test_states_of_containers() -> None:
    back_off = Waiting("CrashLoopBackOff", "back-off 2s")
    status = pod_status(
        facts(
            record("i", ended(0), INIT, ready=True),
            record("a", back_off, last=ended(1), restarts=3, id="a-7"),
            host_ip="10.0.0.1",
            pod_ip="10.1.0.1",
            started=NOW,
        ),
        [],
        NOW,
    )
    [one] = status["containerStatuses"]
    assert one["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2s"}}
    assert one["lastState"]["terminated"]["exitCode"] == 1
    assert (one["restartCount"], one["containerID"]) == (3, "process://a-7")
    assert [each["name"] for each in status["initContainerStatuses"]] == ["i"]
    assert status["podIPs"] == [{"ip": "10.1.0.1"}]
    assert status["startTime"] == "2026-01-02T03:04:05Z"
