"""The listener: hostile bodies, credentials, connections. Whatever comes, others are served."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import weakref
from datetime import timedelta

import pytest

from isthmus.aio import SystemClock
from isthmus.ca import Bound, make
from isthmus.serve.kube.limits import LARGE, Limits
from isthmus.store.objects import Proposed, Verdict
from tests.unit.serve.kube.serving import Served, serving

CM = "/api/v1/namespaces/a/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def config_map(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


async def still_serves(served: Served) -> None:
    """Nobody else is disturbed."""
    assert (await served.admin.get("/readyz")).raw == b"ok"
    assert (await served.admin.get(CM)).json["items"] == []


# ----------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b""),
        ("application/json", b"{"),
        ("application/json", b"[]"),
        ("application/json", b'"text"'),
        ("application/json", b"\xff\xfe"),
        ("application/json", b'{"metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5001),
        ("application/yaml", b"a: [1"),
        ("application/yaml", b"- a"),
        ("application/yaml", b"a: &x 1\nb: *x"),
        ("application/yaml", b"metadata: {name: !!python/object:os.system x}"),
        ("application/yaml", b"a: 1\n---\nb: 2"),
        ("application/yaml", b"a: .inf"),
        ("application/yaml", b"{1: {[a]: b}}"),
        ("application/yaml", b"[" * 3000),
        (PROTOBUF, b"{}"),
        (PROTOBUF, b"k8s\x00\xff\xff\xff"),
        (PROTOBUF, b"k8s\x00\x0a\x04\x0a\x02v1"),
    ],
)
async def test_a_body_that_cannot_be_read(content_type: str, body: bytes) -> None:
    async with serving() as served:
        reply = await served.admin.ask("POST", CM, body, content_type=content_type)
        assert (reply.code, reply.json["reason"]) == (400, "BadRequest"), reply.raw
        assert reply.json["message"]
        assert "Traceback" not in reply.json["message"]
        await still_serves(served)


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "x"])
async def test_a_body_of_a_type_that_is_not_taken(content_type: str) -> None:
    async with serving() as served:
        reply = await served.admin.ask("POST", CM, b"{}", content_type=content_type)
        assert (reply.code, reply.json["reason"]) == (415, "UnsupportedMediaType")
        assert "application/json" in reply.json["message"]


async def test_a_yaml_body_is_taken() -> None:
    body = b"""
apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {since: "2026-01-02"}}
data: {a: "on", b: "1"}
"""
    async with serving() as served:
        reply = await served.admin.ask("POST", CM, body, content_type="application/yaml")
        assert reply.code == 201, reply.raw
        assert reply.json["data"] == {"a": "on", "b": "1"}


async def test_a_body_over_the_limit_is_refused_however_it_comes() -> None:
    large = b'{"data":{"x":"' + b"x" * (3 * 2**20) + b'"}}'
    bomb = gzip.compress(b" " * 64 * 2**20)
    assert len(bomb) < 2**17

    async def pieces() -> object:
        for _ in range(5):
            yield b"x" * 2**20

    async with serving() as served:
        whole = await served.admin.ask("POST", CM, large)
        assert (whole.code, whole.json["reason"]) == (413, "RequestEntityTooLarge")
        for data, encoding in ((bomb, {"Content-Encoding": "gzip"}), (pieces(), {})):
            headers = {"Content-Type": "application/json", **encoding}
            async with served.admin.session.post(
                served.url + CM, data=data, headers=headers, ssl=served.admin.tls
            ) as reply:
                assert reply.status == 413
        yaml = await served.admin.ask(
            "POST", CM, b"a: " + b"x" * 2**20, content_type="application/yaml"
        )
        assert yaml.code == 413
        await still_serves(served)


async def test_who_is_still_sending_reads_the_refusal_and_may_go_on() -> None:
    size = 4 * 2**20
    head = f"POST {CM} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    async with serving() as served:
        reader, writer = await raw_connection(served, head.encode())
        assert b" 413 " in await reader.readline()
        told = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(told.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        for _ in range(4):
            writer.write(bytes(size // 4))
            await writer.drain()
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
async def test_a_body_that_is_badly_encoded(method: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wanted or not: it is the client's fault, and no line in our log."""
    async with serving() as served:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        reply = await served.admin.ask(method, CM, b"no gzip at all", headers=headers)
        assert reply.code == {"POST": 400, "GET": 200, "PUT": 405}[method]
        await still_serves(served)
    assert not caplog.records


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("POST", CM, 422), ("PUT", f"{CM}/x", 404), ("PATCH", f"{CM}/x", 404), ("DELETE", "/", 405)],
)
async def test_a_refused_request_is_forgotten_at_once(method: str, path: str, code: int) -> None:
    """Not when the collector looks next: refusals come faster, and hold bodies of megabytes."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    body = json.dumps({"metadata": {"name": "x"}, "data": {"a": "x" * (2**20 + 1)}}).encode()
    async with serving() as served:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                reply = await served.admin.ask(method, path, body, content_type=kind)
                assert reply.code == code
            calls = [weakref.ref(verdict.call) for verdict in served.verdicts]
            served.verdicts.clear()
            await still_serves(served)
            assert [call() for call in calls] == [None] * 3
        finally:
            gc.enable()


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "x" * 300, "UPPER", "-a", "a/b", ""])
async def test_names_that_are_none(name: str) -> None:
    async with serving() as served:
        reply = await served.admin.post(CM, {"metadata": {"name": name}})
        assert (reply.code, reply.json["reason"]) == (422, "Invalid"), reply.raw
        assert reply.json["details"]["causes"][0]["field"] == "metadata.name"
        await still_serves(served)


async def test_a_bug_is_told_as_an_id_and_logged() -> None:
    class Broken:
        async def admit(self, proposed: Proposed) -> Verdict:
            message = "secret detail"
            raise RuntimeError(message)

    async with serving(admissions=(Broken(),)) as served:
        reply = await served.admin.post(CM, config_map("x"))
        assert (reply.code, reply.json["reason"]) == (500, "InternalError")
        assert b"secret" not in reply.raw
        (line,) = [line for line in served.log.lines if line.event == "request failed"]
        assert str(line.fields["id"]) in reply.json["message"]
        assert reply.headers["Audit-Id"] == line.fields["id"]
        await still_serves(served)


# ------------------------------------------------------------------------------- credentials


async def test_without_credentials_one_may_see_health_and_version() -> None:
    async with serving() as served:
        nobody = await served.client()
        assert (await nobody.get("/healthz")).raw == b"ok"
        assert (await nobody.get("/version")).json["major"] == "1"
        refused = await nobody.get(CM)
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
        assert refused.json["message"] == (
            'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" '
            'in API group "" in the namespace "a"'
        )
        assert refused.json["details"] == {"kind": "configmaps"}


async def test_a_user_without_rights_may_nothing() -> None:
    async with serving() as served:
        bob = await served.client("bob", "devs")
        refused = await bob.post(CM, config_map("x"))
        assert refused.code == 403
        assert 'User "bob" cannot create resource "configmaps"' in refused.json["message"]
        assert served.verdicts[-1].code == 403
        assert served.verdicts[-1].client == "user 'bob'"


async def test_certificates_of_another_authority_or_time_do_not_connect() -> None:
    """And TLS tells the client why, in its alert."""
    async with serving() as served:
        foreign = make("test", now=SystemClock().utc())
        day = timedelta(days=1)
        for tls, alert in (
            (served.client_tls("eve", "system:masters", authority=foreign), "UNKNOWN_CA"),
            (
                served.client_tls("old", "system:masters", lifetime=day / 2, age=day),
                "CERTIFICATE_EXPIRED",
            ),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=tls)
            writer.write(b"GET " + CM.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(ssl.SSLError, match=alert):
                await reader.read()
            writer.close()
        await still_serves(served)


async def test_tokens_good_expired_forged_and_orphaned() -> None:
    async with serving() as served:
        sa = "/api/v1/namespaces/a/serviceaccounts"
        made = await served.admin.post(sa, {"metadata": {"name": "bot"}})
        account = Bound("serviceaccounts", "a", "bot", made.json["metadata"]["uid"])
        now, hour = served.clock.utc(), timedelta(hours=1)
        good = served.keyring.sign(account, now=now, lifetime=hour)
        client = await served.client(token=good)
        refused = await client.get(CM)
        assert refused.code == 403
        assert "system:serviceaccount:a:bot" in refused.json["message"]
        expired = served.keyring.sign(account, now=now - 2 * hour, lifetime=hour)
        other = served.keyring.sign(account._replace(uid="other"), now=now, lifetime=hour)
        for token in (expired, other, good[:-4] + "AAAA", "x.y.z", "x"):
            reply = await (await served.client(token=token)).get(CM)
            assert (reply.code, reply.json["reason"]) == (401, "Unauthorized"), token
        basic = await served.client()
        reply = await basic.get(CM, Authorization="Basic eDp5")
        assert reply.code == 401
        await still_serves(served)


async def test_impersonation_over_http() -> None:
    async with serving() as served:
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        headers = {"Impersonate-User": "eve", "Impersonate-Group": "devs"}
        reply = await served.admin.ask("POST", review, {}, headers=headers)
        assert reply.json["status"]["userInfo"]["username"] == "eve"
        assert (await served.admin.get(CM, **headers)).code == 403
        bob = await served.client("bob")
        refused = await bob.get(CM, **headers)
        assert 'cannot impersonate resource "users"' in refused.json["message"]


# ------------------------------------------------------------------------------- connections


async def raw_connection(
    served: Served, data: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", served.port, ssl=served.client_tls("admin", "system:masters")
    )
    writer.write(data)
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /api HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n",
        b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_requests_that_are_no_http_are_refused(
    request_line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as served:
        reader, writer = await raw_connection(served, request_line)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert b" 400 " in head
        assert json.loads(body)["reason"] == "BadRequest"
        writer.close()
        await still_serves(served)
    assert not caplog.records


async def test_a_client_that_asks_before_its_body_is_told_to_go_on() -> None:
    body = json.dumps(config_map("x")).encode()
    head = (
        f"POST {CM} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        f"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    async with serving() as served:
        reader, writer = await raw_connection(served, (head % len(body)).encode())
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        await reader.readline()
        writer.write(body)
        assert b" 201 " in await reader.readline()
        writer.close()
        reader, writer = await raw_connection(served, (head % 2**30).encode())
        assert b" 413 " in await reader.readline()
        writer.close()


async def test_half_a_request_is_closed_when_its_time_is_over() -> None:
    async with serving(limits=Limits(header_time=0.2)) as served:
        reader, _ = await raw_connection(served, b"GET /api HTTP/1.1\r\nHost: x\r\n")
        assert await reader.read() == b""
        await still_serves(served)


async def test_half_a_handshake_is_closed_when_its_time_is_over() -> None:
    async with serving(limits=Limits(handshake_time=0.2)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"\x16\x03\x01")
        assert await reader.read() == b""
        writer.close()
        await still_serves(served)


async def test_half_a_body_is_a_timeout() -> None:
    head = b"POST " + CM.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    async with serving(limits=Limits(request_time=0.2)) as served:
        reader, writer = await raw_connection(served, head)
        assert b" 504 " in await reader.readline()
        writer.close()
        await still_serves(served)


async def test_few_large_bodies_of_one_client_at_a_time() -> None:
    """One takes the loop for long; whoever else asks waits for all that are ready."""
    large = json.dumps({"metadata": {"name": "x"}, "data": {"a": "x" * LARGE}}).encode()
    gate, inside = asyncio.Event(), asyncio.Event()

    class Slow:
        async def admit(self, proposed: Proposed) -> Verdict:
            inside.set()
            await gate.wait()
            return Verdict(None)

    async with (
        serving(limits=Limits(large=1), admissions=(Slow(),)) as served,
        asyncio.TaskGroup() as group,
    ):
        first = group.create_task(served.admin.ask("POST", CM, large))
        await inside.wait()
        refused = await served.admin.ask("POST", CM, large)
        assert (refused.code, refused.json["reason"]) == (429, "TooManyRequests")
        assert "1 requests with large bodies open" in refused.json["message"]
        assert (await served.admin.get(CM)).code == 200
        small = group.create_task(served.admin.post(CM, config_map("y")))
        gate.set()
        assert [(await first).code, (await small).code] == [201, 201]
        assert (await served.admin.ask("PUT", f"{CM}/x", large)).code == 200


async def test_a_client_over_its_share_is_told_to_come_back() -> None:
    head = b"POST " + CM.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    async with serving(limits=Limits(requests=1, watches=1)) as served:
        _, writer = await raw_connection(served, head)
        while (reply := await served.admin.get(CM)).code == 200:
            pass
        assert (reply.code, reply.json["reason"]) == (429, "TooManyRequests")
        assert int(reply.headers["Retry-After"]) >= 1
        bob = await served.client("bob", "system:masters")
        assert (await bob.get(CM)).code == 200
        writer.close()
        async with served.admin.watch(f"{CM}?watch=true"):
            async with served.admin.watch(f"{CM}?watch=true") as lines:
                assert lines.answer.status == 429
            async with bob.watch(f"{CM}?watch=true") as lines:
                assert lines.answer.status == 200


async def test_a_client_that_leaves_ends_its_watch(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as served:
        async with served.admin.watch(f"{CM}?watch=true&timeoutSeconds=3000"):
            pass
        while not any(verdict.call.verb == "watch" for verdict in served.verdicts):
            await served.admin.get("/readyz")
        watch = next(v for v in served.verdicts if v.call.verb == "watch")
        assert watch.code == 200
        assert watch.asked is not None
        assert (watch.asked.verb, watch.asked.resource) == ("watch", "configmaps")
    assert not caplog.records
    assert not served.log.lines


async def test_a_client_that_leaves_in_the_middle_of_an_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as served:
        for number in range(3):
            body = {"metadata": {"name": f"x{number}"}, "data": {"x": "y" * 900_000}}
            assert (await served.admin.post(CM, body)).code == 201
        get = f"GET {CM} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        for _ in range(3):
            reader, writer = await raw_connection(served, get)
            await reader.readline()
            writer.transport.abort()
        while len(served.verdicts) < 6:
            await served.admin.get("/readyz")
    assert not caplog.records
    assert not served.log.lines


async def test_a_watcher_that_reads_nothing_is_cut_off_and_nobody_waits() -> None:
    head = f"GET {CM}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with serving(limits=Limits(write_time=0.3)) as served:
        plain = socket.create_connection(("127.0.0.1", served.port))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.setblocking(False)
        tls = served.client_tls("admin", "system:masters")
        reader, writer = await asyncio.open_connection(
            sock=plain, ssl=tls, server_hostname="127.0.0.1", limit=4096
        )
        writer.write(head)
        await reader.readline()
        async with served.admin.watch(f"{CM}?watch=true") as lines:
            number = 0
            while not any(verdict.call.verb == "watch" for verdict in served.verdicts):
                body = {"metadata": {"name": f"x{number}"}, "data": {"x": "y" * 200_000}}
                assert (await served.admin.post(CM, body)).code == 201
                assert await lines.take(1) == [("ADDED", f"x{number}")]
                number += 1
        writer.transport.abort()
        cut = next(v for v in served.verdicts if v.call.verb == "watch")
        assert "a slow reader" in str(cut.error)


async def test_a_stopping_server_ends_watches_in_order() -> None:
    async with serving() as served, served.admin.watch(f"{CM}?watch=true") as lines:
        served.running.cancel()
        assert await lines.rest() == []  # ended, not broken off


async def test_answers_are_json_with_an_id() -> None:
    async with serving() as served:
        reply = await served.admin.get(CM)
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["Cache-Control"] == "no-cache, private"
        assert len(reply.headers["Audit-Id"]) == 16
        assert json.loads(reply.raw)["kind"] == "ConfigMapList"
