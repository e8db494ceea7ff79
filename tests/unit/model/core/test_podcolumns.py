"""What `kubectl get pods` says of pods in every state."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.core import POD
from tests.unit.model.objects import made, row

RUNNING = {"ready": True, "state": {"running": {}}}
ENDED = "2026-01-02T03:08:05Z"


def pod(
    *statuses: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    sidecars: tuple[str, ...] = (),
    conditions: dict[str, str] | None = None,
    **status: object,
) -> dict[str, Any]:
    names = [f"i{index}" for index in range(len(init))]
    return made(
        POD,
        spec={
            "containers": [{"name": f"c{index}"} for index in range(len(statuses) or 1)],
            "initContainers": [
                {"name": name, **({"restartPolicy": "Always"} if name in sidecars else {})}
                for name in names
            ],
        },
        status={
            "phase": "Running",
            "containerStatuses": list(statuses),
            "initContainerStatuses": [
                {"name": name, **each} for name, each in zip(names, init, strict=True)
            ],
            "conditions": [
                {"type": name, "status": value} for name, value in (conditions or {}).items()
            ],
            **status,
        },
    )


def waiting(reason: str, restarts: int = 0) -> dict[str, Any]:
    return {"restartCount": restarts, "state": {"waiting": {"reason": reason}}}


def ended(**terminated: object) -> dict[str, Any]:
    return {"state": {"terminated": terminated}}


DONE = ended(reason="Completed", exitCode=0)
READY = {"started": True, "ready": True}
INITIALIZED = {"Initialized": "True"}


@pytest.mark.parametrize(
    ("document", "ready", "word"),
    [
        (pod(phase="Pending"), "0/1", "Pending"),
        (pod(RUNNING), "1/1", "Running"),
        (pod(RUNNING, {"state": {"running": {}}}), "1/2", "Running"),
        (pod(waiting("ContainerCreating"), phase="Pending"), "0/1", "ContainerCreating"),
        (pod(waiting("CrashLoopBackOff")), "0/1", "CrashLoopBackOff"),
        (pod(waiting("ErrImagePull"), RUNNING), "1/2", "ErrImagePull"),
        (pod(ended(reason="Completed", exitCode=0), phase="Succeeded"), "0/1", "Completed"),
        (pod(ended(exitCode=3), phase="Failed"), "0/1", "ExitCode:3"),
        (pod(ended(exitCode=137, signal=9), phase="Failed"), "0/1", "Signal:9"),
        (pod(ended(reason="OOMKilled", exitCode=137)), "0/1", "OOMKilled"),
        (pod(DONE, RUNNING, conditions={"Ready": "True"}), "1/2", "Running"),
        (pod(DONE, RUNNING), "1/2", "NotReady"),
        (pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
        (pod(init=({}, {})), "0/1", "Init:0/2"),
        (pod(init=(ended(exitCode=0, reason="Completed"), {})), "0/1", "Init:1/2"),
        (pod(init=(waiting("PodInitializing"),)), "0/1", "Init:0/1"),
        (pod(init=(waiting("ImagePullBackOff"),)), "0/1", "Init:ImagePullBackOff"),
        (pod(init=(ended(exitCode=2),)), "0/1", "Init:ExitCode:2"),
        (pod(init=(ended(exitCode=2, signal=15),)), "0/1", "Init:Signal:15"),
        (pod(init=(ended(exitCode=1, reason="Error"),)), "0/1", "Init:Error"),
        (pod(RUNNING, init=(READY,), sidecars=("i0",)), "2/2", "Running"),
        (pod(RUNNING, init=({"started": False},), sidecars=("i0",)), "0/2", "Init:0/1"),
        (pod(RUNNING, init=({"started": False},), conditions=INITIALIZED), "1/1", "Init:0/1"),
    ],
)  # fmt: skip
def test_words_and_counts(document: dict[str, Any], ready: str, word: str) -> None:
    shown = row(POD, document)
    assert (shown["Ready"], shown["Status"]) == (ready, word)


def test_a_gate_holds_a_pod_back() -> None:
    document = pod(phase="Pending")
    document["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    ]
    assert row(POD, document)["Status"] == "SchedulingGated"


def test_a_pod_on_its_way_out() -> None:
    document = pod(RUNNING)
    document["metadata"]["deletionTimestamp"] = ENDED
    assert row(POD, document)["Status"] == "Terminating"
    document["status"]["reason"] = "NodeLost"
    assert row(POD, document)["Status"] == "Unknown"
    through = pod(ended(reason="Completed", exitCode=0), phase="Succeeded")
    through["metadata"]["deletionTimestamp"] = ENDED
    assert row(POD, through)["Status"] == "Completed"


def test_restarts_and_the_last_one() -> None:
    last = {"lastState": {"terminated": {"finishedAt": ENDED}}}
    earlier = {"lastState": {"terminated": {"finishedAt": "2026-01-02T03:05:05Z"}}}
    document = pod(waiting("CrashLoopBackOff", 2) | last, RUNNING | {"restartCount": 1} | earlier)
    assert row(POD, document)["Restarts"] == "3 (60s ago)"
    assert row(POD, pod(RUNNING))["Restarts"] == "0"
    assert row(POD, pod(waiting("x", 2)))["Restarts"] == "2"


def test_restarts_of_init_containers_count_while_they_run() -> None:
    document = pod(RUNNING | {"restartCount": 4}, init=(waiting("CrashLoopBackOff", 7),))
    assert row(POD, document)["Restarts"] == "7"


def test_restarts_of_sidecars_count_always() -> None:
    sidecar = {"started": True, "ready": True, "restartCount": 5}
    assert row(POD, pod(RUNNING, init=(sidecar,), sidecars=("i0",)))["Restarts"] == "5"


def test_wide_columns() -> None:
    document = pod(RUNNING, conditions={"a.b/c": "True"}, podIPs=[{"ip": "10.0.0.1"}])
    shown = row(POD, document, wide=True)
    assert shown["IP"] == "10.0.0.1"
    assert shown["Node"] == shown["Nominated Node"] == shown["Readiness Gates"] == "<none>"
    document["spec"]["readinessGates"] = [{"conditionType": "a.b/c"}, {"conditionType": "d"}]
    document["spec"]["nodeName"] = "n1"
    shown = row(POD, document, wide=True)
    assert (shown["Readiness Gates"], shown["Node"]) == ("1/2", "n1")
    assert row(POD, pod(podIP="10.0.0.2"), wide=True)["IP"] == "10.0.0.2"
    assert row(POD, pod(), wide=True)["IP"] == "<none>"
