"""A client of one Kubernetes API: requests with an end and a size, and lines of a watch."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

from isthmus.aio import Clock, deadline
from isthmus.errors import (
    Compacted,
    Conflict,
    Forbidden,
    IsthmusError,
    MethodNotAllowed,
    NotFound,
    PeerFault,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from isthmus.store.kubernetes.access import Access

CONNECT: Final = 5.0
"""Seconds in which the server must accept a connection, TLS included."""
CONNECTIONS: Final = 24
"""Connections to one server: a watch for each resource, and lists beside them."""
TOLD: Final = 16 * 1024
"""Bytes that are read of an answer that refuses."""
SHOWN: Final = 200
"""Characters of what the server says that we repeat."""

_STATUS: Final[Mapping[int, type[IsthmusError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Compacted,
    413: TooLarge,
    429: TooManyRequests,
}
Query = Mapping[str, str]
T = TypeVar("T")
_NOTHING: Final[Query] = {}


class Distrusted(Unauthenticated):
    """The server's certificate is not one that these credentials trust; nothing was told it."""


class _Told(msgspec.Struct):
    """A Status, as far as it is read."""

    message: str = ""


class Client:
    """`async with Client(access, clock) as client`: connections are kept for the next request.

    Raises, from every method: Unavailable, DeadlineExceeded (it does not answer in time);
    Unauthenticated, Forbidden, NotFound, Compacted and others as the server's status has them;
    Distrusted; PeerFault and TooLarge for answers that break the rules.
    """

    def __init__(self, access: Access, clock: Clock) -> None:
        """BadRequest if the access cannot be used."""
        self._access = access
        self._clock = clock
        self._base = access.server.rstrip("/")
        self._tls = access.context()
        self._session: aiohttp.ClientSession | None = None
        self.skew = 0.0
        """Seconds that the server's clock was ahead of ours when it answered last."""

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=CONNECTIONS, use_dns_cache=False)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=CONNECT),
            auto_decompress=False,
            trust_env=False,
            headers=self._headers(),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        return headers

    async def ask(
        self,
        path: str,
        *,
        query: Query = _NOTHING,
        body: bytes | None = None,
        seconds: float = 10.0,
        most: int = 2**20,
    ) -> bytes:
        """The whole body of a GET, or of a POST of `body` (JSON), of at most `most` bytes."""
        async with deadline(self._clock, seconds, f"{path} at {self._access.server}"):
            answer = await self._open(path, query, body)
            try:
                return await _told(_whole(answer, most), self._access)
            finally:
                _let_go(answer)

    async def lines(
        self, path: str, query: Query, *, idle: float, most: int
    ) -> AsyncGenerator[bytes]:
        """The lines of a watch until the server ends it; `aclose` it when you leave it before.

        DeadlineExceeded when a line takes longer than `idle` seconds, TooLarge above `most` bytes.
        """
        what = f"watching {path} at {self._access.server}"
        async with deadline(self._clock, idle, what):
            answer = await self._open(path, query, None)
        try:
            lines = _Lines(answer, most)
            while True:
                async with deadline(self._clock, idle, what):
                    line = await _told(lines.next(), self._access)
                if line is None:
                    return
                if line:
                    yield line
        finally:
            _let_go(answer)

    async def _open(self, path: str, query: Query, body: bytes | None) -> aiohttp.ClientResponse:
        """The head of a good answer; whoever gets it lets it go."""
        answer = await _told(self._request(path, query, body), self._access)
        try:
            self._note(answer)
            await _told(_require_good(answer, self._access), self._access)
        except BaseException:
            _let_go(answer)
            raise
        return answer

    async def _request(self, path: str, query: Query, body: bytes | None) -> aiohttp.ClientResponse:
        if self._session is None:
            msg = "a client is used within its `async with` block"
            raise RuntimeError(msg)
        more: dict[str, Any] = {}
        if body is not None:
            more = {"data": body, "headers": {"Content-Type": "application/json"}}
        return await self._session.request(
            "GET" if body is None else "POST",
            URL(self._base + path, encoded=True).with_query(dict(query)),
            allow_redirects=False,
            server_hostname=self._access.server_name or None,
            **more,
        )

    def _note(self, answer: aiohttp.ClientResponse) -> None:
        try:
            said = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        self.skew = said - self._clock.time()


class _Lines:
    """Cuts a body into lines; what is left at its end is one, too."""

    def __init__(self, answer: aiohttp.ClientResponse, most: int) -> None:
        self._content = answer.content
        self._most = most
        self._ready: list[bytes] = []
        self._pieces: list[bytes] = []
        self._size = 0

    async def next(self) -> bytes | None:
        """The next line without its end, None at the end of the body; TooLarge."""
        while not self._ready:
            chunk = await self._content.readany()
            if not chunk:
                return self._last()
            self._cut(chunk)
        return self._ready.pop()

    def _cut(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._pieces, whole[0]])
            self._ready = whole[::-1]
            self._pieces, self._size = [], 0
        self._pieces.append(rest)
        self._size += len(rest)
        if max(self._size, *map(len, whole), 0) > self._most:
            raise TooLarge(f"a line of a watch has more than {self._most} bytes")

    def _last(self) -> bytes | None:
        rest, self._pieces, self._size = b"".join(self._pieces), [], 0
        return rest or None


async def _whole(answer: aiohttp.ClientResponse, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while chunk := await answer.content.readany():
        size += len(chunk)
        if size > most:
            raise TooLarge(f"an answer of more than {most} bytes")
        pieces.append(chunk)
    return b"".join(pieces)


async def _require_good(answer: aiohttp.ClientResponse, access: Access) -> None:
    status = answer.status
    if 300 <= status < 400:
        raise PeerFault(f"{access.server} sends us elsewhere (status {status}); we do not go")
    coding = answer.headers.get("Content-Encoding", "identity")
    if status in (200, 201) and coding == "identity":
        return
    if coding != "identity":
        raise PeerFault(f"{access.server} answers in a coding that was not asked for")
    told = _message(await answer.content.read(TOLD))
    kind = _STATUS.get(status, Unavailable)
    raise kind(f"{access.server} answers {status}: {told}" if told else f"answers {status}")


def _message(body: bytes) -> str:
    try:
        told = msgspec.json.decode(body, type=_Told).message
    except (msgspec.MsgspecError, ValueError, RecursionError):
        told = body.decode(errors="replace")
    return shown(told)


def shown(text: str) -> str:
    """What another server said, fit for one line of ours."""
    plain = "".join(mark if mark.isprintable() else " " for mark in text[: 2 * SHOWN])
    return " ".join(plain.split())[:SHOWN]


def _let_go(answer: aiohttp.ClientResponse) -> None:
    """Keep the connection if the answer was read to its end; else it is of no more use."""
    if answer.content.at_eof():
        answer.release()
    else:
        answer.close()


async def _told(awaited: Awaitable[T], access: Access) -> T:
    """The value, its failure in our words."""
    try:
        return await awaited
    except (aiohttp.ClientError, OSError, TimeoutError) as fault:
        raise _broken(fault, access) from fault
    except ValueError as fault:  # header lines without end, among others
        raise PeerFault(f"{access.server} breaks HTTP: {shown(str(fault))}") from fault


def _broken(fault: Exception, access: Access) -> IsthmusError:
    why = shown(str(fault)) or type(fault).__name__
    if isinstance(fault, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Distrusted(f"the certificate of {access.server} is not trusted: {why}")
    if isinstance(fault, aiohttp.InvalidURL | aiohttp.ClientResponseError):
        return PeerFault(f"{access.server}: {why}")
    return Unavailable(f"cannot reach {access.server}: {why}")
