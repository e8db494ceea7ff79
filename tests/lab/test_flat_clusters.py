"""Three clusters on one network: federated Services pod to pod, shares of members, one cut off.

One of them has a trust domain of its own, under the same anchor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.lab import linked
from tests.lab import topologies as t
from tests.support.lab import LabProcess
from tests.support.server import PATIENCE
from tests.support.until import until

MEMBER = {"mirror.linkerd.io/federated": "member"}
CALLER = "face.faces.serviceaccount.identity.linkerd.cluster.local"
SHARE = "multicluster.isthmus.dev/member."
CLUSTERS = ("hub", "a", "b")
MANY = """
import collections, http.client, json, sys
line = http.client.HTTPConnection("smiley-federated", 80, timeout=20)
counts = collections.Counter()
for _ in range(int(sys.argv[1])):
    line.request("GET", "/center/")
    answer = line.getresponse()
    answer.read()
    counts[answer.getheader("X-Faces-Pod", str(answer.status))] += 1
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("flat")
    member = [linked.NAMESPACE, *linked.workload("smiley"), linked.service("smiley", MEMBER)]
    other = t.cluster(3, "b", "flat", "smiley")
    other["server"]["trust-domain"] = "b.test"
    topology = {
        "clusters": [
            t.cluster(1, "hub", "flat", "smiley", "face"),
            t.cluster(2, "a", "flat", "smiley"),
            other,
        ],
        "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
    }
    path = t.write(folder, topology, smiley=member, face=linked.workload("face"))
    with LabProcess(folder / "state", path) as running:
        for where in ("hub face", "hub smiley", "a smiley", "b smiley"):
            linked.rolled(running, *where.split())
        for name in ("a", "b"):
            linked.link(running, "hub", name, gateway=False)
        until(lambda: there(running), PATIENCE, lambda: "the federated Service is not there")
        answer_only(running, *CLUSTERS)
        yield running


def there(lab: LabProcess) -> bool | None:
    """Whether the federated Service has all its members."""
    words = ("-n", "faces", "get", "svc", "smiley-federated", "-o", "yaml")
    return "smiley@a,smiley@b" in lab.try_kubectl(*words, context="hub").stdout or None


def answer_only(lab: LabProcess, *clusters: str) -> None:
    """Until requests come to these clusters and to no other."""

    def look() -> bool | None:
        return asked(lab, 60).keys() == set(clusters) or None

    until(look, PATIENCE, lambda: f"others than {clusters} answer, or not all of them")


def asked(lab: LabProcess, times: int) -> Mapping[str, int]:
    """How many of so many requests came to each cluster; others under their status."""
    where = {name: cluster for cluster in CLUSTERS for name in linked.names(lab, cluster)}
    found: dict[str, int] = {}
    for name, count in linked.told(lab, MANY, str(times)).items():
        found[where.get(name, name)] = found.get(where.get(name, name), 0) + count
    return found


def share(lab: LabProcess, **said: str) -> None:
    """Give members shares, and take away all others."""
    keys = {name: f"{SHARE}{name}" for name in CLUSTERS}
    words = [f"{key}={said[name]}" if name in said else f"{key}-" for name, key in keys.items()]
    lab.kubectl("-n", "faces", "annotate", "--overwrite", "svc/smiley-federated", *words,
                context="hub")  # fmt: skip


def test_members_of_all_clusters_answer_and_know_who_calls(lab: LabProcess) -> None:
    found = asked(lab, 90)
    assert found.keys() == set(CLUSTERS)
    theirs = linked.names(lab, "b")
    for _ in range(12):
        got = linked.fetch(lab, "http://smiley-federated/center/")
        domain = "b.test" if got["pod"] in theirs else "cluster.local"
        assert got["headers"]["l5d-client-id"] == [CALLER]
        told = got["headers"]["x-forwarded-client-cert"][0]
        assert f"By=spiffe://{domain}/ns/faces/sa/smiley;" in told


def test_weights_are_shares_of_requests(lab: LabProcess) -> None:
    share(lab, a="weight=8", b="weight=1", hub="weight=1")

    def look() -> bool | None:
        return 0.65 < asked(lab, 200).get("a", 0) / 200 < 0.95 or None

    until(look, PATIENCE, lambda: "a has another share than 8 of 10")
    share(lab)


def test_a_member_that_drains_gets_nothing(lab: LabProcess) -> None:
    share(lab, a="drain")
    answer_only(lab, "hub", "b")
    share(lab)


def test_a_priority_is_used_when_those_before_it_have_nobody(lab: LabProcess) -> None:
    """From one to the other and back, and no request fails."""
    share(lab, a="priority=1", b="priority=2")
    answer_only(lab, "hub")
    with linked.load(lab, "smiley-federated") as end:
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=0", context="hub")
        answer_only(lab, "a")
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=1", context="hub")
        answer_only(lab, "hub")
        counts = end()
    share(lab)
    assert linked.failures(counts) == {}


def test_of_a_member_that_is_cut_off_only_what_was_on_its_way_is_lost(lab: LabProcess) -> None:
    """Three requests at most: so many are on their way on one connection."""
    answer_only(lab, *CLUSTERS)
    with linked.load(lab, "smiley-federated") as end:
        linked.cut_off(lab, "b", "smiley")
        others = [asked(lab, 400) for _ in range(3)]
        counts = end()
    lost = sum(linked.failures(counts).values())
    lost += sum(count for found in others for name, count in found.items() if name not in CLUSTERS)
    assert lost <= 3
    with linked.load(lab, "smiley-federated") as end:
        assert asked(lab, 200).keys() == {"hub", "a"}
        counts = end()
    assert linked.failures(counts) == {}
