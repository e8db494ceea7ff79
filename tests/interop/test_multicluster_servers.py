"""Mirrors and federated Services between real servers, over their APIs alone."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import Stream, asker
from tests.support.compact import Compact, document, name_of
from tests.support.linking import LINKS, admin_of, link, rotate
from tests.support.meshworld import fold
from tests.support.server import PATIENCE, ServerProcess
from tests.support.until import until

MEMBER = {"mirror.linkerd.io/federated": "member"}
EXPORTED = {"mirror.linkerd.io/exported": "true"}
REMOTE = "multicluster.linkerd.io/remote-discovery"


class Side:
    """A cluster that keeps what it has when its server stops."""

    def __init__(self, home: Path, name: str) -> None:
        self.home, self.name = home, name
        self.start()

    def start(self) -> None:
        self.server = ServerProcess(self.home, "--cluster", self.name)
        self.server.__enter__()

    def kill(self) -> None:
        self.server.stop(signal.SIGKILL)
        self.server.close()

    def close(self) -> None:
        self.server.close()

    def write(self, compact: Compact) -> None:
        """Create an object, or put it in place of the one that is there."""
        wanted, name = document(compact, "linkerd"), name_of(compact, "linkerd")
        plural, _, group = name.resource.partition(".")
        prefix = f"/apis/{group}/v1" if group else "/api/v1"
        where = f"{prefix}/namespaces/{name.namespace}" if name.namespace else prefix
        where = f"{where}/{plural}"
        wanted["metadata"].pop("uid")
        held = self.get(f"{where}/{name.name}")
        if held is None:
            code, told = self.server.request("POST", where, wanted)
        else:
            said = {key: wanted["metadata"].get(key, {}) for key in ("labels", "annotations")}
            spec = {**held.get("spec", {}), **wanted.get("spec", {})}
            whole = {**held, **wanted, "metadata": {**held["metadata"], **said}}
            whole |= {"spec": spec} if spec else {}
            code, told = self.server.request("PUT", f"{where}/{name.name}", whole)
        assert code in (200, 201), told

    def get(self, path: str) -> dict[str, Any] | None:
        code, told = self.server.request("GET", path)
        return told if code == 200 else None

    def service(self, name: str) -> dict[str, Any] | None:
        return self.get(f"/api/v1/namespaces/shop/services/{name}")

    def names(self) -> set[str]:
        listed = self.get("/api/v1/namespaces/shop/services") or {}
        return {each["metadata"]["name"] for each in listed.get("items", ())}

    def until(self, true: Callable[[], object]) -> None:
        def found() -> bool | None:
            return bool(true()) or None

        def why() -> str:
            return f"{self.names()}; {self.status()}; {self.server.log[-1500:]}"

        until(found, PATIENCE, why)

    def status(self, name: str = "east") -> dict[str, Any]:
        found = self.get(f"{LINKS}/{name}") or {}
        status: dict[str, Any] = found.get("status") or {}
        return status

    def says(self, kind: str) -> str:
        held = {each["type"]: each["status"] for each in self.status().get("conditions", ())}
        return str(held.get(kind))

    def reported(self, which: str) -> dict[str, str] | None:
        listed = self.status().get(f"{which}Services")
        if listed is None:
            return None
        return {each["remoteRef"]["name"]: each["conditions"][0]["reason"] for each in listed}

    def robots(self, *ips: str, labels: dict[str, str] | None = None) -> None:
        """The Service `robot` with these endpoints."""
        eps = [{"ip": ip} for ip in ips]
        said = labels or {**MEMBER, **EXPORTED}
        self.write({"ns": "shop"})
        self.write({"svc": "shop/robot", "ports": [80], "labels": said})
        self.write({"slice": "shop/robot-1", "svc": "robot", "ports": [80], "eps": eps})

    def annotate(self, name: str, **notes: str) -> None:
        """As kubectl does."""
        held = self.service(name)
        assert held is not None
        held["metadata"].setdefault("annotations", {}).update(notes)
        path = f"/api/v1/namespaces/shop/services/{name}"
        code, told = self.server.request("PUT", path, held)
        assert code == 200, told


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    here = Side(tmp_path / "here", "here")
    east = Side(tmp_path / "east", "eastern")
    yield here, east
    here.close()
    east.close()


def held(stream: Stream) -> set[str]:
    return {ip for ip, _ in fold({}, [each.SerializeToString() for each in stream.told])}


def members(here: Side) -> list[str]:
    found = here.service("robot-federated") or {"metadata": {}}
    return str(found["metadata"].get("annotations", {}).get(REMOTE, "")).split(",")


def gateway_of(here: Side) -> list[str]:
    found = here.get("/api/v1/namespaces/shop/endpoints/robot-east") or {}
    subsets = found.get("subsets") or []
    return [one["ip"] for subset in subsets for one in subset.get("addresses", ())]


@pytest.mark.anyio
async def test_from_the_first_export_through_a_silence_to_the_end(
    sides: tuple[Side, Side],
) -> None:
    here, east = sides
    east.robots("10.1.0.1")
    here.write({"ns": "shop"})
    link(
        here.server,
        "east",
        admin_of(east.server),
        gatewayAddress="localhost,192.0.2.7",
        gatewayPort="4143",
        gatewayIdentity="gateway.east",
        selector={"matchLabels": EXPORTED},
    )
    here.until(lambda: here.reported("federated") == {"robot": "Mirrored"})
    here.until(lambda: here.reported("mirror") == {"robot": "Mirrored"})
    assert {"robot-east", "robot-federated"} <= here.names()
    assert members(here) == ["robot@east"]
    here.until(lambda: "127.0.0.1" in gateway_of(here))
    assert "192.0.2.7" in gateway_of(here)
    assert (here.says("Accepted"), here.says("Reachable")) == ("True", "True")
    async with (
        asker(here.server.endpoints["destination"]) as client,
        client.get("robot-federated.shop.svc.cluster.local:80") as stream,
    ):
        await stream.until(lambda it: held(it) == {"10.1.0.1"})
    # An annotation of a person, and nobody behind the mirror any more.
    here.annotate("robot-federated", **{"retry.linkerd.io/http": "5xx"})
    east.robots()
    here.until(lambda: gateway_of(here) == [])
    # The other cluster goes silent; we start again meanwhile, and take nothing away.
    east.kill()
    here.until(lambda: here.says("Reachable") == "False")
    before = here.service("robot-federated")
    here.kill()
    here.start()
    here.until(lambda: here.says("Reachable") == "False")
    assert here.service("robot-federated") == before
    assert {"robot-east", "robot-federated"} <= here.names()
    assert here.reported("federated") == {"robot": "Mirrored"}
    assert before is not None
    assert before["metadata"]["annotations"]["retry.linkerd.io/http"] == "5xx"
    # It comes back at another address, as its Secret says; and then takes its label back.
    east.start()
    east.robots("10.1.0.3", labels=EXPORTED)
    rotate(here.server, "east", admin_of(east.server))
    here.until(lambda: here.reported("federated") == {})
    here.until(lambda: "192.0.2.7" in gateway_of(here))
    assert "robot-federated" not in here.names()
    code, _ = here.server.request("DELETE", f"{LINKS}/east")
    assert code == 200
    here.until(lambda: "robot-east" not in here.names())
