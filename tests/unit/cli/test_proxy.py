"""`isthmus proxy status`, against an admin listener."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from isthmus.cli.commands.proxy import ask, rejections, rows
from isthmus.cli.entry import run
from isthmus.errors import Unavailable, UserFault
from isthmus.serve.xds import Proxies, ProxyReport, RejectedResource, TypeReport

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def kind(name: str, acked: datetime | None, *rejected: RejectedResource) -> TypeReport:
    url = f"type.googleapis.com/x.{name}"
    return TypeReport(name, url, True, 0, 5, 4, 1, NOW, acked, "", None, rejected)


def proxy(name: str, *types: TypeReport, scope: tuple[str, ...] = ("*/*",)) -> ProxyReport:
    return ProxyReport(name, name, "envoy 1.39.3", "envoy", "Delta", "unix:", (), NOW, scope, types)


BAD = RejectedResource("teapot", "1", "port is odd", NOW, "o")
DOCUMENT = Proxies(
    (
        proxy("a.shop", kind("Cluster", NOW - timedelta(seconds=5), BAD), kind("Listener", None)),
        proxy("b.shop", scope=()),
    )
)
FOUND = msgspec.json.decode(msgspec.json.encode(DOCUMENT))["proxies"]


@contextmanager
def admin(status: int, body: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/proxies" else 500)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_line_for_each_type_of_each_proxy() -> None:
    assert list(rows(FOUND, NOW.timestamp())) == [
        ("a.shop", "Cluster", "5", "4", "1", "1", "5s", "*/*"),
        ("a.shop", "Listener", "5", "4", "1", "0", "-", "*/*"),
        ("b.shop", "-", "0", "0", "0", "0", "-", "(unknown)"),
    ]


def test_rejections_are_told_in_the_words_of_the_proxy() -> None:
    assert list(rejections(FOUND)) == [
        "a.shop rejects Cluster teapot since 2026-11-30T12:00:00Z: port is odd"
    ]


def test_the_command_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    with admin(200, msgspec.json.encode(DOCUMENT)) as at:
        assert run(["proxy", "status", "--api-addr", at]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == [
            *("PROXY", "TYPE", "SENT", "ACKED", "WAITING", "REJECTED", "LAST", "ACK", "SCOPE")
        ]
        assert len(lines) == 1 + 3 + 1
        assert run(["proxy", "status", "--api-addr", at, "b.shop", "-o", "json"]) == 0
        [one] = json.loads(capsys.readouterr().out)["proxies"]
        assert one["proxy"] == "b.shop"
        assert run(["proxy", "status", "--api-addr", at, "nobody"]) == 0
        assert capsys.readouterr().out == "No proxies.\n"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [(404, b"", "serves no proxies"), (200, b"{}", "no proxies"), (500, b"<html>", "status 500")],
)
def test_what_is_no_answer_is_told(status: int, body: bytes, why: str) -> None:
    with admin(status, body) as at, pytest.raises(UserFault, match=why):
        ask(at)


def test_nobody_there_is_told() -> None:
    with admin(200, b"") as at:
        pass
    with pytest.raises(Unavailable, match="cannot reach"):
        ask(at)
