"""Policies for federated and mirrored Services, carried between real servers and enforced there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

from isthmus.proto.linkerd import inbound_pb2 as pb
from tests.support.linking import admin_of, link
from tests.support.server import PATIENCE, ServerProcess
from tests.support.until import until

JSON = Any

CARRY = "multicluster.isthmus.dev/carry"
ACCEPT = "multicluster.isthmus.dev/accept-policies"
CARRIED = "multicluster.isthmus.dev/carried-east"
POLICY = "/apis/policy.linkerd.io/v1alpha1/namespaces/shop"
SERVERS = "/apis/policy.linkerd.io/v1beta3/namespaces/shop/servers"
SERVICES = "/api/v1/namespaces/shop/services"
PODS = "/api/v1/namespaces/shop/pods"
LINK = "/apis/multicluster.linkerd.io/v1alpha3/namespaces/linkerd-multicluster/links"
BOSS = "boss.shop.serviceaccount.identity.linkerd.cluster.local"
CALL = "/io.linkerd.proxy.inbound.InboundServerPolicies/GetPort"
EXPORTED = {"mirror.linkerd.io/federated": "member", "mirror.linkerd.io/exported": "remote"}


class Pair(NamedTuple):
    """`west` has the clients and writes the policy, `east` has the workload."""

    west: ServerProcess
    east: ServerProcess


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with (
        ServerProcess(tmp_path / "west", "--cluster", "west") as west,
        ServerProcess(tmp_path / "east", "--cluster", "east") as east,
    ):
        for one in (west, east):
            write(one, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        yield Pair(west, east)


def write(server: ServerProcess, method: str, path: str, body: JSON = None) -> JSON:
    code, told = server.request(method, path, body)
    assert code in (200, 201), told
    return told


def annotate(server: ServerProcess, path: str, **notes: str | None) -> None:
    """Whoever else writes the object meanwhile: as kubectl does, until it is written."""

    def written() -> bool | None:
        held = server.request("GET", path)[1]
        said = held["metadata"].setdefault("annotations", {})
        for name, text in notes.items():
            key = ACCEPT if name == "accept" else CARRY
            said.pop(key, None)
            said |= {} if text is None else {key: text}
        return server.request("PUT", path, held)[0] == 200 or None

    until(written, PATIENCE, lambda: path)


def workload(east: ServerProcess, **labels: str) -> None:
    """The Service `till` of east, one pod behind it, in the mesh."""
    spec = {"selector": {"app": "till"}, "ports": [{"port": 80, "targetPort": 8080}]}
    meta = {"name": "till", "labels": {**EXPORTED, **labels}}
    write(east, "POST", SERVICES, {"metadata": meta, "spec": spec})
    env = [{"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:4143"}]
    containers = [
        {"name": "app", "image": "app", "ports": [{"containerPort": 8080}]},
        {"name": "linkerd-proxy", "image": "proxy", "env": env},
    ]
    labels = {"app": "till", "linkerd.io/control-plane-ns": "linkerd"}
    pod = {"metadata": {"name": "till-1", "labels": labels}, "spec": {"containers": containers}}
    write(east, "POST", PODS, pod)


def policy(name: str, target: str) -> JSON:
    return {
        "apiVersion": "policy.linkerd.io/v1alpha1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "annotations": {CARRY: "true"}},
        "spec": {
            "targetRef": {"group": "", "kind": "Service", "name": target},
            "requiredAuthenticationRefs": [{"kind": "ServiceAccount", "name": "boss"}],
        },
    }


def linked(pair: Pair, *, accept: str = "true") -> None:
    """Each knows the other; east's Link takes policies of west."""
    link(pair.west, "east", admin_of(pair.east))
    link(pair.east, "west", admin_of(pair.west), annotations={ACCEPT: accept})


def says(west: ServerProcess, name: str = "p") -> dict[str, tuple[str, str, str]]:
    status = west.request("GET", f"{POLICY}/authorizationpolicies/{name}")[1].get("status", {})
    return {
        one["type"]: (one["status"], one["reason"], one["message"])
        for one in status.get("conditions", ())
    }


def told(west: ServerProcess, status: str, reason: str, *, name: str = "p") -> str:
    """What the policy comes to say of east: the message."""

    def found() -> str | None:
        one = says(west, name).get(CARRIED)
        return f".{one[2]}" if one is not None and one[:2] == (status, reason) else None

    return until(found, PATIENCE, lambda: str(says(west, name)))[1:]


@asynccontextmanager
async def inbound(east: ServerProcess) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(east.endpoints["policy"]) as channel:
        ask: Any = channel.unary_unary(CALL, None, pb.Server.FromString)
        asked = pb.PortSpec(workload="shop:till-1", port=8080).SerializeToString()
        yield lambda: ask(asked, timeout=PATIENCE)


def admitted(found: pb.Server) -> list[str]:
    """The identities that are let in; `anybody` where none is asked for."""
    names: list[str] = []
    for one in found.authorizations:
        clients = one.authentication.meshTLS.identities.identities
        names += [each.name for each in clients] or ["anybody"]
    return names


def left(east: ServerProcess) -> list[str]:
    kinds = ("authorizationpolicies", "meshtlsauthentications")
    listed = [east.request("GET", f"{POLICY}/{kind}")[1]["items"] for kind in kinds]
    listed.append(east.request("GET", SERVERS)[1]["items"])
    return [one["metadata"]["name"] for items in listed for one in items]


async def test_a_policy_for_a_federated_service_counts_at_its_member(pair: Pair) -> None:
    west, east = pair
    workload(east)
    linked(pair)
    write(west, "POST", f"{POLICY}/authorizationpolicies", policy("p", "till-federated"))
    why = told(west, "False", "Refused")
    assert why.startswith("Service shop/till does not accept policies of west")
    async with inbound(east) as ask:
        assert admitted(await ask()) == ["anybody"]
        annotate(east, f"{SERVICES}/till", accept="west")
        assert told(west, "True", "Enforced") == ""
        assert says(west)["Enforced"][:2] == ("True", "Enforced")
        assert admitted(await ask()) == [BOSS]
        annotate(east, f"{LINK}/west", accept=None)
        told(west, "Unknown", "Pending")
        until(lambda: not left(east) or None, PATIENCE, lambda: str(left(east)))
        assert admitted(await ask()) == ["anybody"]


async def test_a_policy_for_a_mirror_follows_what_it_is_written_to_say(pair: Pair) -> None:
    west, east = pair
    workload(east)
    annotate(east, f"{SERVICES}/till", accept="*")
    linked(pair)
    write(west, "POST", f"{POLICY}/authorizationpolicies", policy("p", "till-east"))
    told(west, "True", "Enforced")
    async with inbound(east) as ask:
        assert admitted(await ask()) == [BOSS]
        held = west.request("GET", f"{POLICY}/authorizationpolicies/p")[1]
        needs = held["spec"]["requiredAuthenticationRefs"]
        needs[0]["name"] = "heir"
        write(west, "PUT", f"{POLICY}/authorizationpolicies/p", held)
        until(
            lambda: "heir" in str(east.request("GET", f"{POLICY}/meshtlsauthentications")) or None,
            PATIENCE,
            lambda: str(left(east)),
        )
        told(west, "True", "Enforced")
        [name] = admitted(await ask())
        assert name.startswith("heir.shop.")
        write(west, "DELETE", f"{POLICY}/authorizationpolicies/p")
        until(lambda: not left(east) or None, PATIENCE, lambda: str(left(east)))
        assert admitted(await ask()) == ["anybody"]


async def test_servers_of_the_members_own_decide(pair: Pair) -> None:
    west, east = pair
    workload(east)
    annotate(east, f"{SERVICES}/till", accept="west")
    spec = {"podSelector": {}, "port": 8080, "accessPolicy": "all-authenticated"}
    body = {"apiVersion": "policy.linkerd.io/v1beta3", "kind": "Server", "spec": spec}
    # Of two that were made in one second the first by name counts: hence this name.
    write(east, "POST", SERVERS, {**body, "metadata": {"name": "a"}})
    linked(pair)
    write(west, "POST", f"{POLICY}/authorizationpolicies", policy("p", "till-federated"))
    assert "older Servers of its own" in told(west, "False", "Refused")
    async with inbound(east) as ask:
        assert BOSS not in admitted(await ask())


def test_a_service_is_no_target_of_a_policy_that_is_not_carried(pair: Pair) -> None:
    body = policy("p", "till-federated")
    del body["metadata"]["annotations"]
    code, answer = pair.west.request("POST", f"{POLICY}/authorizationpolicies", body)
    assert code == 422
    assert CARRY in answer["message"]
