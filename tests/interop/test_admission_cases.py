"""What the API takes and what it refuses with all causes; of what it warns, as kubectl shows it.

The cases stand in `cases/admission`; they are tried without being written (`dryRun`).
"""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from tests.interop.kubectl import Kubectl
from tests.support.server import ServerProcess

CASES = Path(__file__).parent / "cases" / "admission"
POLICY = "policy.linkerd.io"
GATEWAY = "gateway.networking.k8s.io"

NO_FIELD = "<nil>"
"""Where Kubernetes tells that rules over an object whose parts are invalid were not checked."""

Case = dict[str, Any]


def load() -> list[Case]:
    found: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        found += yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    return found


class Running(NamedTuple):
    server: ServerProcess
    kubectl: Kubectl
    connection: HTTPSConnection


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("admission")
    with ServerProcess(home, "--store", "memory:") as server:
        kubectl = Kubectl(server.kubeconfig, home, "shop")
        kubectl("create", "namespace", "shop")
        connection = server.connect()
        yield Running(server, kubectl, connection)
        connection.close()


def tried(connection: HTTPSConnection, case: Case, spec: Any, notes: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    group, version = case.get("group", POLICY), case.get("version", "v1alpha1")
    kind = case["kind"]
    plural = f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"
    body = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "shop", "annotations": notes},
        "spec": spec,
    }
    path = f"/apis/{group}/{version}/namespaces/shop/{plural}?dryRun=All"
    connection.request(
        "POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    return answer.status, msgspec.json.decode(answer.read())


@pytest.mark.parametrize("case", load(), ids=lambda case: case["case"])
def test_admission(running: Running, case: Case) -> None:
    for spec in case.get("taken", ()):
        notes = spec.pop("annotations", {})
        code, answer = tried(running.connection, case, spec, notes)
        assert code == 201, answer["message"]
    for each in case.get("refused", ()):
        notes = each.get("annotations", {})
        code, answer = tried(running.connection, case, each["spec"], notes)
        assert code == 422, each
        told = {cause["field"] for cause in answer["details"]["causes"]}
        assert told - {NO_FIELD} == set(each["causes"]), answer["message"]


# ------------------------------------------------------------------------------- warnings


def route(
    name: str, parent: str, *, kind: str = "HTTPRoute", rules: str = "[]", notes: str = ""
) -> str:
    group = POLICY if kind == "HTTPRoute" else GATEWAY
    return f"""
apiVersion: {group}/{"v1beta3" if group == POLICY else "v1"}
kind: {kind}
metadata: {{name: {name}, annotations: {{{notes}}}}}
spec:
  parentRefs: [{parent}]
  rules: {rules}
"""


TILL = f"{{group: {POLICY}, kind: Server, name: till}}"
CART = "{group: '', kind: Service, name: cart, port: 80}"
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: cart, annotations: {NOTES}}
spec: {clusterIP: CLUSTER_IP, ports: [{port: 81}]}
"""


def warned(kubectl: Kubectl, text: str) -> list[str]:
    """What kubectl shows, whoever applies it."""
    said = kubectl.say("apply", "-f", "-", stdin=text)
    assert said.code == 0, said.err
    return [line.removeprefix("Warning: ") for line in said.err.splitlines() if "Warning:" in line]


def test_what_is_not_there_yet_is_told_once(running: Running) -> None:
    kubectl = running.kubectl
    [told] = warned(kubectl, route("early", CART))
    assert told.startswith("spec.parentRefs[0]: Service shop/cart does not exist (yet)")
    assert warned(kubectl, route("early", CART, notes="a: b")) == []
    kubectl("delete", f"httproute.{POLICY}", "early")


def test_a_service_that_can_take_no_route(running: Running) -> None:
    kubectl = running.kubectl
    kubectl("apply", "-f", "-", stdin=SERVICE.replace("NOTES", "").replace("CLUSTER_IP", '""'))
    [told] = warned(kubectl, route("other", CART))
    assert told == "spec.parentRefs[0].port: Service shop/cart has no port 80"
    kubectl("delete", "service/cart", f"httproute.{POLICY}/other")
    kubectl("apply", "-f", "-", stdin=SERVICE.replace("NOTES", "").replace("CLUSTER_IP", "None"))
    [told] = warned(kubectl, route("calm", CART))
    assert "has no cluster IP" in told
    kubectl("delete", "service/cart", f"httproute.{POLICY}/calm")


def test_the_first_route_on_a_server_ends_the_way_of_probes(running: Running) -> None:
    kubectl = running.kubectl
    server = f"""
apiVersion: {POLICY}/v1beta3
kind: Server
metadata: {{name: till}}
spec: {{podSelector: {{}}, port: 80}}
"""
    kubectl("apply", "-f", "-", stdin=server)
    for kind in ("HTTPRoute", "GRPCRoute"):
        [told] = warned(kubectl, route("probed", TILL, kind=kind))
        assert told.startswith("spec.parentRefs[0]: with routes on it, a Server lets in nothing")
        assert warned(kubectl, route("probed", TILL, kind=kind, notes="a: b")) == []


def test_paths_that_no_request_ever_has(running: Running) -> None:
    paths = ("/a//b", "/a/../b", "/a%2Fb", "/a#b", "/a/.")
    matches = ", ".join(f"{{path: {{type: Exact, value: '{one}'}}}}" for one in (*paths, "/a/.b"))
    told = warned(running.kubectl, route("odd", TILL, rules=f"[{{matches: [{matches}]}}]"))
    assert len([one for one in told if "made normal" in one]) == len(paths)


def test_a_policy_for_nothing(running: Running) -> None:
    policy = f"""
apiVersion: {POLICY}/v1alpha1
kind: AuthorizationPolicy
metadata: {{name: lost}}
spec:
  targetRef: {{group: {POLICY}, kind: Server, name: ghost}}
  requiredAuthenticationRefs:
  - {{group: {POLICY}, kind: MeshTLSAuthentication, name: ghosts, namespace: attic}}
"""
    [told] = warned(running.kubectl, policy)
    assert told.startswith("spec.targetRef: Server shop/ghost does not exist (yet)")


def test_annotations_of_a_service_that_mean_nothing(running: Running) -> None:
    key = "retry.linkerd.io/http"
    text = SERVICE.replace("NOTES", f'{key}: "5xx, 429"').replace("CLUSTER_IP", '""')
    [told] = warned(running.kubectl, text)
    assert told == (
        f"metadata.annotations[{key}]: ' 429' has a space, and a list of statuses may have none;"
        " it has no effect"
    )
