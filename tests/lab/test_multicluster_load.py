"""`face` asks all the time: what is announced fails nothing, a loss fails what was on its way.

Two members of a federated Service on the network of `face`, a third cluster behind a gateway. Each
workload is called like its cluster, so that an answer tells where it comes from.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread

import pytest

from tests.lab import linked
from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces
from tests.support.server import PATIENCE
from tests.support.until import until

MEMBER = {"mirror.linkerd.io/federated": "member"}
EXPORTED = {"mirror.linkerd.io/exported": "true"}
HOST = "smiley-federated"
MULTICLUSTER = ("-n", "linkerd-multicluster")
ACCOUNT = "linkerd-service-mirror-remote-access-default"
SOME = 50
"""Requests without which nothing was tried: how many a busy machine makes is its own affair."""
MANY = 200
"""Requests after which it is believed who answers, and who does not."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("load")
    labels = {"a": MEMBER, "b": MEMBER, "east": EXPORTED}
    manifests = {
        name: [
            linked.NAMESPACE,
            *linked.workload(name),
            linked.service("smiley", label, selector={"app": name}),
        ]
        for name, label in labels.items()
    }
    manifests["hub"] = [linked.NAMESPACE, *linked.workload("face")]
    topology = {
        "clusters": [
            t.cluster(1, "hub", "flat", "hub"),
            t.cluster(2, "a", "flat", "a"),
            t.cluster(3, "b", "flat", "b"),
            t.cluster(4, "east", "there", "east"),
        ],
        "networks": [
            {"name": "flat", "cidr": "172.17.1.0/24"},
            {"name": "there", "cidr": "172.17.2.0/24"},
        ],
    }
    for each in topology["clusters"]:
        each["server"] = {}  # in SQLite: objects outlive the process
    path = t.write(folder, topology, **manifests)
    with LabProcess(folder / "state", path) as running:
        for where in ("hub face", "a a", "b b", "east east"):
            linked.rolled(running, *where.split())
        for name in ("a", "b", "east"):
            linked.link(running, "hub", name, gateway=name == "east")
        linked.filled(running, "smiley-east")
        answer_only(running, "a", "b")
        yield running


def answering(lab: LabProcess, host: str = HOST) -> set[str]:
    """The clusters that answer so many requests, and statuses of what was not answered."""
    return set(linked.told(lab, ASK, host, str(MANY)))


ASK = """
import collections, http.client, json, sys
line = http.client.HTTPConnection(sys.argv[1], 80, timeout=20)
counts = collections.Counter()
for _ in range(int(sys.argv[2])):
    line.request("GET", "/center/")
    answer = line.getresponse()
    answer.read()
    counts[answer.getheader("X-Faces-Pod", str(answer.status)).partition("-")[0]] += 1
print(json.dumps(counts))
"""


def answer_only(lab: LabProcess, *clusters: str, host: str = HOST) -> None:
    """Until requests come to these clusters and to no other."""

    def look() -> bool | None:
        with suppress(AssertionError):  # the federated Service may not have a name yet
            return answering(lab, host) == set(clusters) or None
        return None

    until(look, PATIENCE, lambda: f"others than {clusters} answer, or not all of them")


def says(lab: LabProcess, link: str, kind: str) -> str:
    """A condition of a Link of the hub: its status and reason."""
    said = lab.get("link", link, *MULTICLUSTER, context="hub").get("status", {})
    found = [one for one in said.get("conditions", ()) if one["type"] == kind]
    return " ".join(f"{one['status']} {one['reason']}" for one in found)


def condition(lab: LabProcess, link: str, kind: str, status: str) -> None:
    """Until a Link says so."""
    until(
        lambda: says(lab, link, kind).startswith(status) or None,
        PATIENCE,
        lambda: f"{kind} of {link} is {says(lab, link, kind)!r}, not {status}",
    )


def scale(lab: LabProcess, cluster: str, replicas: int) -> None:
    lab.kubectl(
        "-n", "faces", "scale", f"deploy/{cluster}", f"--replicas={replicas}", context=cluster
    )
    linked.rolled(lab, cluster, cluster)


def apply(lab: LabProcess, cluster: str, objects: str) -> None:
    lab.kubectl("apply", "-f", "-", context=cluster, stdin=objects)


def server(lab: LabProcess, cluster: str) -> int | None:
    """The process of a control plane, as this machine counts."""
    return next(iter(Traces(lab).pids(f"isthmus server --cluster {cluster} ")), None)


@contextmanager
def frozen(lab: LabProcess, cluster: str) -> Iterator[None]:
    """A control plane that holds its connections and says nothing."""
    pid = server(lab, cluster)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def killed(lab: LabProcess, cluster: str) -> Iterator[None]:
    """A control plane that is killed, and again whenever it comes back."""
    over = Event()

    def work() -> None:
        while not over.wait(0.2):
            pid = server(lab, cluster)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    killing = Thread(target=work)
    killing.start()
    try:
        yield
    finally:
        over.set()
        killing.join()


@contextmanager
def nothing_fails(lab: LabProcess, host: str = HOST) -> Iterator[None]:
    """Under load, and no request fails."""
    with linked.steady(lab, host) as end:
        yield
        counts, failed = end()
    assert failed == []
    assert counts["200"] > SOME


def endpoints(lab: LabProcess) -> list[list[str]]:
    """The table of `diagnostics endpoints`, line by line."""
    words = ("diagnostics", "endpoints", f"{HOST}.faces.svc.cluster.local:80")
    return [line.split() for line in linked.isthmus(lab, "hub", *words).splitlines()]


def test_endpoints_are_listed_with_their_cluster_and_its_name_of_the_service(
    lab: LabProcess,
) -> None:
    head, *rows = endpoints(lab)
    assert head == ["NAMESPACE", "IP", "PORT", "POD", "SERVICE", "CLUSTER"]
    wanted = [
        ["faces", pod["status"]["podIP"], "8000", pod["metadata"]["name"], "smiley.faces", name]
        for name in ("a", "b")
        for pod in linked.pods(lab, name, name)
    ]
    assert sorted(rows) == sorted(wanted)


def test_a_member_is_scaled_to_nothing_and_back(lab: LabProcess) -> None:
    with nothing_fails(lab):
        scale(lab, "a", 0)
        answer_only(lab, "b")
        scale(lab, "a", 1)
        answer_only(lab, "a", "b")


def test_a_label_is_taken_away_and_set_again(lab: LabProcess) -> None:
    label = ("-n", "faces", "label", "--overwrite", "svc/smiley")
    with nothing_fails(lab):
        lab.kubectl(*label, "mirror.linkerd.io/federated-", context="b")
        answer_only(lab, "a")
        lab.kubectl(*label, "mirror.linkerd.io/federated=member", context="b")
        answer_only(lab, "a", "b")


@pytest.mark.parametrize("away", [killed, frozen])
def test_a_member_without_its_control_plane_is_used_as_before(
    lab: LabProcess, away: Callable[[LabProcess, str], AbstractContextManager[None]]
) -> None:
    with nothing_fails(lab):
        with away(lab, "a"):
            condition(lab, "a", "Stale", "True")
            for _ in range(5):
                assert answering(lab) == {"a", "b"}
        condition(lab, "a", "Stale", "False")
        scale(lab, "a", 2)
        scale(lab, "a", 1)
        answer_only(lab, "a", "b")


def test_credentials_are_replaced_and_the_old_ones_revoked(lab: LabProcess) -> None:
    """First by a new token, then by one of a new account: the old one's ends all its tokens."""
    with nothing_fails(lab):
        apply(lab, "hub", linked.isthmus(lab, "a", *LINK, "--cluster-name=a"))
        lab.kubectl("-n", "linkerd-multicluster", "delete", "sa", ACCOUNT, context="a")
        condition(lab, "a", "CredentialsValid", "False")
        assert answering(lab) == {"a", "b"}
        install = linked.isthmus(lab, "a", "multicluster", "install", "--gateway=false")
        apply(lab, "a", install)
        apply(lab, "hub", linked.isthmus(lab, "a", *LINK, "--cluster-name=a"))
        condition(lab, "a", "CredentialsValid", "True")
        scale(lab, "a", 0)
        answer_only(lab, "b")
        scale(lab, "a", 1)
        answer_only(lab, "a", "b")


LINK = ("multicluster", "link", "--gateway=false")


def issuer_of(lab: LabProcess, cluster: str) -> str:
    """Which key has signed the certificate that the cluster's workload shows."""
    (name,) = linked.names(lab, cluster, cluster)
    told = linked.isthmus(lab, cluster, "-n", "faces", "identity", name)
    lines = [line.strip() for line in told.splitlines()]
    return lines[lines.index("X509v3 Authority Key Identifier:") + 1]


def swap_issuer(lab: LabProcess, cluster: str, other: str) -> None:
    """Give a cluster the issuer of another one under the same anchor; wait until it is used."""
    log = lab.state / "clusters" / cluster / "server.log"
    seen = log.read_text().count("issuer in use")
    trust = lab.state / "trust"
    for file in ("issuer.crt", "issuer.key"):
        shutil.copy(trust / other / file, trust / cluster / "new")
        (trust / cluster / "new").rename(trust / cluster / file)
    until(
        lambda: log.read_text().count("issuer in use") > seen or None,
        PATIENCE,
        lambda: f"the control plane of {cluster} does not use the new issuer",
    )


def test_the_issuer_is_another_one(lab: LabProcess) -> None:
    """Of a member and of the client's cluster. Workloads get their next certificates from it."""
    before = issuer_of(lab, "a")
    with nothing_fails(lab):
        swap_issuer(lab, "a", "east")
        swap_issuer(lab, "hub", "b")
        lab.kubectl("-n", "faces", "rollout", "restart", "deploy/a", context="a")
        linked.rolled(lab, "a", "a")
        answer_only(lab, "a", "b")
    assert issuer_of(lab, "a") != before


def test_a_gateway_is_replaced_by_one_with_another_address(lab: LabProcess) -> None:
    install = linked.isthmus(lab, "east", "multicluster", "install")
    with nothing_fails(lab, "smiley-east"):
        apply(lab, "east", install.replace("linkerd-gateway", "another-gateway"))
        ip = "--for=jsonpath={.status.loadBalancer.ingress[0].ip}"
        where = (*MULTICLUSTER, "wait", "--timeout=40s")
        lab.kubectl(*where, "svc/another-gateway", ip, context="east")
        lab.kubectl(*where, "deploy/another-gateway", "--for=condition=Available", context="east")
        words = ("multicluster", "link", "--cluster-name=east", "--gateway-name=another-gateway")
        apply(lab, "hub", linked.isthmus(lab, "east", *words))
        at = gateway(lab)

        def moved() -> object:
            found = lab.get("endpoints", "smiley-east", "-n", "faces", context="hub")
            return [each["ip"] for each in found["subsets"][0]["addresses"]] == [at] or None

        until(moved, PATIENCE, lambda: "the mirror leads to the old gateway")
        lab.kubectl(*MULTICLUSTER, "delete", "deploy,svc", "linkerd-gateway", context="east")
        lab.kubectl(*MULTICLUSTER, "wait", "pod", "-l", "app=linkerd-gateway", "--for=delete",
                    "--timeout=40s", context="east")  # fmt: skip
        answer_only(lab, "east", host="smiley-east")


def gateway(lab: LabProcess) -> str:
    found = lab.get("svc", "another-gateway", *MULTICLUSTER, context="east")
    return str(found["status"]["loadBalancer"]["ingress"][0]["ip"])


def test_of_a_cluster_that_is_cut_off_only_what_was_on_its_way_is_lost(lab: LabProcess) -> None:
    """Three requests of one client proxy and endpoint. How soon, `bench/multicluster.py` tells."""
    answer_only(lab, "a", "b")
    pod = linked.inside(lab, "b", "b")
    with linked.steady(lab, HOST) as end, frozen(lab, "b"):
        linked.cut(pod)
        condition(lab, "b", "Stale", "True Dead")
        left = [row[-1] for row in endpoints(lab)[1:]]
        assert answering(lab) == {"a"}
        _, failed = end()
    assert left == ["a"]
    assert len(failed) <= 3, failed
    with linked.steady(lab, HOST) as end:
        assert answering(lab) == {"a"}
        assert end().failed == []
