"""What statuses of routes and policies come to say: the cases of `cases/status`, real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.server import PATIENCE, ServerProcess
from tests.support.until import until

CASES = Path(__file__).parent / "cases" / "status"
POLICY = "policy.linkerd.io"
GATEWAY = "gateway.networking.k8s.io"
OURS = "linkerd.io/policy-controller"
STREAMS = ("TCPRoute", "TLSRoute")
CONDITION = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:01:00Z",
}

Case = dict[str, Any]


def load() -> list[Case]:
    found: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        found += yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    return found


# ------------------------------------------------------------------------- the notation


def parent(each: Mapping[str, Any]) -> dict[str, Any]:
    groups = {"service": ("", "Service"), "server": (POLICY, "Server")}
    groups |= {"egress": (POLICY, "EgressNetwork"), "gateway": (GATEWAY, "Gateway")}
    [word] = groups.keys() & each.keys()
    group, kind = groups[word]
    port = {"port": each["port"]} if "port" in each else {}
    return {"group": group, "kind": kind, "name": each[word], **port}


def route(each: Mapping[str, Any]) -> tuple[str, str, Any]:
    kind, group = each.get("kind", "HTTPRoute"), each.get("group", GATEWAY)
    version = "v1alpha2" if kind in STREAMS else "v1" if group == GATEWAY else "v1beta3"
    named = each["for"] if isinstance(each["for"], list) else [each["for"]]
    backends = [{"name": name, "port": 80} for name in each.get("to", ())]
    spec: Case = {"parentRefs": [parent(one) for one in named]}
    if backends:
        spec["rules"] = [{"backendRefs": backends}]
    if "hosts" in each:
        spec["hostnames"] = each["hosts"]
    return kind, f"{group}/{version}", spec


def document(each: Mapping[str, Any]) -> Case:
    """An object of the notation."""
    match next(iter(each)):
        case "service":
            ports = [{"port": 80}]
            kind, version, spec = "Service", "v1", {"ports": ports, **each.get("spec", {})}
        case "server":
            chosen = {"matchLabels": {"app": each["server"]}}
            kind, version = "Server", f"{POLICY}/v1beta3"
            spec = {"podSelector": chosen, "port": 80}
        case "egress":
            kind, version, spec = "EgressNetwork", f"{POLICY}/v1alpha1", {"trafficPolicy": "Allow"}
            if "networks" in each:
                spec["networks"] = each["networks"]
        case "limit":
            kind, version = "HTTPLocalRateLimitPolicy", f"{POLICY}/v1alpha1"
            spec = {"targetRef": server(each["for"]), "total": {"requestsPerSecond": 5}}
        case "policy":
            kind, version = "AuthorizationPolicy", f"{POLICY}/v1alpha1"
            spec = {"targetRef": server(each["for"]), "requiredAuthenticationRefs": []}
        case "pod":
            kind, version, spec = "Pod", "v1", {"containers": [{"name": "app", "image": "app"}]}
        case _:
            kind, version, spec = route(each)
    metadata = {"namespace": "shop", "name": next(iter(each.values()))}
    if "app" in each:
        metadata["labels"] = {"app": each["app"]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def server(name: str) -> dict[str, str]:
    return {"group": POLICY, "kind": "Server", "name": name}


def place(one: Case) -> str:
    version, kind = one["apiVersion"], one["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    base = "/api/v1" if version == "v1" else f"/apis/{version}"
    return f"{base}/namespaces/shop/{plural}"


# ------------------------------------------------------------------------------ the world


class World:
    """The objects of one case, in a namespace that is empty before and after."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._held: dict[str, str] = {}
        self._words: dict[str, str] = {}

    def apply(self, each: Mapping[str, Any]) -> None:
        word, name = next(iter(each.items()))
        one = document(each)
        made = self._ask("POST", place(one), one)
        path = self._held[name] = f"{place(one)}/{name}"
        self._words[f"{word} {name}"] = name
        if "status" in each:
            entries = [
                {"parentRef": it["parent"], "controllerName": it["by"], "conditions": [CONDITION]}
                for it in each["status"]
            ]
            del made["metadata"]["resourceVersion"]  # the controller may have been faster
            self._ask("PUT", f"{path}/status", {**made, "status": {"parents": entries}})

    def delete(self, text: str) -> None:
        self._ask("DELETE", f"{self._held.pop(self._words.pop(text))}?gracePeriodSeconds=0")

    def clear(self) -> None:
        for text in reversed(list(self._words)):
            self.delete(text)

    def status(self, name: str) -> Case:
        return dict(self._ask("GET", self._held[name]).get("status") or {})

    def _ask(self, method: str, path: str, body: object = None) -> Case:
        code, answer = self._server.request(method, path, body)
        assert code < 300, answer
        return dict(answer)


def wrong(said: Case, wanted: Any) -> list[str]:  # noqa: ANN401 - a list for routes
    """What a status does not say as it is wanted."""
    if isinstance(wanted, dict):
        target = wanted.get("target", said.get("targetRef"))
        faults = [f"targetRef {said.get('targetRef')}"] if target != said.get("targetRef") else []
        return faults + unlike(said.get("conditions", []), wanted)
    entries = said.get("parents", [])
    if len(entries) != len(wanted):
        return [f"{len(entries)} entries: {entries}"]
    found: list[str] = []
    for entry, each in zip(entries, wanted, strict=True):
        if each.get("parent", entry["parentRef"]) != entry["parentRef"]:
            found.append(f"parentRef {entry['parentRef']}")
        if each.get("by", OURS) != entry["controllerName"]:
            found.append(entry["controllerName"])
        found += unlike(entry["conditions"], each)
    return found


def unlike(said: list[Case], wanted: Case) -> list[str]:
    now = {each["type"]: [each["status"], each["reason"]] for each in said}
    found = [
        f"{kind}: {now.get(kind)}"
        for kind in wanted
        if kind[0].isupper() and now.get(kind) != wanted[kind]
    ]
    if "says" in wanted and wanted["says"] not in {each["message"] for each in said}:
        found.append(f"messages: {[each['message'] for each in said]}")
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("statuses")
    with ServerProcess(home, "--store", "memory:") as server:
        named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        assert server.request("POST", "/api/v1/namespaces", named)[0] == 201
        yield server


def settled(world: World, expect: Case) -> None:
    faults: list[str] = []

    def fits() -> bool | None:
        faults[:] = [
            f"{name}: {fault}"
            for name, wanted in expect.items()
            for fault in wrong(world.status(name), wanted)
        ]
        return None if faults else True

    until(fits, PATIENCE, lambda: "\n".join(faults))


@pytest.mark.parametrize("case", load(), ids=lambda case: case["case"])
def test_status(running: ServerProcess, case: Case) -> None:
    world = World(running)
    try:
        for each in case["objects"]:
            world.apply(each)
        settled(world, case["expect"])
        for step in case.get("then", ()):
            for text in step.get("delete", ()):
                world.delete(text)
            for each in step.get("apply", ()):
                world.apply(each)
            settled(world, step["expect"])
    finally:
        world.clear()
