"""What the audit says of requests, and what it never says; its files, and a disk that fails."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.aio import ManualClock, SystemClock, breathe
from isthmus.errors import Forbidden
from isthmus.serve.kube.api import Call, Verdict
from isthmus.serve.kube.audit import LONGEST, line, noteworthy
from isthmus.serve.kube.auditlog import FILE, AuditFile, AuditLog, Sizes
from isthmus.serve.kube.auth import ANONYMOUS, Attributes, User
from tests.support.log import ListLog
from tests.unit.serve.kube.serving import Served, serving

BOB = User("bob", ("devs", "system:authenticated"), "7")
CM = "/api/v1/namespaces/a/configmaps"


async def no_body() -> bytes:
    return b""


def verdict(
    path: str = CM, code: int = 201, asked: Attributes | None = None, agent: str = ""
) -> Verdict:
    headers = {"user-agent": agent} if agent else {}
    call = Call(id="1", method="POST", path=path, headers=headers, address="10.0.0.1", body=no_body)
    made = Verdict(call)
    made.user = made.by = BOB
    made.code = code
    made.asked = asked or Attributes("create", "", "v1", "configmaps", "", "a")
    return made


def said(of: Verdict) -> dict[str, Any]:
    read = json.loads(line(of, ManualClock().utc()))
    assert isinstance(read, dict)
    return read


# ------------------------------------------------------------------------------------- lines


def test_a_line_says_who_what_and_what_came_of_it() -> None:
    made = verdict(f"{CM}?dryRun=All", agent="kubectl/v1")
    made.reason, made.seconds = "RBAC: allowed", 0.25
    line_ = said(made)
    time = line_.pop("time")
    assert time.endswith("Z")
    assert line_ == {
        "id": "1",
        "user": {"name": "bob", "uid": "7", "groups": ["devs", "system:authenticated"]},
        "address": "10.0.0.1",
        "verb": "create",
        "version": "v1",
        "resource": "configmaps",
        "namespace": "a",
        "uri": f"{CM}?dryRun=All",
        "agent": "kubectl/v1",
        "dryRun": True,
        "verdict": "allowed",
        "code": 201,
        "because": "RBAC: allowed",
        "seconds": 0.25,
    }


def test_who_counts_as_somebody_else_is_named_with_them() -> None:
    made = verdict()
    made.user = User("eve")
    assert said(made)["user"] == {"name": "eve"}
    assert said(made)["by"]["name"] == "bob"


@pytest.mark.parametrize(
    ("code", "outcome"), [(201, "allowed"), (403, "refused"), (409, "failed"), (500, "failed")]
)
def test_outcomes(code: int, outcome: str) -> None:
    made = verdict(code=code)
    made.error = Forbidden("secret text") if code == 403 else None
    assert said(made)["verdict"] == outcome
    assert "secret text" not in json.dumps(said(made))


@pytest.mark.parametrize(
    ("asked", "code", "noted"),
    [
        (Attributes("create", resource="pods"), 201, True),
        (Attributes("delete", resource="pods"), 404, True),
        (Attributes("deletecollection", resource="pods"), 200, True),
        (Attributes("get", resource="secrets"), 200, False),
        (Attributes("get", resource="secrets"), 403, True),
        (Attributes("watch", resource="pods"), 429, True),
        (Attributes("create", "authorization.k8s.io", resource="subjectaccessreviews"), 201, False),
        (Attributes("create", "", "v1", "serviceaccounts", "token", "a", "x"), 201, True),
        (Attributes("get", path="/api"), 200, False),
        (Attributes("get", path="/metrics"), 403, True),
    ],
)
def test_what_is_noted(asked: Attributes, code: int, noted: bool) -> None:  # a table
    assert noteworthy(verdict(code=code, asked=asked)) is noted


def test_what_nobody_could_read_is_noted_as_it_came() -> None:
    made = verdict("/api/v1/%2e%2e/x%00", 400)
    made.asked = None
    assert noteworthy(made)
    assert said(made)["uri"] == "/api/v1/%2e%2e/x%00"
    assert (said(made)["verb"], said(made)["verdict"]) == ("post", "refused")


def test_parameters_that_are_called_like_secrets_are_left_out() -> None:
    made = verdict(f"{CM}?a=1&access_token=abc&PASSWORD=x&b=2")
    assert said(made)["uri"] == f"{CM}?a=1&access_token=...&PASSWORD=...&b=2"


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_writes_a_line_of_its_own(name: str, path: str) -> None:
    made = verdict("/" + path, agent=name)
    made.user = made.by = User(name, (name,))
    made.asked = Attributes("create", name=name, namespace=path)
    raw = line(made, ManualClock().utc())
    assert raw.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in raw[:-1])
    assert json.loads(raw)["name" if name else "id"] == (name or "1")


def test_lines_are_bounded() -> None:
    long = "x" * 100_000
    made = verdict("/" + long, agent=long)
    made.user = made.by = User(long, (long,) * 500)
    assert len(line(made, ManualClock().utc())) < 50 * LONGEST


# ------------------------------------------------------------------------------------- files


def test_files_are_rotated_and_closed_to_others(tmp_path: Path) -> None:
    file = AuditFile(tmp_path, Sizes(size=30, files=3))
    for number in range(20):
        assert file.append([f"line number {number:02}\n".encode()]) == (1, None)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [FILE, f"{FILE}.1", f"{FILE}.2"]
    text = "".join((tmp_path / name).read_text() for name in reversed(names))
    assert text == "".join(f"line number {number:02}\n" for number in range(14, 20))
    for name in names:
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_many_lines_at_once_fill_files_and_a_long_one_has_its_own(tmp_path: Path) -> None:
    file = AuditFile(tmp_path, Sizes(size=10, files=4))
    lines = [b"1\n", b"2\n", b"x" * 50 + b"\n", b"3\n"]
    assert file.append(lines) == (4, None)
    held = [(tmp_path / name).read_bytes() for name in (f"{FILE}.2", f"{FILE}.1", FILE)]
    assert held == [b"1\n2\n", b"x" * 50 + b"\n", b"3\n"]


def test_one_file_only(tmp_path: Path) -> None:
    file = AuditFile(tmp_path, Sizes(size=4, files=1))
    file.append([b"1\n", b"2\n", b"3\n"])
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).read_bytes() == b"3\n"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    written, fault = AuditFile(tmp_path, Sizes()).append([b"1\n"])
    assert written == 0
    assert isinstance(fault, OSError)
    assert not (tmp_path / "elsewhere").exists()


# -------------------------------------------------------------------------------------- log


@asynccontextmanager
async def logging(directory: Path, sizes: Sizes | None = None) -> AsyncIterator[AuditLog]:
    log = AuditLog(directory, SystemClock(), ListLog(), sizes)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(log.run())
        yield log
        running.cancel()
    await log.close()


def held(directory: Path) -> list[dict[str, Any]]:
    text = (directory / FILE).read_text()
    return [json.loads(each) for each in text.splitlines()]


async def test_everything_is_written_when_it_is_closed(tmp_path: Path) -> None:
    async with logging(tmp_path) as log:
        for _ in range(100):
            log.observe(verdict())
        log.observe(verdict(code=200, asked=Attributes("get", resource="pods")))
    log.observe(verdict())
    assert len(held(tmp_path)) == log.written == 100
    assert log.dropped == 1


async def test_what_is_dropped_is_told(tmp_path: Path) -> None:
    async with logging(tmp_path, Sizes(waiting=10)) as log:
        for _ in range(25):
            log.observe(verdict())
        while not log.written:
            await breathe()
        log.observe(verdict())
    assert log.dropped == 15
    lost = [each for each in held(tmp_path) if each["verdict"] == "lost"]
    assert [each["lines"] for each in lost] == [15]
    assert log.written == 11


async def test_a_disk_that_fails_stops_nothing_and_is_told_once(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    log = AuditLog(gone, SystemClock(), warned := ListLog(), Sizes())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(log.run())
        for expected in (1, 2):
            log.observe(verdict())
            while log.dropped < expected:
                await breathe()
        gone.mkdir()
        log.observe(verdict())
        while not log.written:
            await breathe()
        running.cancel()
    await log.close()
    assert [each.get("lines") for each in held(gone)] == [2, None]
    assert warned.events() == ["the audit cannot be written"]


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AuditFile(tmp_path, Sizes())
    file.append([b"whole\n"])
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) <= 3:
            raise OSError(28, "No space left on device")
        return real(handle, data[:3])

    monkeypatch.setattr(os, "write", full)
    written, fault = file.append([b"half\n"])
    assert (written, isinstance(fault, OSError)) == (0, True)
    assert (tmp_path / FILE).read_bytes() == b"whole\n"


# --------------------------------------------------------------------------------- over HTTP


async def lines_of(served: Served) -> list[dict[str, Any]]:
    return [said(each) for each in served.verdicts if noteworthy(each)]


async def test_requests_over_http_are_noted_with_who_and_what() -> None:
    async with serving() as served:
        await served.admin.post("/api/v1/namespaces/a/secrets", {
            "metadata": {"name": "s"}, "stringData": {"password": "hunter2"},
        })  # fmt: skip
        await served.admin.ask("POST", CM, b"not json hunter2")
        bob = await served.client("bob", "devs")
        await bob.get("/api/v1/namespaces/a/secrets/s")
        await bob.get(CM, **{"Impersonate-User": "root", "Impersonate-Group": "system:masters"})
        nobody = await served.client(token="ab.cd.ef")
        await nobody.get(CM)
        made, bad, read, worn, unknown = await lines_of(served)
        assert (made["verb"], made["resource"], made["verdict"]) == ("create", "secrets", "allowed")
        assert made["user"]["groups"] == ["system:masters", "system:authenticated"]
        assert made["because"] == "group system:masters"
        assert (bad["code"], bad["reason"], bad["verdict"]) == (400, "BadRequest", "failed")
        assert (read["user"]["name"], read["verb"], read["name"]) == ("bob", "get", "s")
        assert (read["verdict"], read["reason"]) == ("refused", "Forbidden")
        assert (worn["user"]["name"], worn["as"]) == ("bob", ["root", "system:masters"])
        assert (unknown["code"], unknown["reason"]) == (401, "Unauthorized")
        assert "user" not in unknown
        everything = json.dumps([made, bad, read, worn, unknown])
        assert "hunter2" not in everything
        assert "ab.cd.ef" not in everything


async def test_encoded_paths_are_noted_as_they_came_and_as_they_were_read() -> None:
    async with serving() as served:
        bob = await served.client("bob")
        await bob.get("/api/v1/namespaces/a/%73ecrets/s")
        [line_] = await lines_of(served)
        assert line_["uri"].endswith("/s")
        assert (line_["resource"], line_["name"]) == ("secrets", "s")


async def test_an_issued_token_is_noted_and_not_told() -> None:
    async with serving() as served:
        accounts = "/api/v1/namespaces/a/serviceaccounts"
        await served.admin.post(accounts, {"metadata": {"name": "bot"}})
        made = await served.admin.post(f"{accounts}/bot/token", {})
        _, line_ = await lines_of(served)
        assert (line_["subresource"], line_["name"]) == ("token", "bot")
        assert made.json["status"]["token"] not in json.dumps(line_)


def test_nobody_is_anonymous() -> None:
    made = verdict(code=403)
    made.user = made.by = ANONYMOUS
    assert said(made)["user"] == {"name": "system:anonymous", "groups": ["system:unauthenticated"]}
