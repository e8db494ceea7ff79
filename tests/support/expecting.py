"""What a case expects of a stream, compared with what the stream was told.

For Get, messages of a step are folded: `add` is exactly what is new or changed for the client,
`remove` exactly what it lost, `state` what it holds afterwards; `set_labels`, `no_endpoints`,
`messages`, `order`, `quiet`, `error` and `end` say what their names say, and what a case does not
name must not be there. For GetProfile equal messages in a row count once; `profile` is about the
last, `count` (1 unless said) is their number.

Facets that are not named are not compared; null means absent or empty. Of an address: w, id (DNS
identity; `sa.ns` in short, `=text` in full), uri, sni, hint, ot (inbound port), labels, auth,
http2. Of a profile: fqn, opaque, routes, budget, overrides, endpoint, parent, ref, blank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.proto.linkerd import http_types_pb2 as http
from tests.support.asking import Stream
from tests.support.meshworld import Held, fold, socket

Wanted = Mapping[str, Any]


class Names(NamedTuple):
    """What short names in cases stand for."""

    mesh: str
    trust: str


class Step:
    """What a stream was told from one moment on."""

    def __init__(self, stream: Stream, names: Names, begin: int | None = None) -> None:
        self._stream = stream
        self._names = names
        self._from = len(stream.told) if begin is None else begin
        self._before: Held = _folded(stream.told[: self._from])

    @property
    def told(self) -> list[Any]:
        return list(self._stream.told[self._from :])

    def faults(self, rpc: str, wanted: Wanted) -> list[str]:
        """In what the step is not as wanted; nothing when it is."""
        if "any_of" in wanted:
            each = [self.faults(rpc, one) for one in wanted["any_of"]]
            return [] if [] in each else each[0]
        if "error" in wanted or "end" in wanted:
            return list(self._ending(wanted))
        if self._stream.ended is not None:
            return [f"it ended: {self._stream.ended} {self._stream.text}"]
        compare = self._get if rpc == "Get" else self._profile
        return list(compare(wanted))

    def _ending(self, wanted: Wanted) -> Iterator[str]:
        ended = self._stream.ended
        code = wanted["error"]["code"] if "error" in wanted else wanted["end"]
        name = "" if ended is None else ended.name.replace("_", "").lower()
        if name != code.lower():
            yield f"ended with {ended} {self._stream.text!r}, not {code}"
        if "error" in wanted:
            if self.told:
                yield f"told {self.told} before the error"
            if not 0 < len(self._stream.text.encode()) <= wanted["error"].get("max_text", 256):
                yield f"text of {len(self._stream.text)} characters"

    # ---------------------------------------------------------------------------- Get

    def _get(self, wanted: Wanted) -> Iterator[str]:
        now = _folded(self._stream.told)
        added = {at: told for at, told in now.items() if self._before.get(at) != told}
        removed = sorted(_text(at) for at in self._before if at not in now)
        free = "state" in wanted and not {"add", "remove"} & wanted.keys()
        if not free:
            yield from self._addresses(added, wanted.get("add", {}))
            if removed != sorted(wanted.get("remove", [])):
                yield f"removed {removed}"
        if "state" in wanted and sorted(map(_text, now)) != sorted(wanted["state"]):
            yield f"holds {sorted(map(_text, now))}"
        if not free or wanted.get("no_endpoints"):
            yield from self._emptiness(wanted.get("no_endpoints"))
        if "messages" in wanted and len(self.told) != wanted["messages"]:
            yield f"{len(self.told)} messages"
        if wanted.get("order") == "add-remove":
            yield from self._order()
        if "set_labels" in wanted:
            labels = [m.add.metric_labels for m in self.told if m.HasField("add")][-1:]
            yield from _labels(labels[0] if labels else {}, wanted["set_labels"])

    def _addresses(self, added: Held, wanted: Wanted) -> Iterator[str]:
        found = {_text(at): told for at, told in added.items()}
        if found.keys() != wanted.keys():
            yield f"added {sorted(found)}, not {sorted(wanted)}"
            return
        for at, (labels, address) in found.items():
            for fault in _address(address, labels, wanted[at], self._names):
                yield f"{at}: {fault}"

    def _emptiness(self, wanted: Wanted | None) -> Iterator[str]:
        said = [m.no_endpoints.exists for m in self.told if m.HasField("no_endpoints")]
        if wanted is None and said:
            yield f"no_endpoints {said}"
        if wanted is not None and wanted["exists"] not in said:
            yield f"no_endpoints {said}, not {wanted}"

    def _order(self) -> Iterator[str]:
        kinds = [message.WhichOneof("update") for message in self.told]
        if kinds != ["add", "remove"]:
            yield f"in the order {kinds}"

    # ------------------------------------------------------------------------ GetProfile

    def _profile(self, wanted: Wanted) -> Iterator[str]:
        all_told = self._stream.told
        fresh = [
            message
            for at, message in enumerate(all_told)
            if at >= self._from and (at == 0 or all_told[at - 1] != message)
        ]
        count = 0 if wanted.get("quiet") else wanted.get("count", 1)
        if len(fresh) != count:
            yield f"{len(fresh)} different messages, not {count}: {fresh}"
        if fresh and "profile" in wanted:
            yield from _profile(fresh[-1], wanted["profile"], self._names)


def _folded(told: Sequence[Any]) -> Held:
    updates = [m.SerializeToString() for m in told if isinstance(m, pb.Update)]
    return fold({}, updates)


def _text(at: tuple[str, int]) -> str:
    ip, port = at
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _address(
    address: pb.WeightedAddr, labels: Mapping[str, str], wanted: Wanted, names: Names
) -> Iterator[str]:
    said = _facets(address)
    for name, value in wanted.items():
        match name:
            case "labels":
                yield from _labels(labels, value)
            case "id" if value is not None:
                full = _identity(value, names)
                if said["id"] != full:
                    yield f"id is {said['id']}, not {full}"
                if not value.startswith("=") and said["sni"] != full:
                    yield f"sni is {said['sni']}, not {full}"
            case "addr":
                if _text(socket(address.addr)) != value:
                    yield f"at {_text(socket(address.addr))}, not {value}"
            case _:
                if said[name] != value:
                    yield f"{name} is {said[name]}, not {value}"


def _facets(address: pb.WeightedAddr) -> dict[str, Any]:
    identity, hint = address.tls_identity, address.protocol_hint
    ping = address.http2.keep_alive
    return {
        "w": address.weight,
        "id": identity.dns_like_identity.name or None,
        "uri": identity.uri_like_identity.uri or None,
        "sni": identity.server_name.name or None,
        "hint": hint.WhichOneof("protocol") or "none",
        "ot": hint.opaque_transport.inbound_port or None,
        "auth": address.authority_override.authority_override or None,
        "http2": {
            "interval": ping.interval.seconds,
            "timeout": ping.timeout.seconds,
            "while_idle": ping.while_idle,
        }
        if address.HasField("http2")
        else None,
    }


def _identity(text: str, names: Names) -> str:
    if text.startswith("="):
        return text[1:]
    account, _, trust = text.partition("@")
    return f"{account}.serviceaccount.identity.{names.mesh}.{trust or names.trust}"


def _labels(labels: Mapping[str, str], wanted: Wanted) -> Iterator[str]:
    for key, value in wanted.items():
        if labels.get(key) != value:
            yield f"label {key} is {labels.get(key)!r}, not {value!r}"


def _profile(profile: pb.DestinationProfile, wanted: Wanted, names: Names) -> Iterator[str]:
    said = {
        "fqn": profile.fully_qualified_name or None,
        "opaque": profile.opaque_protocol,
        "routes": [_route(each) for each in profile.routes],
        "budget": _budget(profile),
        "overrides": [[each.authority, each.weight] for each in profile.dst_overrides],
        "parent": _ref(profile, "parent_ref"),
        "ref": _ref(profile, "profile_ref"),
        "blank": profile == pb.DestinationProfile(),
    }
    for name, value in wanted.items():
        if name == "endpoint":
            yield from _endpoint(profile, value, names)
        elif said[name] != value:
            yield f"{name} is {said[name]}, not {value}"


def _endpoint(profile: pb.DestinationProfile, wanted: Wanted | None, names: Names) -> Iterator[str]:
    if profile.HasField("endpoint") != (wanted is not None):
        yield f"endpoint is {profile.endpoint}"
    elif wanted is not None:
        labels = profile.endpoint.metric_labels
        yield from _address(profile.endpoint, labels, wanted, names)


def _budget(profile: pb.DestinationProfile) -> dict[str, float]:
    budget = profile.retry_budget
    ratio = round(budget.retry_ratio, 6)
    return {"ratio": ratio, "min": budget.min_retries_per_second, "ttl": budget.ttl.seconds}


def _ref(profile: pb.DestinationProfile, name: str) -> str | None:
    if not profile.HasField(name):  # type: ignore[arg-type]  # one of its fields
        return None
    resource = getattr(profile, name).resource
    kinds = {"parent_ref": ("core", "Service"), "profile_ref": ("linkerd.io", "ServiceProfile")}
    assert (resource.group, resource.kind) == kinds[name], resource
    port = f":{resource.port}" if resource.port else ""
    return f"{resource.namespace}/{resource.name}{port}"


def _route(route: pb.Route) -> dict[str, Any]:
    timeout = route.timeout.seconds + route.timeout.nanos / 1e9
    return {
        "name": route.metrics_labels["route"],
        "match": _match(route.condition),
        "retryable": route.is_retryable,
        "timeout": timeout if route.HasField("timeout") else None,
        "classes": [
            {"match": _match(each.condition), "failure": each.is_failure}
            for each in route.response_classes
        ],
    }


def _match(match: pb.RequestMatch | pb.ResponseMatch) -> dict[str, Any]:
    kind = match.WhichOneof("match")
    assert kind is not None
    value = getattr(match, kind)
    match kind:
        case "all" | "any":
            return {kind: [_match(each) for each in value.matches]}
        case "not":
            return {"not": _match(value)}
        case "path":
            return {"path": value.regex}
        case "method":
            known = value.WhichOneof("type") == "registered"
            name = http.HttpMethod.Registered.Name(value.registered) if known else ""
            return {"method": name or f"={value.unregistered}"}
        case _:
            return {"status": [value.min, value.max]}
