"""All open streams of one server: who may come, how many, and what was told to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from isthmus.aio import Clock, Latest, Log, deadline
from isthmus.calls import Context, Refusal, Refused, guarded
from isthmus.errors import PeerFault
from isthmus.serve.xds import status, wire
from isthmus.serve.xds.contract import Admit, Nacked, Node, Peer, Proxy, TypeUrl
from isthmus.serve.xds.hub import Hub
from isthmus.serve.xds.link import Decode, Link, read
from isthmus.serve.xds.machine import Convicted, Delta, Rejected, Response, Sotw, Stream

FIRST: Final = 20.0
"""Seconds that a peer has for its first request."""
SAN: Final = "x509_subject_alternative_name"


Handler = Callable[[Any, Context], Awaitable[None]]


class Limits(NamedTuple):
    """How many streams may be open at once, over all kinds of proxies."""

    streams: int = 20_000
    per_peer: int = 4_096
    """Of one set of identities; without mutual TLS, of one address."""
    per_proxy: int = 8
    """Of one name: a proxy comes back before its old stream is known to be dead."""


LIMITS: Final = Limits()


class Streams:
    """Serves each call; counts; tells what is going on. `board` values come through the hub."""

    def __init__(self, hub: Hub, admit: Admit, *, limits: Limits, clock: Clock, log: Log) -> None:
        self.hub = hub
        self.admit = admit
        self._limits = limits
        self._clock = clock
        self._log = log
        self._live: dict[Link, tuple[object, str]] = {}
        self._peers: Counter[object] = Counter()
        self._proxies: Counter[str] = Counter()
        self._convicted = Convicted()
        self.closing = False
        self._rejected: dict[Link, tuple[Nacked, ...]] = {}
        self.nacked: Latest[tuple[Nacked, ...]] = Latest(())
        """What proxies reject at present, for conditions on the guilty objects."""
        self.arrived = 0
        """Calls so far, those that were refused included."""
        self.opened: Counter[str] = Counter()
        """Streams by protocol, those that ended included."""
        self.messages: Counter[str] = Counter()
        """Responses written, by type."""
        self.rejections: Counter[str] = Counter()
        """Resources that were rejected alone, by type."""
        self.refused: Counter[str] = Counter()
        """Streams that were not opened, by status."""

    def handlers(self) -> dict[str, Handler]:
        """What answers the calls of the service, by method."""
        return {
            wire.DELTA: self._handler(Delta, wire.delta_request),
            wire.SOTW: self._handler(Sotw, wire.sotw_request),
        }

    def close(self) -> list[Link]:
        """Refuse new streams; return those that are open, for their ends."""
        self.closing = True
        return list(self._live)

    def __len__(self) -> int:
        return len(self._live)

    def report(self) -> status.Proxies:
        """Every stream, by the names of proxies."""
        links = sorted(self._live, key=lambda link: (link.proxy.name, link.since))
        return status.Proxies(tuple(status.report(link, self._clock) for link in links))

    def behind(self, type_url: TypeUrl, name: str) -> tuple[str, ...]:
        """The proxies that use a resource and have not accepted its newest version yet."""
        return tuple(sorted({one.proxy.name for one in self._live if not one.has(type_url, name)}))

    # ---------------------------------------------------------------- one stream

    def _handler(self, machine: type[Stream[Any]], decode: Decode) -> Handler:
        async def handle(_requests: Any, context: Context) -> None:  # noqa: ANN401  # see `read`
            await self._serve(context, machine, decode)

        return guarded(handle, self._log)

    async def _serve(self, context: Context, machine: type[Stream[Any]], decode: Decode) -> None:
        self.arrived += 1
        peer = peer_of(context)
        async with deadline(self._clock, FIRST, "the first request of a stream"):
            data = await read(context)
        if data is None:
            return
        request, node = decode(data)
        if node is None:
            raise PeerFault("the first request of a stream names no node")
        proxy = self._let_in(peer, node)
        # Not with the first response: that write may be given up, and then no status could follow.
        await context.send_initial_metadata(())
        key = peer.identities or peer.address.rpartition(":")[0]
        link = Link(self.hub, proxy, peer, node, machine, self._convicted, clock=self._clock)
        self._live[link] = (key, proxy.name)
        self._peers[key] += 1
        self._proxies[proxy.name] += 1
        self.opened[machine.__name__] += 1
        try:
            await link.serve(context, request, decode, self)
        finally:
            self._leave(link)

    def _leave(self, link: Link) -> None:
        key, name = self._live.pop(link)
        _one_less(self._peers, key)
        _one_less(self._proxies, name)
        if self._rejected.pop(link, None):
            self._publish()

    def _let_in(self, peer: Peer, node: Node) -> Proxy:
        found = self._judge(peer, node)
        if isinstance(found, Refusal):
            self.refused[found.status] += 1
            self._log.info("proxy refused", node=node.id, peer=peer.address, why=found.text)
            raise Refused(*found)
        return found

    def _judge(self, peer: Peer, node: Node) -> Proxy | Refusal:
        if self.closing:
            return Refusal("UNAVAILABLE", "the server is stopping")
        if len(self._live) >= self._limits.streams:
            return Refusal("RESOURCE_EXHAUSTED", f"{len(self._live)} streams are open already")
        key = peer.identities or peer.address.rpartition(":")[0]
        if self._peers[key] >= self._limits.per_peer:
            return Refusal("RESOURCE_EXHAUSTED", f"{self._peers[key]} streams of this peer")
        found = self.admit(peer, node)
        if isinstance(found, Proxy) and self._proxies[found.name] >= self._limits.per_proxy:
            return Refusal(
                "RESOURCE_EXHAUSTED", f"{self._proxies[found.name]} streams of {found.name}"
            )
        return found

    # ---------------------------------------------------------------- what streams tell: Ear

    def wrote(self, link: Link, response: Response) -> None:
        """Count it."""
        self.messages[response.type_url] += 1

    def rejected(self, link: Link, type_url: TypeUrl, one: Rejected) -> None:
        """Say it once, with the proxy's words."""
        self.rejections[type_url] += 1
        self._log.warning(
            "resource rejected",
            proxy=link.proxy.name,
            type=type_url.rpartition(".")[2],
            resource=one.name,
            origin=str(one.origin),
            message=one.message,
        )

    def changed(self, link: Link) -> None:
        """Publish what is rejected, if it is other than before."""
        rejections = link.machine.rejections()
        if not rejections and link not in self._rejected:
            return
        before = tuple((one.name, one.version) for one in self._rejected.get(link, ()))
        if before != tuple((one.name, one.version) for _, one in rejections):
            self._rejected[link] = status.nacked(link, self._clock)
            if not self._rejected[link]:
                del self._rejected[link]
            self._publish()

    def _publish(self) -> None:
        self.nacked.set(
            tuple(
                sorted(
                    (one for several in self._rejected.values() for one in several),
                    key=lambda one: one[:4],
                )
            )
        )


K = TypeVar("K")


def _one_less(counts: Counter[K], key: K) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def peer_of(context: Context) -> Peer:
    """Who is there. gRPC has verified the certificate, if it demands one."""
    sans = context.auth_context().get(SAN, ())
    return Peer(context.peer(), tuple(san.decode(errors="replace") for san in sans))
