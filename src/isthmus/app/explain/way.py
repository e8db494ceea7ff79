"""The whole way: who sends, where to, by which routes, to whom, and who decides there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from isthmus.app.explain.client import Beside, Client, NoSuch, client, named
from isthmus.app.explain.destination import (
    Destination,
    destination,
    dialled,
    instance_of,
    is_refused,
)
from isthmus.app.explain.ends import (
    Reached,
    behind_gateway,
    chosen,
    end,
    endpoints,
    of_workload,
    reached,
    verdict_of,
)
from isthmus.app.explain.question import THROWS, Question
from isthmus.app.explain.said import (
    End,
    Explained,
    Line,
    Outcome,
    Verdict,
    identity_words,
    words,
)
from isthmus.engine import View, query
from isthmus.ir import decide
from isthmus.ir.names import Default, Origin, Ref, Source
from isthmus.ir.outbound import Grpc, Http2, Outbound, Tcp, TcpRoute, Tls
from isthmus.ir.proxy import OutboundName
from isthmus.ir.request import HttpRequest, RawBytes, Request, TlsHello
from isthmus.ir.target import Target, To, Via
from isthmus.ir.target import Tls as TlsMode
from isthmus.mesh.outbound import INSIDE, UNMANAGED, outbound, unmanaged
from isthmus.mesh.resolution import Dialled, is_known
from isthmus.mesh.routes import key_of
from isthmus.mesh.scope import out_of_scope, scope
from isthmus.mesh.settings import settings
from isthmus.mesh.targets import target, target_id
from isthmus.model.annotations.keys import UPSTREAMS

NO_PROXY = Default("no-proxy")
_SHOWN = 4
"""Identities that a line names."""


@query
def explained(db: View, asked: Question) -> Explained:
    """The way of one request; what makes no sense is told in `problem`."""
    try:
        return _Way(db, asked).explained()
    except NoSuch as fault:
        return Explained(problem=str(fault))


class _Way:
    """Collects the lines of one explanation."""

    def __init__(self, db: View, asked: Question) -> None:
        self._db = db
        self._asked = asked
        self._home = settings(db).cluster
        self._lines: list[Line] = []

    def explained(self) -> Explained:
        who = client(self._db, self._asked.sender)
        self._say("from", named(who, self._asked.sender), who.words)
        to = destination(self._db, who, self._asked.to, self._lines)
        self._say("dialled", dialled(self._db, to), f"{to.ip}:{to.port}")
        if who.beside is Beside.ABROAD:
            return self._from_abroad(who, to)
        if to.name is None and to.workload is not None:
            return self._straight(who, to, to.workload, self._request(to, None))
        refused = self._closed(who, to)
        return self._ended(refused) if refused is not None else self._routed(who, to)

    def _closed(self, who: Client, to: Destination) -> Verdict | None:
        """What an Envoy closes before it asks any route."""
        if to.name is not None and to.name.parent.kind == "Service":
            return self._out_of_scope(who, to.name)
        if not is_refused(self._db, who, to.ip):
            return None
        self._say("service", "none", "only Services have such addresses, and none has this one")
        return Verdict(Outcome.REFUSED, "the connection is closed", words(INSIDE, self._home))

    def _say(self, part: str, what: str, text: str) -> None:
        self._lines.append(Line(part, what, text))

    def _ended(self, verdict: Verdict, ends: Sequence[End] = ()) -> Explained:
        return Explained(self._home, tuple(self._lines), tuple(ends), verdict)

    # ------------------------------------------------------------------------ ways in

    def _from_abroad(self, who: Client, to: Destination) -> Explained:
        """Where it goes was decided in its own cluster; only the far end is ours."""
        request = self._request(to, None)
        if to.workload is not None:
            return self._straight(who, to, to.workload, request)
        if to.name is None or to.name.parent.kind != "Service":
            raise NoSuch(f"{to.host} is nobody of this cluster: clients of others do not pass here")
        name = target_id(key_of(to.name.parent), to.port)
        found = reached(self._db, who, name)
        if not found:
            return self._ended(Verdict(Outcome.REFUSED, "no endpoint is ready"))
        return self._ends(who, found, request)

    def _straight(self, who: Client, to: Destination, whom: Ref, request: Request) -> Explained:
        """To a pod by its own address: no Service's routes are asked."""
        envoy = who.beside is Beside.ENVOY
        of = instance_of(self._db, whom, to.ip, to.port) if envoy else None
        refused = self._out_of_scope(who, of) if of is not None else None
        if refused is not None:
            return self._ended(refused)
        socket = (to.ip, to.port)
        found = of_workload(self._db, who, whom, socket, instance=of is not None)
        if found is None:
            raise NoSuch(f"nothing is known of who has {to.ip}")
        what = words(Origin(of.parent, port=of.port), self._home) if of is not None else "none"
        self._say("service", what, "a workload's own address has no routes")
        return self._ends(who, (found,), request)

    def _out_of_scope(self, who: Client, name: OutboundName) -> Verdict | None:
        """Only Envoys are told all at once, and so have a scope (decision 17)."""
        if who.workload is None or who.beside is not Beside.ENVOY:
            return None
        wanted = scope(self._db, who.workload)
        left_out = out_of_scope(self._db, self._home, wanted)
        if OutboundName(name.parent, name.port, "") not in left_out:
            return None
        names = ",".join(f"{each.namespace}/{each.name}" for each in wanted)
        text = f"{UPSTREAMS}: {names} does not hold it, so it is never dialled"
        self._say("scope", named(who, self._asked.sender), text)
        return Verdict(Outcome.REFUSED, "the connection is closed: out of scope", UPSTREAMS)

    # --------------------------------------------------------------------------- routes

    def _routed(self, who: Client, to: Destination) -> Explained:
        ir = self._outbound(who, to)
        request = self._request(to, outbound(self._db, to.name) if to.name is not None else ir)
        lookup = partial(endpoints, self._db, who)
        decision = decide.outbound(ir, request, lookup, chance=self._asked.throw / THROWS)
        for number, step in enumerate(decision.steps):
            part = _part(step.source, first=not number)
            self._say(part, words(step.source, self._home), step.text)
        match decision.verdict:
            case decide.Forward() as forward:
                return self._forwarded(who, forward)
            case decide.ToOriginal(request=leaving) if to.workload is not None:
                found = of_workload(self._db, who, to.workload, (to.ip, to.port))
                return self._ends(who, (found,) if found is not None else (), leaving)
            case decide.ToOriginal(source=source):
                nobodys = source == INSIDE
                text = f"to {to.ip}:{to.port}{', which nobody here has' if nobodys else ''}"
                by = words(source, self._home)
                return self._ended(Verdict(Outcome.OUTSIDE, text, by))
            case verdict:
                return self._ended(verdict_of(verdict, self._home))

    def _outbound(self, who: Client, to: Destination) -> Outbound:
        if to.name is None:
            inside = not is_known(self._db, Dialled(who.where, to.ip, to.port))
            return unmanaged(INSIDE if inside else UNMANAGED, to.port)
        if who.beside is not Beside.NOTHING or to.name.parent.kind != "Service":
            return outbound(self._db, to.name)
        return self._without_proxy(to.name)

    def _without_proxy(self, name: OutboundName) -> Outbound:
        """The node forwards connections to a Service as Kubernetes says, and reads no routes."""
        plain = target(self._db, target_id(key_of(name.parent), name.port))
        plain = msgspec.structs.replace(plain, tls=TlsMode.NONE)
        source = Origin(name.parent, port=name.port)
        route = TcpRoute(NO_PROXY, backends=(To(plain, source),))
        return Outbound(name.parent, source, name.port, Tcp((route,)))

    def _request(self, to: Destination, ir: Outbound | None) -> Request:
        """What is sent: as it was asked, else as the port speaks."""
        asked, protocol = self._asked, ir.protocol if ir is not None else None
        session = asked.session or _session(protocol, asked)
        match session:
            case "tls":
                return TlsHello(to.host)
            case "tcp":
                return RawBytes()
        calls = session == "grpc"
        kind = (("content-type", "application/grpc"),) if calls else ()
        hosts = [value for name, value in asked.headers if name.lower() == "host"]
        headers = [each for each in asked.headers if each[0].lower() != "host"]
        return HttpRequest(
            asked.method.upper() or ("POST" if calls else "GET"),
            hosts[0] if hosts else to.authority,
            asked.path or "/",
            (*kind, *headers),
            version=2 if calls or isinstance(protocol, Http2) else 1,
        )

    # ------------------------------------------------------------------------ endpoints

    def _forwarded(self, who: Client, forward: decide.Forward) -> Explained:
        found = reached(self._db, who, forward.target.id)
        self._target(who, forward.target, found)
        if forward.target.via is Via.REMOTE_GATEWAY and found:
            gateway = found[0].endpoint
            behind = behind_gateway(self._db, forward.target.id, gateway)
            asked_for = forward.target.server_name
            where = f"{gateway.address}:{gateway.port}"
            self._say("gateway", where, f"of {forward.target.id.cluster}, asked for {asked_for}")
            return self._ends(who, behind, forward.request)
        return self._ends(who, found, forward.request)

    def _target(self, who: Client, said: Target, found: Iterable[Reached]) -> None:
        where = Counter(each.cluster for each in found)
        if said.via is Via.REMOTE_GATEWAY:
            where = Counter({f"front of {said.id.cluster}": where.total()})
        counts = ", ".join(f"{count} in {name}" for name, count in sorted(where.items()) if count)
        what = f"{said.id.service}.{said.id.namespace}:{said.id.port}"
        self._say("endpoints", what, f"{counts} ready" if counts else "nobody is ready")
        if who.beside is Beside.ENVOY:
            self._say("cluster", said.id.key(said.trust_domain), "the target's name in Envoy")
        elif who.beside is Beside.LINKERD:
            self._say("cluster", said.authority, "what linkerd2-proxy balances over")
        if said.tls is TlsMode.MESH and who.beside in (Beside.ENVOY, Beside.LINKERD):
            names = sorted(identity_words(each) for each in said.peers)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            self._say("identity", ", ".join(names[:_SHOWN]) + more, "may answer")

    def _ends(self, who: Client, found: Iterable[Reached], request: Request) -> Explained:
        picked = list(chosen(found, self._asked.at))
        if not picked:
            at = f" that {self._asked.at!r} names" if self._asked.at else ""
            raise NoSuch(f"there is no endpoint{at}")
        ends = [end(self._db, who, each, request, self._asked, self._home) for each in picked]
        return self._ended(_together(ends), ends)


def _session(protocol: object, asked: Question) -> str:
    if isinstance(protocol, Grpc):
        return "grpc"
    written = bool(asked.method or asked.path)
    if isinstance(protocol, Tls) and not written:
        return "tls"
    return "tcp" if isinstance(protocol, Tcp) and not written else "http"


def _part(source: Source, *, first: bool) -> str:
    if first:
        egress = isinstance(source, Origin) and source.ref.kind == "EgressNetwork"
        return "egress" if egress or isinstance(source, Default) else "service"
    if isinstance(source, Default):
        return "route"
    if source.ref.kind.endswith("Route"):
        return "rule" if source.path else "route"
    return "backend"


def _together(ends: Sequence[End]) -> Verdict:
    first = ends[0].verdict
    if all(each.verdict == first for each in ends):
        return first
    said = "; ".join(f"in {each.cluster}: {each.verdict.outcome}" for each in ends)
    return Verdict(Outcome.DEPENDS, said)
