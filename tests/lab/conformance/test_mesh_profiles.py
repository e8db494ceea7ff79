"""The mesh profiles of the Gateway API in a lab with real Envoys, and the report of them.

The report is written to `.cache/conformance.yaml`, or where $CONFORMANCE_REPORT says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from isthmus.aio import SystemClock
from isthmus.cli import kubeconfig
from isthmus.cli.cluster import Cluster
from isthmus.cli.commands.explain import ask as explain
from tests.lab import topologies as t
from tests.lab.conformance.cases import TESTS, Ask, Conformance
from tests.lab.conformance.client import CALL
from tests.lab.conformance.report import report
from tests.lab.conformance.world import CONSUMER, MESH, Manifest, base
from tests.support.lab import LabProcess

CLOCK = SystemClock()
HERE = Path(__file__)
REPORT = HERE.parents[3] / ".cache" / "conformance.yaml"

IN_A_ROW = 3
"""Good answers one after the other that a test needs, within PATIENCE seconds."""
PATIENCE = 30.0
PAUSE = 0.2
"""Seconds after an answer that was not good: the route is on its way."""
BATCH = 500
LEEWAY = 0.05
"""How far a share may be off."""
BATCHES = 10
"""Batches that may be off before a test of weights fails."""


class Client:
    """A pod that asks: a program in it that reads requests and tells answers."""

    def __init__(self, lab: LabProcess, name: str, namespace: str) -> None:
        pods = lab.get("pods", "-n", namespace, "-l", f"version={name.removeprefix('echo-')}")
        [pod] = [each["metadata"]["name"] for each in pods["items"]]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "isthmus", "lab", "exec", "-i", "--state-dir", str(lab.state),
             "-n", namespace, "-c", "echo", pod, "--",
             sys.executable, str(HERE.with_name("client.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers to requests, in order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        found: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Mesh:
    """The lab with the base objects, its clients, and what was found."""

    def __init__(self, lab: LabProcess) -> None:
        self.lab = lab
        self.results: dict[str, bool] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        pods = lab.get("pods", "-n", MESH, "-l", "version=v2")["items"]
        self._ips = {"{echo-v2}": pods[0]["status"]["podIP"]}
        access = kubeconfig.load(str(lab.state / "kubeconfig")).access(None)
        self._admin = Cluster(access).listener("admin", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._clients.values():
            each.close()

    def apply(self, *routes: Manifest) -> None:
        text = "\n---\n".join(map(json.dumps, routes))
        self.lab.kubectl("apply", "-f", "-", stdin=text)

    def delete(self, *routes: Manifest) -> None:
        text = "\n---\n".join(map(json.dumps, routes))
        self.lab.kubectl("delete", "-f", "-", stdin=text)

    def ask(self, asks: tuple[Ask, ...], count: int = 1) -> list[dict[str, Any]]:
        """One answer to each, or `count` to the first."""
        answers = []
        for one in asks:
            request = {
                "protocol": one.protocol, "host": self._ips.get(one.host, one.host),
                "port": one.port, "method": "GET", "path": one.path, "headers": one.headers,
                "count": count,
            }  # fmt: skip
            answers += self._client(one.client, one.namespace).ask([request])
        return answers

    def explain(self, one: Ask) -> dict[str, Any]:
        """What the control plane says would come of a request."""
        calls = one.protocol == "grpc"
        query = {
            "from": f"{one.namespace}/deploy/{one.client}",
            "to": f"{self._ips.get(one.host, one.host)}:{one.port}",
            "path": CALL if calls else one.path,
            "headers": "\n".join(f"{name}: {value}" for name, value in one.headers),
            "session": one.protocol,
        }
        return explain(self._admin, query)

    def _client(self, name: str, namespace: str) -> Client:
        key = name, namespace
        if key not in self._clients:
            self._clients[key] = Client(self.lab, name, namespace)
        return self._clients[key]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = tmp_path_factory.mktemp("conformance")
    topology = {
        "clusters": [t.cluster(1, "east", "flat", "base")],
        "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
    }
    path = t.write(folder, topology, base=base())
    with LabProcess(folder / "state", path) as lab:
        for namespace, name in ((MESH, "echo-v1"), (MESH, "echo-v2"), (CONSUMER, "echo-v1")):
            lab.kubectl("-n", namespace, "rollout", "status", f"deploy/{name}", "--timeout=60s")
        with Mesh(lab) as made:
            yield made


def faults(ask: Ask, answer: dict[str, Any]) -> Iterator[str]:
    """In what an answer is not as it must be."""
    if answer["status"] != ask.status:
        yield f"{ask.path}: {answer['status']}, not {ask.status} {answer.get('fault', '')}"
        return
    told, seen = joined(answer["headers"]), answer["seen"] or {"pod": "", "path": "", "headers": []}
    if not seen["pod"].startswith(ask.pod):
        yield f"{ask.path}: answered by {seen['pod']}, not {ask.pod}"
    if ask.seen_path and seen["path"] != ask.seen_path:
        yield f"{ask.path}: the backend saw {seen['path']}, not {ask.seen_path}"
    if ask.location and told.get("location") != ask.location:
        yield f"{ask.path}: redirected to {told.get('location')}, not {ask.location}"
    for wanted, found in ((ask.seen, joined(seen["headers"])), (ask.told, told)):
        for name, value in wanted.items():
            if found.get(name.lower()) != value:
                yield f"{ask.path}: {name} is {found.get(name.lower())!r}, not {value!r}"


def joined(headers: list[list[str]]) -> dict[str, str]:
    """Headers by their names in lower case; values of one name as one."""
    found: dict[str, str] = {}
    for name, value in headers:
        known = found.get(name.lower())
        found[name.lower()] = value if known is None else f"{known},{value}"
    return {
        name: ",".join(part.strip() for part in text.split(",")) for name, text in found.items()
    }


async def agreed(mesh: Mesh, test: Conformance) -> list[str]:
    """Nothing once all answers were good three times in a row; else what the last lacked."""
    end, good, wrong = CLOCK.now() + PATIENCE, 0, ["no answer"]
    while good < IN_A_ROW and CLOCK.now() < end:
        answers = mesh.ask(test.asks)
        pairs = zip(test.asks, answers, strict=True)
        wrong = [fault for ask, answer in pairs for fault in faults(ask, answer)]
        good = 0 if wrong else good + 1
        if wrong:
            await CLOCK.sleep(PAUSE)
    return wrong


def otherwise(mesh: Mesh, test: Conformance) -> Iterator[str]:
    """In what `isthmus explain` tells otherwise of what real Envoys were just seen to do."""
    for one in test.asks if not test.shares else ():
        found = mesh.explain(one)
        said, ends = found["verdict"], found.get("ends", ())
        pods = [line["text"] for end in ends for line in end["lines"] if line["part"] == "endpoint"]
        if said.get("status", 200) != one.status:
            yield f"{one.path}: {said}, not {one.status}"
        if one.location and said["text"] != f"to {one.location}":
            yield f"{one.path}: {said}, not to {one.location}"
        if one.pod and not all(text.startswith(f"Pod {MESH}/{one.pod}-") for text in pods):
            yield f"{one.path}: {pods}, not {one.pod}"


def off(mesh: Mesh, test: Conformance) -> dict[str, float]:
    """Nothing once the shares of a batch were right; else those of the last."""
    shares: dict[str, float] = {}
    for _ in range(BATCHES):
        answers = mesh.ask(test.asks, BATCH)
        pods = [one["seen"]["pod"] if one.get("seen") else str(one) for one in answers]
        counts = Counter(pod.rsplit("-", 2)[0] for pod in pods)
        shares = {name: count / len(answers) for name, count in counts.items()}
        if shares.keys() == test.shares.keys() and all(
            abs(share - test.shares[name]) <= LEEWAY for name, share in shares.items()
        ):
            return {}
    return shares


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
async def test_the_mesh_conforms(test: Conformance, mesh: Mesh) -> None:
    mesh.results[test.name] = False
    if test.routes:
        mesh.apply(*test.routes)
    try:
        assert not await agreed(mesh, test)
        assert not list(otherwise(mesh, test))
        if test.shares:
            assert not off(mesh, test)
    finally:
        if test.routes:
            mesh.delete(*test.routes)
    mesh.results[test.name] = True


def test_the_report_is_written(mesh: Mesh) -> None:
    ran = {test.name: test for test in TESTS}
    if mesh.results.keys() != ran.keys():
        pytest.skip("not all tests ran")
    found = report(
        [(ran[name], passed) for name, passed in mesh.results.items()],
        date=f"{CLOCK.utc():%Y-%m-%dT%H:%M:%SZ}",
    )
    at = Path(os.environ.get("CONFORMANCE_REPORT", REPORT))
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(yaml.safe_dump(found, sort_keys=False))
    assert [each["core"]["result"] for each in found["profiles"]] == ["success", "success"]
    assert found["profiles"][0]["extended"]["result"] == "success"
