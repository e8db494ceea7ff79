"""ServiceProfiles that are partly wrong: kubectl warns, a condition tells, the rest is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from isthmus.aio import SystemClock
from isthmus.proto.linkerd import destination_pb2 as pb
from tests.interop.kubectl import Kubectl
from tests.support.asking import Asker, asker
from tests.support.server import ServerProcess

NAME = "web.default.svc.cluster.local"
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
"""
PROFILE = f"""
apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {{name: {NAME}}}
spec:
  routes:
  - name: good
    condition: {{method: GET, pathRegex: /good}}
"""
BAD_REGEX = """
  - name: bad
    condition: {pathRegex: "("}
"""
UNKNOWN = """
  - name: strange
    condition: {method: GET, pathRegexp: /strange}
"""
WRONG_TYPE = """
  - name: [no, text]
    condition: {method: GET}
"""


class One(NamedTuple):
    kubectl: Kubectl
    at: str


@pytest.fixture(scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[One]:
    home = tmp_path_factory.mktemp("profiles")
    with ServerProcess(home, "--store", "memory:") as server:
        kubectl = Kubectl(server.kubeconfig, home, "default")
        kubectl("apply", "-f", "-", stdin=SERVICE)
        yield One(kubectl, server.endpoints["destination"])


async def routes(client: Asker, wanted: list[str]) -> None:
    """The stream's answer comes to have these routes."""
    async with client.profile(f"{NAME}:80") as stream:
        await stream.until(lambda it: bool(it.told) and names(it.told[-1]) == wanted)


def names(profile: pb.DestinationProfile) -> list[str]:
    return [each.metrics_labels["route"] for each in profile.routes]


async def accepted(kubectl: Kubectl, generation: int) -> dict[str, Any]:
    """The condition, once it is about this generation."""
    for _ in range(200):
        status = kubectl.read("serviceprofile", NAME).get("status", {})
        for each in status.get("conditions", []):
            if each["type"] == "Accepted" and each["observedGeneration"] >= generation:
                return dict(each)
        await SystemClock().sleep(0.02)
    raise AssertionError("no condition")


async def test_the_bad_part_is_told_and_the_rest_is_served(one: One) -> None:
    kubectl = one.kubectl
    async with asker(one.at) as client:
        said = kubectl.say("apply", "-f", "-", stdin=PROFILE + BAD_REGEX)
        assert said.code == 0
        assert "Warning: spec.routes[1].condition.pathRegex: " in said.err
        await routes(client, ["good"])
        found = await accepted(kubectl, 1)
        assert (found["status"], found["reason"]) == ("False", "Invalid")
        assert "(route 'bad')" in found["message"]

        strict = kubectl.fails("apply", "-f", "-", stdin=PROFILE + UNKNOWN)
        assert 'unknown field "spec.routes[1].condition.pathRegexp"' in strict
        await routes(client, ["good"])

        for mode, generation in (("warn", 2), ("false", 4)):
            said = kubectl.say("apply", f"--validate={mode}", "-f", "-", stdin=PROFILE + UNKNOWN)
            assert said.code == 0
            assert "Warning: spec.routes[1].condition.pathRegexp: unknown field" in said.err
            found = await accepted(kubectl, generation)
            assert (found["status"], found["reason"]) == ("False", "Invalid")
            assert "(route 'strange'): unknown field" in found["message"]
            await routes(client, ["good"])
            assert kubectl.say("apply", "-f", "-", stdin=PROFILE).err == ""
            assert (await accepted(kubectl, generation + 1))["status"] == "True"

        wrong = kubectl.fails("apply", "--validate=false", "-f", "-", stdin=PROFILE + WRONG_TYPE)
        assert "spec.routes[1].name" in wrong
        await routes(client, ["good"])

        described = kubectl("describe", "serviceprofile", NAME)
        assert "Accepted" in described
        assert "ResolvedRefs" in described


async def test_who_applies_on_the_server_says_only_what_there_is(one: One) -> None:
    """Server-side apply knows no fields without a schema: they are dropped, as Kubernetes does."""
    kubectl, name = one.kubectl, "other.default.svc.cluster.local"
    body = PROFILE.replace(NAME, name) + UNKNOWN
    said = kubectl.say("apply", "--server-side", "--validate=warn", "-f", "-", stdin=body)
    assert said.code == 0, said.err
    assert "pathRegexp" in said.err
    assert "pathRegexp" not in str(kubectl.read("serviceprofile", name)["spec"])
    kubectl("replace", "--validate=false", "-f", "-", stdin=body)
    assert "pathRegexp" in str(kubectl.read("serviceprofile", name)["spec"])
    sound = PROFILE.replace(NAME, name)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=sound)
    assert "pathRegexp" not in str(kubectl.read("serviceprofile", name)["spec"])
