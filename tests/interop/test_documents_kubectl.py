"""Discovery, OpenAPI and tables, read by the real kubectl from a server that only serves them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube import negotiate
from isthmus.serve.kube.blob import Blob, blob
from isthmus.serve.kube.discovery import Discovery
from isthmus.serve.kube.openapi import OpenApi
from isthmus.serve.kube.table import ListMeta, Tables
from tests.unit.serve.kube.kinds import WIDGET

KUBECTL = Path(sys.executable).with_name("kubectl")
KINDS = BUILT_IN.extended([WIDGET])
DISCOVERY = Discovery(KINDS)
OPENAPI = OpenApi(KINDS)
WIDGETS = [b'{"metadata":{"name":"w%d","namespace":"default"},"spec":{"size":%d}}' % (i, i)
           for i in (1, 2)]  # fmt: skip

Kubectl = Callable[..., str]


def answer(path: str, accept: str) -> Blob | None:
    form = negotiate.accept(accept, negotiate.DISCOVERIES)
    match path.strip("/").split("/"):
        case ["api"]:
            return DISCOVERY.api(form)
        case ["apis"]:
            return DISCOVERY.apis(form)
        case ["openapi", "v2"]:
            return OPENAPI.v2
        case ["openapi", "v3"]:
            return OPENAPI.index
        case ["openapi", "v3", "api", version]:
            return OPENAPI.document("", version)
        case ["openapi", "v3", "apis", group, version]:
            return OPENAPI.document(group, version)
        case ["apis", "example.io", "v1", "namespaces", "default", "widgets"]:
            assert negotiate.accept(accept) is negotiate.Form.TABLE
            return blob(Tables(WIDGET.versions[0]).of_list(WIDGETS, ListMeta(9), now=60.0))
        case _:
            return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = answer(urlsplit(self.path).path, self.headers.get("Accept", ""))
        self.send_response(200 if found else 404)
        body = found.body if found else b""
        if found:
            self.send_header("Content-Type", found.content_type)
            self.send_header("ETag", found.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def run(*arguments: str) -> str:
            where = f"http://127.0.0.1:{server.server_port}"
            ran = subprocess.run(
                [str(KUBECTL), "--server", where, *arguments],
                check=False,
                capture_output=True,
                env={"HOME": str(home)},
                timeout=60,
            )
            assert ran.returncode == 0, ran.stderr.decode()
            return ran.stdout.decode()

        yield run
        server.shutdown()
        thread.join()


def test_api_resources(kubectl: Kubectl) -> None:
    rows = [line.split() for line in kubectl("api-resources", "-o", "wide").splitlines()]
    found = {row[0]: row for row in rows}
    assert found["widgets"][1:5] == ["wd", "example.io/v1", "true", "Widget"]
    assert found["widgets"][-1] == "all"
    for kind in KINDS:
        if kind.version(KINDS.versions(kind.group)[0]) is not None:
            assert kind.plural in found


def test_api_versions(kubectl: Kubectl) -> None:
    said = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "example.io/v1", "example.io/v1alpha1"} <= set(said)


def test_a_table_is_printed_as_we_made_it(kubectl: Kubectl) -> None:
    lines = [line.split() for line in kubectl("get", "wd").splitlines()]
    assert lines == [["NAME", "SIZE"], ["w1", "1"], ["w2", "2"]]
    wide = [line.split() for line in kubectl("get", "widgets", "-o", "wide").splitlines()]
    assert wide == [["NAME", "SIZE", "SINCE"], ["w1", "1", "60s"], ["w2", "2", "60s"]]


def test_explain_a_kind(kubectl: Kubectl) -> None:
    said = kubectl("explain", "widgets")
    assert "KIND:       Widget" in said
    assert "VERSION:    v1" in said
    assert "A thing that is made." in said
    assert "What is wanted." in said


def test_explain_follows_references_and_lists(kubectl: Kubectl) -> None:
    assert "colour\t<string>" in kubectl("explain", "widget.spec.parts")
    assert "size\t<integer> -required-" in kubectl("explain", "widget.spec")
    container = kubectl("explain", "deployment.spec.template.spec.containers")
    assert "FIELD: containers <[]Container>" in container
    assert "volumeMounts\t<[]VolumeMount>" in container
    assert "<IntOrString>" in kubectl("explain", "service.spec.ports")
    assert "creationTimestamp\t<string>" in kubectl("explain", "pod.metadata")


def test_explain_recursive(kubectl: Kubectl) -> None:
    said = kubectl("explain", "deployment", "--recursive")
    assert "containerPort\t<integer>" in said


def test_explain_from_the_v2_document(kubectl: Kubectl) -> None:
    plain = ("explain", "--output=plaintext-openapiv2")
    assert "A thing that is made." in kubectl(*plain, "widgets")
    assert "size\t<integer> -required-" in kubectl(*plain, "widget.spec")
    assert "RESOURCE: containers <[]Object>" in kubectl(*plain, "pod.spec.containers")
    assert "targetPort\t<string>" in kubectl(*plain, "service.spec.ports")
    for kind in KINDS:
        version = KINDS.versions(kind.group)[0]
        if kind.version(version) is not None:
            assert f"KIND:     {kind.name}" in kubectl(*plain, f"{kind.plural}.{kind.group}")
