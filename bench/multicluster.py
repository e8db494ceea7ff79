"""Members of a federated Service change, and one is lost: how long until the last proxy knows.

A lab of three clusters: `hub` with four clients, `a` and `b` with a member each. Changes are made
by kubectl in a member; counted from its return to the last ACK of all proxies of the hub, as its
control plane tells of it. The loss takes the network of `b`'s pods and the voice of its API at
once, while a client asks a hundred times a second.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.request import urlopen

from bench.table import Figure
from isthmus.cli.commands.proxy import ask
from tests.lab import linked
from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces
from tests.support.until import until

CLIENTS: Final = 4
ROUNDS: Final = 3
QUIET: Final = 1.5
"""Seconds without an ACK after which a change has come to its end."""
PATIENCE: Final = 60.0
HOST: Final = "smiley-federated"
LABEL: Final = ("-n", "faces", "label", "--overwrite", "svc/smiley")
SCALE: Final = ("-n", "faces", "scale", "deploy/smiley")
CHANGES: Final = (
    ("a member's label is removed", (*LABEL, "mirror.linkerd.io/federated-"), "≤ 2"),
    ("a member's label is set", (*LABEL, "mirror.linkerd.io/federated=member"), "≤ 2"),
    ("a member is scaled to nothing", (*SCALE, "--replicas=0"), "≤ 2"),
    ("a member is scaled to one, its pod's start included", (*SCALE, "--replicas=1"), ""),
)


def figures() -> Iterator[Figure]:
    """What `make bench` prints of linked clusters."""
    with tempfile.TemporaryDirectory() as folder, _lab(Path(folder)) as lab:
        found: dict[str, list[float]] = {name: [] for name, _, _ in CHANGES}
        for _ in range(ROUNDS):
            for name, words, _ in CHANGES:
                found[name].append(_change(lab, words))
        for name, _, aim in CHANGES:
            yield Figure(f"{name}: last ACK, median", median(found[name]), "s", aim)
            yield Figure(f"{name}: last ACK, worst of {ROUNDS}", max(found[name]), "s", aim)
        yield from _loss(lab)


@contextmanager
def _lab(folder: Path) -> Iterator[LabProcess]:
    label = {"mirror.linkerd.io/federated": "member"}
    member = [linked.NAMESPACE, *linked.workload("smiley"), linked.service("smiley", label)]
    topology = {
        "clusters": [
            t.cluster(1, "hub", "flat", "face"),
            t.cluster(2, "a", "flat", "member"),
            t.cluster(3, "b", "flat", "member"),
        ],
        "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
    }
    face = [linked.NAMESPACE, *linked.workload("face", CLIENTS)]
    with LabProcess(folder / "state", t.write(folder, topology, face=face, member=member)) as lab:
        for where in ("hub face", "a smiley", "b smiley"):
            linked.rolled(lab, *where.split())
        for name in ("a", "b"):
            linked.link(lab, "hub", name, gateway=False)
        _until(lambda: len(_endpoints(lab)) == 2, "the federated Service has no two members")
        _settled(lab)
        yield lab


# ---------------------------------------------------------------------------- announced changes


def _change(lab: LabProcess, words: tuple[str, ...]) -> float:
    """Seconds from kubectl's return to the last ACK that its change caused; 0 if before."""
    before = len(_endpoints(lab))
    began = time.time()  # noqa: TID251  # compared with what other processes say
    lab.kubectl(*words, context="a")
    returned = time.time()  # noqa: TID251
    _until(lambda: len(_endpoints(lab)) != before, "no endpoint came or went")
    _until(lambda: min(_acked(lab)) > began, "a proxy was told nothing")
    return max(0.0, _settled(lab) - returned)


def _settled(lab: LabProcess) -> float:
    """When the last ACK came, once there was none for a while and nothing is unanswered."""

    def look() -> float | None:
        last = max(_acked(lab))
        return last if time.time() - last > QUIET else None  # noqa: TID251

    return until(look, PATIENCE, lambda: "proxies are told ever more")


def _acked(lab: LabProcess) -> list[float]:
    """When each client's proxy accepted something last."""
    found = []
    for one in _proxies(lab):
        if one["proxy"].startswith("face-"):
            times = [kind["ackedAt"] for kind in one["types"] if kind["ackedAt"]]
            waits = any(kind["waiting"] or kind["unansweredSince"] for kind in one["types"])
            now = time.time()  # noqa: TID251
            found.append(now if waits else max(map(_seconds, times), default=0.0))
    if len(found) != CLIENTS:
        raise RuntimeError(f"{len(found)} proxies of {CLIENTS} are connected")
    return found


def _seconds(said: str) -> float:
    return datetime.fromisoformat(said).timestamp()


def _proxies(lab: LabProcess) -> list[dict[str, Any]]:
    return ask(_admin(lab))


def _admin(lab: LabProcess) -> str:
    listeners = json.loads((lab.state / "clusters" / "hub" / "endpoints.json").read_text())
    return str(listeners["admin"])


def _link(lab: LabProcess) -> dict[str, Any]:
    """What the hub's control plane tells of its link to `b`."""
    with urlopen(f"http://{_admin(lab)}/links?cluster=b", timeout=PATIENCE) as answer:
        (found,) = json.load(answer)
    return dict(found)


def _endpoints(lab: LabProcess) -> list[str]:
    """Lines of `diagnostics endpoints` below its head."""
    words = ("diagnostics", "endpoints", f"{HOST}.faces.svc.cluster.local:80")
    try:
        return linked.isthmus(lab, "hub", *words).splitlines()[1:]
    except AssertionError:  # there is no such Service yet
        return []


def _until(look: Callable[[], bool], why: str) -> None:
    until(lambda: look() or None, PATIENCE, lambda: why)


# -------------------------------------------------------------------------------------- a loss


def _loss(lab: LabProcess) -> Iterator[Figure]:
    pod = linked.inside(lab, "b", "smiley")
    pid = Traces(lab).pids("isthmus server --cluster b ")[0]
    with linked.steady(lab, HOST) as end:
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.time()  # noqa: TID251
            linked.cut(pod)
            _until(lambda: _link(lab)["state"] == "dead", "the lost cluster is not dead")
            out = _settled(lab) - began
            counts, failed = end()
        finally:
            os.kill(pid, signal.SIGCONT)
    last = max((each.ended for each in failed), default=began) - began
    yield Figure("a member is lost: requests that failed", len(failed), "", "≤ 3")
    yield Figure("a member is lost: to the last failure", last, "s", "≤ 5")
    yield Figure("a member is lost: the last proxy has dropped it", out, "s", "≤ 10")
    yield Figure("requests while that happened", sum(counts.values()) / 2, "")
