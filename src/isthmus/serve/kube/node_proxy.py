"""What the API server passes on: a pod's log and commands to its node, requests to the pod itself.

`pods/log` and `pods/exec` go to the kubelet endpoint of the pod's node, over TLS where both sides
show certificates of this cluster's CA; `pods/NAME[:PORT]/proxy` goes to the pod's address. Who may
is asked before (as Kubernetes does: `get` of pods/log, `create` of pods/exec, of pods/proxy the
verb of the method); whoever the caller is, only the server's own name is passed on.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from isthmus.errors import BadRequest, NotFound, Unavailable
from isthmus.model.document import items, number, text
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.answer import Asked, Response, Stream, Takeover, Write
from isthmus.serve.kube.query import Query
from isthmus.serve.kube.routes import PROXY
from isthmus.serve.kube.status import subject
from isthmus.store.contract import Store

CONNECT: Final = 10.0
"""Seconds in which a node or a pod must accept a connection."""
HEARTBEAT: Final = 30.0
"""Seconds between pings of an exec: silence alone does not end it, a dead peer does."""
FRAME: Final = 4 * 2**20
"""Bytes of one WebSocket message."""
CHUNK: Final = 64 * 1024

KUBELET: Final = 10250
"""Where kubelets listen unless their Node says otherwise."""
ADDRESSES: Final = ("InternalIP", "ExternalIP")
"""Kinds of a Node's addresses, the preferred one first. Names are not looked up: whoever answers
for a name could have it lead anywhere."""

EXEC_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_LOG_FLAGS: Final = ("follow", "previous", "timestamps")
_LOG_VALUES: Final = ("tailLines", "sinceSeconds", "sinceTime", "limitBytes")

# Of one hop alone (RFC 9110 section 7.6.1), or between the caller and us.
_NOT_PASSED_ON: Final = frozenset(
    {
        "authorization", "connection", "content-length", "expect", "host", "keep-alive",
        "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip

Context = Callable[[], ssl.SSLContext]
"""TLS with the server's client certificate, as it is now."""


class Running(NamedTuple):
    """A pod's container, and the kubelet endpoint of the node that it runs on."""

    base: str
    namespace: str
    pod: str
    container: str

    def url(self, what: str, query: list[tuple[str, str]]) -> str:
        """Of one of the kubelet's operations."""
        path = "/".join(quote(each, safe="") for each in (self.namespace, self.pod, self.container))
        return f"{self.base}/{what}/{path}?{urlencode(query)}"


class NodeProxy:
    """Answers the subresources of pods that live on nodes."""

    def __init__(self, store: Store, context: Context) -> None:
        self._store = store
        self._context = context

    async def answer(self, asked: Asked) -> Response:
        """The response to an authorized request. BadRequest, NotFound, Unavailable."""
        match asked.target.subresource:
            case "log":
                return await self._log(asked)
            case "exec":
                return await self._exec(asked)
            case _:
                return await self._proxy(asked)

    # --------------------------------------------------------------------------------- where it is

    async def _pod(self, namespace: str, name: str) -> Document:
        return await self._document("pods", namespace, name)

    async def _document(self, plural: str, namespace: str, name: str) -> Document:
        kind = _kind(plural)
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            raise NotFound("not found", about=subject(kind, name))
        document: Document = msgspec.json.decode(record.value)
        return document

    async def _running(self, asked: Asked) -> Running:
        target = asked.target
        pod = await self._pod(target.namespace, target.name)
        container = _container(pod, _first(asked.query, "container"))
        node = text(pod, "spec.nodeName")
        if not node:
            raise BadRequest(f"pod {target.name} does not have a host assigned")
        at = kubelet_of(await self._document("nodes", "", node))
        return Running(f"https://{at}", target.namespace, target.name, container)

    # ------------------------------------------------------------------------------------- log

    async def _log(self, asked: Asked) -> Stream:
        query = [(name, "true") for name in _LOG_FLAGS if _flag(asked.query, name)]
        for name in _LOG_VALUES:
            value = _first(asked.query, name)
            if value:
                query.append((name, value))
        url = (await self._running(asked)).url("containerLogs", query)
        session = self._session(self._context())
        try:
            reply = await _asked_of(session, url)
        except BaseException:
            await session.close()
            raise

        async def run(write: Write) -> None:
            async with session, reply:
                try:
                    async for chunk in reply.content.iter_any():
                        await write(chunk)
                except aiohttp.ClientError as fault:
                    raise _unreachable(fault) from fault

        return Stream(run, content_type="text/plain")

    # ------------------------------------------------------------------------------------- exec

    async def _exec(self, asked: Asked) -> Takeover:
        if asked.headers.get("upgrade", "").lower() != "websocket":
            raise BadRequest("an exec needs a WebSocket (v5.channel.k8s.io)")
        commands = asked.query.get("command", ())
        if not commands:
            raise BadRequest("you must specify at least 1 command for the container")
        query = [("command", each) for each in commands]
        for theirs, ours in (("stdin", "input"), ("stdout", "output"), ("stderr", "error")):
            if _flag(asked.query, theirs):
                query.append((ours, "1"))
        if _flag(asked.query, "tty"):
            query.append(("tty", "1"))
        url = (await self._running(asked)).url("exec", query)
        offered = asked.headers.get("sec-websocket-protocol", "")
        wanted = [each for each in EXEC_PROTOCOLS if each in re.split(r"\s*,\s*", offered)]
        if not wanted:
            raise BadRequest(f"this server speaks {', '.join(EXEC_PROTOCOLS)}")

        async def run(request: web.BaseRequest) -> web.StreamResponse:
            async with self._upstream(url, wanted) as node:
                client = web.WebSocketResponse(
                    protocols=[node.protocol or wanted[0]], max_msg_size=FRAME, heartbeat=HEARTBEAT
                )
                await client.prepare(request)
                await _both_ways(client, node)
                return client

        return Takeover(run)

    @asynccontextmanager
    async def _upstream(
        self, url: str, protocols: list[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self._session(self._context()) as session:
            try:
                node = await session.ws_connect(
                    url, protocols=protocols, max_msg_size=FRAME, heartbeat=HEARTBEAT
                )
            except (aiohttp.ClientError, OSError, TimeoutError) as fault:
                raise _unreachable(fault) from fault
            async with node:
                yield node

    # ------------------------------------------------------------------------------------- proxy

    async def _proxy(self, asked: Asked) -> Takeover:
        scheme, name, port = pod_target(asked.target.name)
        pod = await self._pod(asked.target.namespace, name)
        address = proxyable(text(pod, "status.podIP"), name)
        base = f"{scheme}://{_host(address)}:{_port(pod, port)}"
        context = _unverified() if scheme == "https" else None

        async def run(request: web.BaseRequest) -> web.StreamResponse:
            if request.headers.get("Upgrade"):
                raise BadRequest("protocols other than HTTP are not passed on to pods")
            async with self._session(context, decompress=False) as session:
                return await _pass_on(request, session, base)

        return Takeover(run)

    def _session(
        self, context: ssl.SSLContext | None, *, decompress: bool = True
    ) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=context or False, force_close=True)
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_connect=CONNECT)
        return aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=decompress, trust_env=False
        )


# ----------------------------------------------------------------------------------- from documents


def _kind(plural: str) -> Kind:
    kind = BUILT_IN.by_resource("", plural)
    if kind is None:
        raise LookupError(f"the kind of {plural} is not registered")
    return kind


def kubelet_of(node: Document) -> str:
    """Where a Node's kubelet listens, as `host:port`; Unavailable when it does not say.

    BadRequest for an address that no node has, and for any port of this machine (where a lab's
    nodes may live) but the kubelet's own. Whatever listens there must besides show a certificate of
    this cluster's CA for the address, and is asked for logs and execs alone.
    """
    name = text(node, "metadata.name")
    found = {text(each, "type"): text(each, "address") for each in items(node, "status.addresses")}
    host = next((found[kind] for kind in ADDRESSES if found.get(kind)), "")
    if not host:
        raise Unavailable(f"node {name} has no address")
    port = number(node, "status.daemonEndpoints.kubeletEndpoint.Port", KUBELET) or KUBELET
    ip = _address(host, f"node {name}")
    if not 0 < port < 65536 or (ip.is_loopback and port != KUBELET):
        raise BadRequest(f"port {port} of node {name} at {ip} is not one to connect to")
    return f"{_host(str(ip))}:{port}"


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _container(pod: Document, wanted: str) -> str:
    """The container asked for; the only one if none is. BadRequest in Kubernetes' words."""
    name = text(pod, "metadata.name")
    main = [text(each, "name") for each in items(pod, "spec.containers")]
    before = [text(each, "name") for each in items(pod, "spec.initContainers")]
    if wanted:
        if wanted not in (*main, *before):
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(main) == 1:
        return main[0]
    choices = f"choose one of: [{' '.join(main)}]"
    if before:
        choices += f" or one of the init containers: [{' '.join(before)}]"
    raise BadRequest(f"a container name must be specified for pod {name}, {choices}")


def pod_target(name: str) -> tuple[str, str, str]:
    """Scheme, name and port of `[https:]NAME[:PORT]`; the port may be "". BadRequest."""
    parts = name.split(":")
    scheme = "http"
    if len(parts) > 1 and parts[0] in ("http", "https"):
        scheme, *parts = parts
    if not parts[0] or len(parts) > 2:
        raise BadRequest(f"invalid pod request {name!r}: it is [SCHEME:]NAME[:PORT]")
    return scheme, parts[0], parts[1] if len(parts) == 2 else ""


def proxyable(address: str, name: str) -> str:
    """An address that a pod may have. What anybody can write into a status leads nowhere else."""
    if not address:
        raise Unavailable(f"pod {name} has no address yet")
    ip = _address(address, f"pod {name}")
    if ip.is_loopback:
        raise BadRequest(f"the address {ip} of pod {name} is not one to connect to")
    return str(ip)


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NO_HOST: Final = tuple(
    ipaddress.ip_network(each)
    for each in (
        "0.0.0.0/8",  # this network
        "240.0.0.0/4",  # reserved, and broadcast
        "::/96",  # IPv4-compatible, without ::1
        "64:ff9b::/96",  # NAT64: an IPv4 address is meant
        "64:ff9b:1::/48",  # NAT64 of this site
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local, of old
    )
)
"""Where nothing of a cluster lives; several lead to any IPv4 address (IANA: special-purpose)."""


def _address(said: str, whose: str) -> _Address:
    """The address that is meant; BadRequest unless it can be that of a single host."""
    try:
        ip = _meant(ipaddress.ip_address(said))
    except ValueError:
        raise BadRequest(f"the address of {whose} is none") from None
    scoped = getattr(ip, "scope_id", None) is not None
    strange = ip.is_link_local or ip.is_unspecified or ip.is_multicast or scoped
    if strange or (not ip.is_loopback and any(ip in each for each in _NO_HOST)):
        raise BadRequest(f"the address {ip} of {whose} is not one to connect to")
    return ip


def _meant(ip: _Address) -> _Address:
    """The IPv4 address that an IPv6 address stands for, if it does (RFC 4291, section 2.5.5.2)."""
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return ip if mapped is None else mapped


def _port(pod: Document, port: str) -> int:
    if port.isascii() and port.isdigit() and 0 < int(port) < 65536:
        return int(port)
    for container in items(pod, "spec.containers"):
        for each in items(container, "ports"):
            if not port or each.get("name") == port:
                return number(each, "containerPort")
    raise BadRequest(f"the pod has no port {port!r}" if port else "the pod declares no port")


def _first(query: Query, name: str) -> str:
    return query.get(name, ("",))[0]


def _flag(query: Query, name: str) -> bool:
    return _first(query, name).lower() in {"true", "1", "t"}


# ------------------------------------------------------------------------------------- carrying


async def _asked_of(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientResponse:
    try:
        reply = await session.get(url)
        await _require_ok(reply)
    except (aiohttp.ClientError, OSError, TimeoutError) as fault:
        raise _unreachable(fault) from fault
    return reply


async def _require_ok(reply: aiohttp.ClientResponse) -> None:
    if reply.status == 200:
        return
    told = (await reply.content.read(CHUNK)).decode(errors="replace").strip()
    match reply.status:
        case 404:
            raise NotFound(told or "the container was not found on its node")
        case 400:
            raise BadRequest(told or "the node refused the request")
        case _:
            raise Unavailable(f"the node answers with status {reply.status}: {told}")


def _unreachable(fault: Exception) -> Unavailable:
    return Unavailable(f"cannot reach the node: {str(fault) or type(fault).__name__}")


Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


async def _both_ways(client: web.WebSocketResponse, node: aiohttp.ClientWebSocketResponse) -> None:
    """Carry messages until either side closes; then close the other."""
    async with asyncio.TaskGroup() as group:
        ways = [
            group.create_task(_one_way(client, node)),
            group.create_task(_one_way(node, client)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        await client.close()
        await node.close()
        for way in ways:
            way.cancel()


async def _one_way(source: Socket, target: Socket) -> None:
    try:
        async for message in source:
            if message.type is aiohttp.WSMsgType.BINARY:
                await target.send_bytes(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT:
                await target.send_str(message.data)
    except (ConnectionError, aiohttp.ClientError, RuntimeError):  # one side has left
        return


async def _pass_on(
    request: web.BaseRequest, session: aiohttp.ClientSession, base: str
) -> web.StreamResponse:
    """One request to a pod, and its answer back; bodies of any size, never held whole."""
    path = rest_of(request.raw_path)
    has_body = request.body_exists
    try:
        reply = await session.request(
            request.method,
            URL(f"{base}{path}", encoded=True),
            headers=_passed_on(request.headers),
            data=request.content.iter_chunked(CHUNK) if has_body else None,
            allow_redirects=False,
        )
    except (aiohttp.ClientError, OSError, TimeoutError) as fault:
        told = str(fault) or type(fault).__name__
        raise Unavailable(f"error trying to reach the pod: {told}") from fault
    async with reply:
        response = web.StreamResponse(status=reply.status, headers=_passed_on(reply.headers))
        if reply.content_length is not None:
            response.content_length = reply.content_length
        await response.prepare(request)
        async for chunk in reply.content.iter_chunked(CHUNK):
            await response.write(chunk)
        await response.write_eof()
        return response


def rest_of(raw: str) -> str:
    """What stands behind `/proxy`, as it was sent, with its query: the pod's own path."""
    path, mark, query = raw.partition("?")
    found = PROXY.fullmatch(path)
    rest = found["rest"] if found is not None else ""
    return f"{rest or '/'}{mark}{query}"


def _passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    dropped = set(_NOT_PASSED_ON)
    dropped |= {each.strip().lower() for each in headers.get("Connection", "").split(",")}
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if name.lower() not in dropped and not name.lower().startswith("impersonate-")
    )


def _unverified() -> ssl.SSLContext:
    """A pod's own TLS: nobody here can know its certificate (Kubernetes does the same)."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
