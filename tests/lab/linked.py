"""Linked clusters in a lab: their workloads, the links, what a client is told under load."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces
from tests.support.server import PATIENCE
from tests.support.traffic import beside
from tests.support.until import until

FETCH = """
import json, sys, urllib.request as u
with u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=10) as answer:
    told = {"status": answer.status, "pod": answer.headers.get("X-Faces-Pod", "")}
    body = answer.read()
print(json.dumps({**told, **(json.loads(body) if body.startswith(b"{") else {})}))
"""
LOAD = """
import collections, http.client, json, sys, threading, time
host, workers = sys.argv[1], int(sys.argv[2])
counts, failed, over = collections.Counter(), [], threading.Event()
def work():
    line = None
    while not over.wait(0.02):
        try:
            line = line or http.client.HTTPConnection(host, 80, timeout=20)
            began = time.time()
            line.request("GET", "/center/")
            answer = line.getresponse()
            body = answer.read()
            told = f"{answer.status} {body[:160].decode()}" if answer.status != 200 else "200"
            counts[told] += 1
            counts[answer.getheader("X-Faces-Pod", "200")] += answer.status == 200
            if answer.status != 200: failed.append([began, time.time(), told])
        except Exception as fault:
            counts[repr(fault)] += 1
            failed.append([began, time.time(), repr(fault)])
            line = None
working = [threading.Thread(target=work) for _ in range(workers)]
for each in working: each.start()
print("goes", flush=True)
sys.stdin.read()
over.set()
for each in working: each.join()
print(json.dumps({"counts": counts, "failed": failed}), flush=True)
"""
CUT = """
import os, sys
from pyroute2 import IPRoute
from isthmus.lab.network import system
pid = sys.argv[1]
def space(kind): return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
if os.stat(f"/proc/{pid}/ns/user").st_ino != os.stat("/proc/self/ns/user").st_ino:
    system.setns(space("user"), system.CLONE_NEWUSER)
system.setns(space("net"), system.CLONE_NEWNET)
with IPRoute() as links:
    for each in links.get_links():
        if each.get_attr("IFLA_IFNAME") != "lo":
            links.link("set", index=each["index"], state="down")
"""
SPEAKER = Path(__file__).with_name("speaker.py")
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "faces", "annotations": {"linkerd.io/inject": "enabled"}},
}


def account(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "faces"},
    }


def workload(name: str, replicas: int = 1) -> list[dict[str, Any]]:
    """A workload of Faces that tells which pod answers and what it was asked, with its account."""
    container = {
        "name": name,
        "image": "example.org/faces-workload:1",
        "ports": [{"name": "http", "containerPort": 8000}],
        "env": [{"name": "FACES_SERVICE", "value": "smiley"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
    }
    found = t.deployment(
        name, replicas, container, serviceAccountName=name, terminationGracePeriodSeconds=10
    )
    found["metadata"]["namespace"] = "faces"
    return [account(name), found]


def service(name: str, labels: dict[str, str], **spec: t.Json) -> dict[str, Any]:
    found = t.service(name, **spec)
    found["metadata"] |= {"namespace": "faces", "labels": labels}
    return found


def isthmus(lab: LabProcess, cluster: str, *words: str) -> str:
    """What `isthmus --context CLUSTER ...` prints."""
    done = subprocess.run(
        [
            sys.executable, "-m", "isthmus", "--kubeconfig", str(lab.state / "kubeconfig"),
            "--context", cluster, *words,
        ],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def link(lab: LabProcess, source: str, target: str, *, gateway: bool) -> None:
    """Let `source` use services of `target`, as people do."""
    flag = f"--gateway={str(gateway).lower()}"
    here = isthmus(lab, source, "multicluster", "install", "--gateway=false")
    lab.kubectl("apply", "-f", "-", context=source, stdin=here)
    there = isthmus(lab, target, "multicluster", "install", flag)
    lab.kubectl("apply", "-f", "-", context=target, stdin=there)
    if gateway:
        where = ("-n", "linkerd-multicluster")
        ip = ".status.loadBalancer.ingress[0].ip"
        lab.kubectl(*where, "wait", "svc/linkerd-gateway", f"--for=jsonpath={{{ip}}}",
                    "--timeout=40s", context=target)  # fmt: skip
        lab.kubectl(*where, "rollout", "status", "deploy/linkerd-gateway", "--timeout=40s",
                    context=target)  # fmt: skip
    objects = isthmus(lab, target, "multicluster", "link", flag, f"--cluster-name={target}")
    lab.kubectl("apply", "-f", "-", context=source, stdin=objects)


def filled(lab: LabProcess, mirror: str) -> None:
    """Until a mirror leads somewhere."""
    until(lambda: _leads(lab, mirror) or None, PATIENCE, lambda: f"{mirror} leads nowhere")


def emptied(lab: LabProcess, mirror: str) -> None:
    """Until a mirror leads nowhere."""
    until(lambda: not _leads(lab, mirror) or None, PATIENCE, lambda: f"{mirror} leads somewhere")


def _leads(lab: LabProcess, mirror: str) -> bool:
    words = ("-n", "faces", "get", "endpoints", mirror, "-o", "jsonpath={.subsets[*].addresses}")
    return bool(lab.try_kubectl(*words, context="hub").stdout)


def rolled(lab: LabProcess, cluster: str, name: str) -> None:
    lab.kubectl("-n", "faces", "rollout", "status", f"deploy/{name}", "--timeout=60s",
                context=cluster)  # fmt: skip


def pods(lab: LabProcess, cluster: str, name: str) -> list[dict[str, Any]]:
    """The pods of a workload that are not on their way out."""
    found = lab.get("pods", "-n", "faces", "-l", f"app={name}", context=cluster)["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def names(lab: LabProcess, cluster: str, name: str = "smiley") -> set[str]:
    return {each["metadata"]["name"] for each in pods(lab, cluster, name)}


def run(lab: LabProcess, script: str, *arguments: str, pod: str = "face") -> str:
    """What a script prints in a workload of the hub."""
    return lab.kubectl("-n", "faces", "exec", f"deploy/{pod}", "-c", pod, "--",
                       sys.executable, "-c", script, *arguments, context="hub").strip()  # fmt: skip


def fetch(lab: LabProcess, url: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(lab, FETCH, url))
    return found


def told(lab: LabProcess, script: str, *arguments: str) -> dict[str, int]:
    """The JSON that a script prints in `face`."""
    found: dict[str, int] = json.loads(run(lab, script, *arguments))
    return found


class Failure(NamedTuple):
    """A request that was not answered as it should: when it was sent, when that was known."""

    sent: float
    ended: float
    what: str


class Came(NamedTuple):
    """What came of a load: how often which answer and which pod, and each failure."""

    counts: dict[str, int]
    failed: list[Failure]


@contextmanager
def load(lab: LabProcess, host: str, workers: int = 4) -> Iterator[Callable[[], dict[str, int]]]:
    """`face` asks a Service, 100 times a second or so; the value ends it and tells what came."""
    with steady(lab, host, workers) as end:
        yield lambda: end().counts


@contextmanager
def steady(lab: LabProcess, host: str, workers: int = 4) -> Iterator[Callable[[], Came]]:
    """The same, with the times of failures, on the machine's clock."""
    pod = pods(lab, "hub", "face")[0]["metadata"]["name"]
    command = [
        sys.executable, "-m", "isthmus", "lab", "exec", "-i", "--state-dir", str(lab.state),
        "--context", "hub", "-n", "faces", "-c", "face", pod, "--",
        sys.executable, "-c", LOAD, host, str(workers),
    ]  # fmt: skip
    with beside(command) as end:
        yield lambda: _came(json.loads(end()))


def _came(told: dict[str, Any]) -> Came:
    return Came(told["counts"], [Failure(*each) for each in told["failed"]])


def failures(counts: dict[str, int]) -> dict[str, int]:
    """What came that was neither an answer nor its pod's name."""
    return {
        name: count
        for name, count in counts.items()
        if name != "200" and not name.startswith("smiley-")
    }


def cut_off(lab: LabProcess, cluster: str, name: str) -> None:
    """Take a pod's network away without a word: nobody is refused, nobody is answered."""
    cut(inside(lab, cluster, name))


def inside(lab: LabProcess, cluster: str, name: str) -> int:
    """A process in the network of a workload's pod, as this machine counts."""
    pod = pods(lab, cluster, name)[0]["metadata"]["name"]
    space = lab.kubectl("-n", "faces", "exec", pod, "-c", name, "--",
                        "readlink", "/proc/self/ns/net", context=cluster).strip()  # fmt: skip
    return Traces(lab).in_network(space)


def cut(pid: int) -> None:
    """Take away the network that a process is in."""
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(pid)], capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
