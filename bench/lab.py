"""A lab with many pods: how long until all are ready, and what each costs.

The pods run the smallest program that stays (`sleep`), so that what is measured is the lab's own:
a network namespace, links, an address, a process with its logs, a status in the API. Then once more
with a sidecar each: a certificate, redirection, an Envoy that has been told of everything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Figure

PODS = 40
LOOPBACK = "127.58.0.0/16"


def figures() -> Iterator[Figure]:
    """What `make bench` prints of the lab."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _measured(Path(folder))


def _measured(folder: Path) -> Iterator[Figure]:
    topology = folder / "bench.yaml"
    topology.write_text(json.dumps(_topology()))
    state = folder / "state"
    command = [sys.executable, "-m", "isthmus", "lab", "up", str(topology)]
    started = time.perf_counter()
    lab = subprocess.Popen(
        [*command, "--state-dir", str(state), "--loopback", LOOPBACK], stdout=subprocess.PIPE
    )
    try:
        assert lab.stdout is not None
        if not lab.stdout.readline():
            raise RuntimeError("the lab did not start")
        yield Figure("lab up, one cluster", time.perf_counter() - started, "s")
        yield from _pods(state)
        ending = time.perf_counter()
        lab.terminate()
        lab.wait()
        yield Figure(f"lab down with {PODS} pods", time.perf_counter() - ending, "s")
    finally:
        lab.kill()
        lab.wait()


def _pods(state: Path) -> Iterator[Figure]:
    inside = _inside(state)
    before, used = _memory(inside), _seconds(inside)
    started = time.perf_counter()
    _kubectl(state, "apply", "-f", "-", stdin=json.dumps(_deployment("many")))
    _kubectl(state, "rollout", "status", "deploy/many", "--timeout=120s")
    yield Figure(f"{PODS} pods ready", time.perf_counter() - started, "s", "≤ 10")
    yield Figure("CPU of the lab per pod", (_seconds(inside) - used) / PODS * 1000, "ms")
    yield Figure("memory of the lab per pod", (_memory(inside) - before) / PODS, "KiB")
    idle = _seconds(inside)
    time.sleep(5)  # noqa: TID251  # what is measured is doing nothing
    yield Figure(f"CPU of the lab at rest, {PODS} pods", (_seconds(inside) - idle) / 5 * 100, "%")
    _kubectl(state, "delete", "deploy", "many", "--cascade=foreground", "--timeout=120s")
    yield from _meshed(state, inside)


def _meshed(state: Path, inside: int) -> Iterator[Figure]:
    before, others = _memory(inside), _envoys()
    started = time.perf_counter()
    _kubectl(state, "apply", "-f", "-", stdin=json.dumps(_deployment("meshed", "enabled")))
    _kubectl(state, "rollout", "status", "deploy/meshed", "--timeout=300s")
    yield Figure(f"{PODS} pods with sidecars ready", time.perf_counter() - started, "s")
    held = (_memory(inside) - before) / PODS
    yield Figure("memory of lab and agent per pod with a sidecar", held, "KiB")
    sidecars = [_memory(pid) for pid in _envoys() - others]
    yield Figure("memory of an idle sidecar, private", sum(sidecars) / len(sidecars) / 1024, "MiB")


def _envoys() -> set[int]:
    """Sidecars of this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has just ended
                continue
            if b"bootstrap.yaml" in words:
                found.add(int(entry.name))
    return found


def _topology() -> dict[str, object]:
    cluster = {
        "name": "bench",
        "podCIDR": "10.55.1.0/24",
        "serviceCIDR": "10.56.1.0/24",
        "network": "bench",
        "server": {"store": "memory:"},
    }
    return {"clusters": [cluster], "networks": [{"name": "bench", "cidr": "172.17.1.0/24"}]}


def _deployment(name: str, inject: str = "disabled") -> dict[str, object]:
    container = {"name": "main", "image": "sleep", "command": ["sleep", "1000"]}
    labels = {"app": name}
    meta = {"labels": labels, "annotations": {"linkerd.io/inject": inject}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": meta, "spec": {"containers": [container]}},
        },
    }


def _kubectl(state: Path, *words: str, stdin: str = "") -> None:
    kubectl = Path(sys.executable).with_name("kubectl")
    subprocess.run(
        [str(kubectl), "--kubeconfig", str(state / "kubeconfig"), *words],
        input=stdin.encode(), check=True, capture_output=True,
    )  # fmt: skip


def _inside(state: Path) -> int:
    """The lab's own process: the one of its kind that does the work, and so the youngest."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"isthmus.lab" in words and os.fsencode(state) in words:
                found.append(int(entry.name))
    return max(found)


def _memory(pid: int) -> float:
    """Private memory in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("Private_"))


def _seconds(pid: int) -> float:
    """CPU time so far, children that have ended not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
