from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from isthmus.cli.commands.explain import context_of, qualified, verdict
from isthmus.cli.entry import run
from tests.support.explaining import explain, faces

Asked = list[dict[str, list[str]]]


@contextmanager
def admin(status: int, found: Any) -> Iterator[tuple[str, Asked]]:  # noqa: ANN401 - JSON
    """A control plane's listener that answers so, and what it was asked."""
    asked: Asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = urlsplit(self.path)
            asked.append(parse_qs(said.query))
            self.send_response(status if said.path == "/explain" else 500)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("sender", "namespace", "found"),
    [
        ("shop/cart-a", None, "shop/cart-a"),
        ("cart-a", None, "default/cart-a"),
        ("cart-a", "shop", "shop/cart-a"),
        ("deploy/cart", "shop", "shop/deploy/cart"),
        ("shop/deploy/cart", "other", "shop/deploy/cart"),
        ("a.b.serviceaccount.identity.l.td@10.0.0.1", "shop",
         "a.b.serviceaccount.identity.l.td@10.0.0.1"),
        ("spiffe://td/a@10.0.0.1", "shop", "spiffe://td/a@10.0.0.1"),
    ],
)  # fmt: skip
def test_a_namespace_is_added_where_there_is_none(
    sender: str, namespace: str | None, found: str
) -> None:
    assert qualified(sender, namespace) == found


def test_what_is_asked_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = explain(faces(), "faces/old-1", "smiley")
    with admin(200, found) as (at, asked):
        arguments = ["explain", "-n", "faces", "old-1", "smiley", "GET", "/x"]
        more = ["-H", "a: b", "-H", "c:d", "--throw", "7", "--api-addr", at]
        assert run([*arguments, *more]) == 1
    assert asked == [
        {"from": ["faces/old-1"], "to": ["smiley"], "method": ["GET"], "path": ["/x"],
         "headers": ["a: b\nc:d"], "throw": ["7"]}
    ]  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["from", "Pod", "faces/old-1"]
    assert lines[-1].startswith("REFUSED by Server faces/smiley: 403, ")


def test_json_is_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = explain(faces(), "faces/face-1", "smiley")
    with admin(200, found) as (at, _):
        assert run(["explain", "faces/face-1", "smiley", "-o", "json", "--api-addr", at]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize(
    ("status", "found", "why"),
    [
        (200, {"problem": "there is no pod a/b"}, "there is no pod a/b"),
        (404, {"error": "Not Found"}, "older than this command"),
        (500, [], "status 500 and no explanation"),
    ],
)
def test_what_is_no_explanation_is_told(
    status: int,
    found: Any,  # noqa: ANN401 - JSON
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with admin(status, found) as (at, _):
        assert run(["explain", "a/b", "c", "--api-addr", at]) == 1
    assert why in capsys.readouterr().err


def test_numbers_stand_in_the_verdict() -> None:
    said = {"outcome": "answered", "by": "GRPCRoute a/b", "status": 200, "grpc": 5, "text": "no"}
    assert verdict(said) == "ANSWERED by GRPCRoute a/b: 200, grpc-status 5, no"
    assert verdict({"outcome": "delivered"}) == "DELIVERED"


@pytest.mark.parametrize(
    ("contexts", "found"),
    [
        (["east", "kind-east"], "east"),
        (["kind-east", "kind-west"], "kind-east"),
        (["kind-east", "k3d-east"], "east"),
        (["northeast"], "east"),
        ([], "east"),
    ],
)
def test_the_context_of_a_cluster(contexts: list[str], found: str) -> None:
    assert context_of("east", contexts) == found


def test_what_is_asked_elsewhere_names_a_context_that_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text("contexts: [{name: kind-east, context: {cluster: east}}]")
    answer = {
        "ends": [
            {"lines": [], "ask": "isthmus --context=east explain x shop/cart-1"},
            {"lines": []},
        ],
        "verdict": {"outcome": "depends"},
    }
    with admin(200, answer) as (at, _):
        asked = ["--kubeconfig", str(config), "explain", "--api-addr", at, "shop/a", "cart"]
        assert run(asked) == 0
    assert "ask there: isthmus --context=kind-east explain x" in capsys.readouterr().out
