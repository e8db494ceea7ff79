"""The far end: an endpoint of a target, and what its proxy does with who comes and what it brings.

What of a remote cluster decides is not known here: its policies are in its own tables alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

import msgspec

from isthmus.app.explain.client import Beside, Client
from isthmus.app.explain.question import THROWS, Question
from isthmus.app.explain.said import (
    End,
    Line,
    Outcome,
    Verdict,
    admitted,
    elsewhere,
    identity_words,
    ref_words,
    words,
)
from isthmus.dialects.envoy.endpoints import mode, parts_of, unreachable
from isthmus.engine import View
from isthmus.ir import decide
from isthmus.ir.endpoint import Endpoint, EndpointSet, SetState
from isthmus.ir.inbound import Inbound
from isthmus.ir.names import Origin, Ref, Source, TargetId
from isthmus.ir.proxy import InboundName
from isthmus.ir.request import HttpRequest, Peer, Request
from isthmus.mesh.clusters import is_local
from isthmus.mesh.endpoints import endpoint, groups
from isthmus.mesh.external import workload_endpoint
from isthmus.mesh.inbound import inbound
from isthmus.mesh.pods import pod_endpoint
from isthmus.mesh.sets import all_sets
from isthmus.mesh.targets import service_of, through_gateway
from isthmus.mesh.workloads import is_pod, node_of, workload_key

FORBIDDEN = 403
PERMISSION_DENIED = 7


class Reached(msgspec.Struct, frozen=True):
    """An endpoint as one client reaches it: `cluster` is whose it is, `tls` whether by mesh TLS.

    `gateway` is the address of a gateway on the way, whose address the far end then sees.
    """

    endpoint: Endpoint
    cluster: str
    tls: bool
    gateway: str = ""


# -------------------------------------------------------------------------------- endpoints


def endpoints(db: View, who: Client, name: TargetId) -> EndpointSet:
    """Who is behind a target, as the client's proxy sees it."""
    found = tuple(each.endpoint for each in reached(db, who, name))
    return EndpointSet(found, state=SetState.SOME if found else SetState.EMPTY)


def reached(db: View, who: Client, name: TargetId) -> tuple[Reached, ...]:
    """The ready endpoints of a target that the client's proxy can be told, in its order."""
    node = node_of(db, who.workload) if who.workload is not None else ""
    found: dict[tuple[str, int], Reached] = {}
    for part in parts_of(db, name, node):
        for group in groups(db, part):
            for member in group.members:
                one = endpoint(db, member)
                if one is not None and (through_gateway(name) or not _barred(who, one)):
                    home = member.target.cluster or part.service.cluster
                    seen = Reached(one, home, _by_tls(who, one))
                    found.setdefault((member.ip, member.port), seen)
    return tuple(each for _, each in sorted(found.items()))


def _barred(who: Client, one: Endpoint) -> bool:
    return who.beside is not Beside.LINKERD and unreachable(one)


def _by_tls(who: Client, one: Endpoint) -> bool:
    match who.beside:
        case Beside.ENVOY:
            return mode(one) != ""
        case Beside.LINKERD | Beside.ABROAD:
            return one.identity is not None
        case Beside.NOTHING:
            return False


def behind_gateway(db: View, name: TargetId, gateway: Endpoint) -> tuple[Reached, ...]:
    """Who is behind a gateway: it passes mesh TLS on, and is who the far end sees coming."""
    service, port = service_of(name), name.port or 0
    found = []
    for part in all_sets(db, service, port, name.subset):
        for group in groups(db, part):
            for member in group.members:
                one = endpoint(db, member)
                if one is not None and one.identity is not None:
                    found.append(Reached(one, name.cluster, True, gateway.address))
    return tuple(found)


def of_workload(
    db: View, who: Client, workload: Ref, to: tuple[str, int], *, instance: bool = False
) -> Reached | None:
    """A pod or workload that is dialled by its own address.

    Envoys let that pass as it comes, unless it is an `instance` of a headless Service.
    """
    find = pod_endpoint if is_pod(workload) else workload_endpoint
    one = find(db, workload_key(workload), *to)
    if one is None:
        return None
    plain = who.beside is Beside.ENVOY and not instance
    return Reached(one, workload.cluster, not plain and _by_tls(who, one))


# ------------------------------------------------------------------------------------- ends


def chosen(found: Iterable[Reached], at: str) -> Iterator[Reached]:
    """The first of each cluster; or those alone that `at` names."""
    seen: set[str] = set()
    for one in found:
        origin = one.endpoint.origin
        names = {one.cluster, one.endpoint.address, origin.name if origin is not None else ""}
        if (at in names if at else True) and one.cluster not in seen:
            seen.add(one.cluster)
            yield one


def end(db: View, who: Client, at: Reached, request: Request, asked: Question, home: str) -> End:
    """What becomes of a request at an endpoint."""
    one = at.endpoint
    lines = [Line("endpoint", f"{one.address}:{one.port}", _endpoint_words(at, home))]
    where = f"{one.address}:{one.port}"
    if not is_local(db, at.cluster):
        text = f"the objects of {at.cluster} decide, which are not known here"
        lines.append(Line("inbound", f"cluster {at.cluster}", text))
        verdict = Verdict(Outcome.ELSEWHERE, text)
        return End(at.cluster, where, tuple(lines), verdict, _ask(who, at, request, asked))
    if one.origin is None or not one.meshed:
        text = "no proxy stands before it"
        return End(at.cluster, where, tuple(lines), Verdict(Outcome.DELIVERED, text))
    ir = inbound(db, InboundName(one.origin, one.port))
    peer = Peer(at.gateway or who.address, at.tls, who.identity if at.tls else None)
    decision = decide.inbound(ir, peer, request, chance=asked.throw / THROWS)
    for number, step in enumerate(decision.steps):
        part = "inbound" if not number else _part(step.source, step.text)
        lines.append(Line(part, words(step.source, home), step.text))
    verdict = verdict_of(decision.verdict, home)
    if verdict.outcome is Outcome.REFUSED:
        lines += _others(ir, home)
        verdict = msgspec.structs.replace(verdict, by=words(ir.source, home))
    return End(at.cluster, where, tuple(lines), verdict)


def _others(ir: Inbound, home: str) -> Iterator[Line]:
    """Whom the port would have let in."""
    found = [each for route in ir.http_routes for each in route.authorizations]
    found += [each for route in ir.grpc_routes for each in route.authorizations]
    for each in dict.fromkeys((*found, *ir.authorizations)):
        yield Line("authorization", words(each.source, home), f"is for {admitted(each)}")


def _endpoint_words(at: Reached, home: str) -> str:
    one = at.endpoint
    who = ref_words(one.origin) if one.origin is not None else "an address without an object"
    how = f"by mesh TLS, as {identity_words(one.identity)}" if at.tls else "in plaintext"
    gateway = f", through the gateway at {at.gateway}" if at.gateway else ""
    return f"{who}{elsewhere(at.cluster, home)}, {how}{gateway}"


def _part(source: Source, text: str) -> str:
    kind = source.ref.kind if isinstance(source, Origin) else ""
    if kind.endswith("Authorization") or kind == "AuthorizationPolicy" or text.startswith("lets"):
        return "authorization"
    if kind == "HTTPLocalRateLimitPolicy":
        return "rate limit"
    return "route" if kind.endswith("Route") or not kind else "inbound"


def verdict_of(said: decide.Verdict, home: str) -> Verdict:
    """A decision's end in short."""
    by = words(said.source, home)
    match said:
        case decide.Reply(status, _, grpc, message, location):
            no = status == FORBIDDEN or grpc == PERMISSION_DENIED
            text = f"to {location}" if location else message
            outcome = Outcome.REFUSED if no else Outcome.ANSWERED
            return Verdict(outcome, text, by, status, grpc)
        case decide.Close(_, message):
            return Verdict(Outcome.REFUSED, f"the connection is closed: {message}", by)
        case decide.Admit(audited=audited):
            text = "let in, and reported: nobody may" if audited else "let in"
            return Verdict(Outcome.DELIVERED, text, by)
        case _:
            return Verdict(Outcome.DELIVERED, "", by)


def _ask(who: Client, at: Reached, request: Request, asked: Question) -> str:
    """The command that asks the far end's cluster, as somebody there would come."""
    one = at.endpoint
    if one.origin is None:
        return ""
    came = f"@{at.gateway or who.address}"
    identity = identity_words(who.identity) if at.tls else f"{who.where.namespace}/sa/default"
    to = f"{one.origin.namespace}/{one.origin.name}:{one.port}"
    parts = ["isthmus", f"--context={at.cluster}", "explain", identity + came, to]
    if isinstance(request, HttpRequest):
        parts += [request.method, request.path]
        parts += [part for name, value in asked.headers for part in ("-H", f"{name}: {value}")]
    return shlex.join(parts)
