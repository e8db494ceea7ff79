"""A Kubernetes API that does as it is told, well or badly: for clients of other clusters' APIs."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from isthmus import ca
from isthmus.store.kubernetes import MIRRORED, Access

Document = dict[str, Any]
Act = Callable[[web.Request], Awaitable[web.StreamResponse]]
PATHS = {each.path(each.versions[0]): each for each in MIRRORED}


def service(name: str, namespace: str = "shop", **metadata: object) -> Document:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, **metadata},
        "spec": {"ports": [{"port": 80}]},
    }


def status(code: int, message: str = "no") -> web.Response:
    body = {"kind": "Status", "code": code, "message": message}
    return web.json_response(body, status=code)


class FakeApi:
    """Serves `objects` (by path, then namespace/name); `act` answers instead where it is set."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Document]] = {path: {} for path in PATHS}
        self.act: dict[str, Act] = {}
        self.version = 100
        self.tokens = {"good"}
        self.asked: Counter[str] = Counter()
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.page = 500
        self.port = 0
        self.authority = ""
        self._changed = asyncio.Event()
        self._log: list[tuple[int, str, str, Document]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[FakeApi]:
        """On a port of loopback, with TLS."""
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls())
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    def _tls(self) -> ssl.SSLContext:
        with tempfile.TemporaryDirectory() as folder:
            authority = ca.load_or_make(Path(folder), "fake", now=datetime.now(UTC))  # noqa: TID251
            leaf = authority.issue_server(["127.0.0.1"], now=datetime.now(UTC))  # noqa: TID251
            chain = Path(folder) / "chain"
            chain.write_bytes(leaf.certificate + leaf.key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain)
        self.authority = authority.bundle.decode()
        return context

    @property
    def access(self) -> Access:
        return Access(f"https://127.0.0.1:{self.port}", self.authority, "good")

    def kubeconfig(self, token: str = "good") -> Document:
        trust = base64.b64encode(self.authority.encode()).decode()
        server = f"https://127.0.0.1:{self.port}"
        cluster = {"server": server, "certificate-authority-data": trust}
        return {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token}}],
        }

    # ------------------------------------------------------------------------------------ changes

    def put(self, document: Document, path: str = "/api/v1/services") -> None:
        meta = document["metadata"]
        key = f"{meta.get('namespace', '')}/{meta['name']}"
        known = key in self.objects[path]
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        self.objects[path][key] = document
        self._note("MODIFIED" if known else "ADDED", path, document)

    def delete(self, key: str, path: str = "/api/v1/services") -> None:
        self.version += 1
        gone = self.objects[path].pop(key)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._note("DELETED", path, gone)

    def _note(self, kind: str, path: str, document: Document) -> None:
        self._log.append((self.version, path, kind, document))
        self._changed.set()
        self._changed = asyncio.Event()

    def put_back(self, version: int) -> None:
        """As restored from a backup: an older version, no history."""
        self.version, self._log = version, []

    # ------------------------------------------------------------------------------------ answers

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.asked[path] += 1
        self.seen.append((path, dict(request.headers)))
        act = self.act.get(path) or self.act.get("*")
        if act is not None:
            return await act(request)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return status(401, "Unauthorized")
        if path == "/version":
            return web.json_response({"major": "1"})
        if path not in self.objects:
            return status(404)
        if request.query.get("watch"):
            return await self._watch(request)
        return self._list(request)

    def _list(self, request: web.Request) -> web.Response:
        held = sorted(self.objects[request.path].items())
        begin = int(request.query.get("continue") or 0)
        end = begin + min(self.page, int(request.query.get("limit") or 500))
        meta = {"resourceVersion": str(self.version)}
        if end < len(held):
            meta["continue"] = str(end)
        return web.json_response({"metadata": meta, "items": [each for _, each in held[begin:end]]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        at = int(request.query["resourceVersion"])
        if at > self.version:
            return status(410, "too large resource version")
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            changed = self._changed
            for version, path, kind, document in list(self._log):
                if version > at and path == request.path:
                    line = json.dumps({"type": kind, "object": document})
                    await response.write(line.encode() + b"\n")
                    at = version
            await changed.wait()
