"""A client of the Kubernetes API: what a kubelet, and whoever applies manifests, needs of it."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from isthmus import errors
from isthmus.aio import Backoff, Clock
from isthmus.ca import Leaf
from isthmus.errors import IsthmusError, Unavailable, UserFault
from isthmus.lab.network.namespace import Namespace

Document = dict[str, Any]

PATIENCE = aiohttp.ClientTimeout(total=30, connect=5)
WATCHING = aiohttp.ClientTimeout(total=None, connect=5, sock_read=150)
"""The server sends a bookmark each minute, so silence means it is gone."""
LONGEST = 16 * 2**20
"""Bytes of one event of a watch."""
PAGE = 500

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_BY_CODE: Mapping[int, type[IsthmusError]] = {
    400: errors.BadRequest,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    409: errors.Conflict,
    410: errors.Compacted,
    422: errors.Invalid,
    429: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.DeadlineExceeded,
}


def client_context(authority: bytes, leaf: Leaf) -> ssl.SSLContext:
    """TLS that trusts `authority` alone and shows `leaf`."""
    context = ssl.create_default_context(cadata=authority.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with tempfile.NamedTemporaryFile() as chain:  # OpenSSL reads keys from files alone
        chain.write(leaf.certificate + leaf.key)
        chain.flush()
        context.load_cert_chain(chain.name)
    return context


class Api:
    """One API server, reached from inside a namespace with one client certificate."""

    def __init__(self, server: str, tls: ssl.SSLContext, inside: Namespace) -> None:
        """`server` is `https://host:port`."""
        self._server = server
        connector = aiohttp.TCPConnector(
            ssl=tls, socket_factory=inside.factory, limit=64, happy_eyeballs_delay=None
        )
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def get(self, path: str, **query: str) -> Document:
        """GET; the object. NotFound and its kin as the server says, Unavailable if it is silent."""
        return await self._call("GET", path, query=query)

    async def create(self, path: str, document: Document) -> Document:
        """POST; the object as it was stored."""
        return await self._call("POST", path, document)

    async def patch(self, path: str, patch: Document, form: str = MERGE, **query: str) -> Document:
        """PATCH; the object as it is now."""
        return await self._call("PATCH", path, patch, form, query)

    async def delete(self, path: str, options: Document) -> None:
        """DELETE with DeleteOptions."""
        await self._call("DELETE", path, options)

    async def _call(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        form: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Document:
        raw = None if body is None else msgspec.json.encode(body)
        headers = {"Accept": "application/json"} | ({"Content-Type": form} if raw else {})
        try:
            async with self._session.request(
                method, self._server + path, params=query, data=raw, headers=headers,
                timeout=PATIENCE,
            ) as answer:  # fmt: skip
                text = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            raise _silent(fault) from fault
        if answer.status >= 300:
            raise refusal(answer.status, text)
        return _object(text)

    async def watch(self, path: str, since: str, **query: str) -> AsyncIterator[Document]:
        """Events after a resource version until the server ends it. Compacted: list again."""
        asked = {**query, "watch": "1", "resourceVersion": since, "allowWatchBookmarks": "true"}
        try:
            async with self._session.get(
                self._server + path, params=asked, timeout=WATCHING
            ) as answer:
                if answer.status >= 300:
                    raise refusal(answer.status, await answer.read())
                async for line in _lines(answer.content):
                    event = _object(line)
                    if event.get("type") == "ERROR":
                        status = event.get("object") or {}
                        raise refusal(int(status.get("code") or 500), msgspec.json.encode(status))
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            raise _silent(fault) from fault

    async def list(self, path: str, **query: str) -> tuple[list[Document], str]:
        """All objects, page by page, and the resource version of the list."""
        found: list[Document] = []
        token = ""
        while True:
            more = {"continue": token} if token else {}
            page = await self.get(path, limit=str(PAGE), **query, **more)
            found += page.get("items") or []
            metadata = page.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                return found, str(metadata.get("resourceVersion") or "0")


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in stream.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
        if len(rest) > LONGEST:
            raise Unavailable("an event of a watch is too long")


def _object(text: bytes) -> Document:
    try:
        found = msgspec.json.decode(text)
    except msgspec.MsgspecError as fault:
        raise Unavailable(f"the API's answer is not JSON: {fault}") from fault
    return found if isinstance(found, dict) else {}


def refusal(code: int, body: bytes) -> IsthmusError:
    """The error that a Status tells of."""
    try:
        status = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        status = {}
    told = status if isinstance(status, dict) else {}
    message = str(told.get("message") or f"the API answers with status {code}")
    if told.get("reason") == "AlreadyExists":
        return errors.AlreadyExists(message)
    return _BY_CODE.get(code, UserFault if code < 500 else Unavailable)(message)


def _silent(fault: BaseException) -> Unavailable:
    return Unavailable(f"the API does not answer: {str(fault) or type(fault).__name__}")


class Follower:
    """Keeps up with all objects at a path: `upsert` and `gone` are called as they change.

    A list that had to be made anew tells what vanished meanwhile, too.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        clock: Clock,
        upsert: Callable[[Document], None],
        gone: Callable[[Document], None],
        relisted: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._api = api
        self._path = path
        self._clock = clock
        self._upsert = upsert
        self._gone = gone
        self._relisted = relisted
        self._held: dict[str, Document] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled; a server that is away is asked again, a second apart at most."""
        failures = 0
        since = ""
        while True:
            try:
                since = since or await self._list()
                failures = 0
                async for event in self._api.watch(self._path, since):
                    since = self._event(event) or since
            except errors.Compacted:
                since = ""
            except (errors.Unavailable, errors.DeadlineExceeded, UserFault):
                failures += 1
                since = ""
                await self._clock.sleep(min(1.0, Backoff().first * failures))

    async def _list(self) -> str:
        items, since = await self._api.list(self._path)
        found = {_uid(each): each for each in items}
        for uid, old in tuple(self._held.items()):
            if uid not in found:
                del self._held[uid]
                self._gone(old)
        for uid, each in found.items():
            self._held[uid] = each
            self._upsert(each)
        if self._relisted is not None:
            await self._relisted()
        self.synced.set()
        return since

    def _event(self, event: Document) -> str:
        document = event.get("object") or {}
        match event.get("type"):
            case "ADDED" | "MODIFIED":
                self._held[_uid(document)] = document
                self._upsert(document)
            case "DELETED":
                self._held.pop(_uid(document), None)
                self._gone(document)
            case _:
                pass
        return str((document.get("metadata") or {}).get("resourceVersion") or "")


def _uid(document: Document) -> str:
    return str((document.get("metadata") or {}).get("uid") or "")
