"""What a sidecar of a mesh in memory is told, as messages, as text, and as a configuration file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from envoy.config.bootstrap.v3 import bootstrap_pb2
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from google.protobuf import json_format
from google.protobuf.message import Message

from isthmus.dialects.envoy import (
    Asker,
    Bootstrap,
    EnvoyDialect,
    NodeAsker,
    NodeDialect,
    bootstrap,
)
from isthmus.dialects.envoy.view import asker, sidecar_view
from isthmus.ir.names import Ref
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Resource
from tests.support.meshworld import LOCAL, World

TYPES: Mapping[str, type[Message]] = {
    CLUSTER: cluster_pb2.Cluster,
    ENDPOINTS: endpoint_pb2.ClusterLoadAssignment,
    LISTENER: listener_pb2.Listener,
    ROUTES: route_pb2.RouteConfiguration,
}
WORDS = {CLUSTER: "cluster", ENDPOINTS: "endpoints", LISTENER: "listener", ROUTES: "routes"}


class Told(NamedTuple):
    """One resource that a sidecar is told."""

    type_url: str
    resource: Resource
    message: Message


def pod(path: str) -> Ref:
    """`shop/cart-a` as a workload."""
    namespace, _, name = path.partition("/")
    return Ref(LOCAL, "", "Pod", namespace, name)


class Sidecar:
    """The sidecar of a workload of a world."""

    def __init__(self, world: World, workload: Ref) -> None:
        self.world = world
        self.asker: Asker = world.db.read(asker, workload)

    def names(self, type_url: str) -> tuple[str, ...]:
        """The names in sight."""
        view = self.world.db.read(sidecar_view, self.asker.workload)
        assert view is not None
        return view.types[type_url] or ()

    def told(self) -> Iterator[Told]:
        """Everything, by type and name. Every name in sight leads to a resource of that name."""
        for type_url in TYPES:
            for name in self.names(type_url):
                yield self.one(type_url, name)

    def find(self, type_url: str, name: str) -> Resource | None:
        """What a name stands for, in sight or not."""
        cell = EnvoyDialect().resource_query(self.asker, type_url, name)
        found: Resource | None = self.world.db.read(*cell) if cell is not None else None
        return found

    def one(self, type_url: str, name: str) -> Told:
        """What a name in sight stands for."""
        found = self.find(type_url, name)
        assert found is not None, (type_url, name)
        assert found.name == name
        return Told(type_url, found, TYPES[type_url].FromString(found.value))

    # One message of each type.

    def cluster(self, name: str) -> cluster_pb2.Cluster:
        return cluster_pb2.Cluster.FromString(self.one(CLUSTER, name).resource.value)

    def endpoints(self, name: str) -> endpoint_pb2.ClusterLoadAssignment:
        value = self.one(ENDPOINTS, name).resource.value
        return endpoint_pb2.ClusterLoadAssignment.FromString(value)

    def listener(self, name: str) -> listener_pb2.Listener:
        return listener_pb2.Listener.FromString(self.one(LISTENER, name).resource.value)

    def routes(self, name: str) -> route_pb2.RouteConfiguration:
        return route_pb2.RouteConfiguration.FromString(self.one(ROUTES, name).resource.value)


def node_told(world: World) -> Iterator[Told]:
    """Everything that a node's Envoy is told."""
    dialect, asker = NodeDialect(), NodeAsker(LOCAL, "n1")
    for type_url, names in world.db.read(*dialect.view_query(asker)).types.items():
        for name in names or ():
            cell = dialect.resource_query(asker, type_url, name)
            found = world.db.read(*cell) if cell is not None else None
            assert found is not None, (type_url, name)
            yield Told(type_url, found, TYPES[type_url].FromString(found.value))


def plain(message: Message) -> dict[str, Any]:
    """A message as a mapping, names as Envoy's documentation has them."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


# ------------------------------------------------------------------------------ scenarios


def scenarios(file: Path) -> dict[str, Any]:
    """The scenarios of a file: `objects`, `settings` of the mesh, what to `show`."""
    found: dict[str, Any] = yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    return found


def scenario(said: Mapping[str, Any]) -> World:
    """A world with the objects of a scenario, namespace `shop` and pod `shop/me`."""
    objects = said["objects"]
    usual = ({"ns": "shop"}, {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, **_ME})
    settings = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in said.get("settings", {}).items()
    }
    return World(*usual, *objects, **settings)


_ME = {"proxy": "envoy", "sa": "me", "node": "rack-1"}


# ---------------------------------------------------------------------------- readable text


def summary(message: Message) -> dict[str, Any]:
    """A message as a mapping in which what never varies is a word."""
    found = _short(plain(message))
    assert isinstance(found, dict)
    return found


def _short(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_short(each) for each in value]
    if not isinstance(value, dict):
        return value
    word = _word(value)
    if word is not None:
        return word
    found = {key: _short(each) for key, each in value.items()}
    # Maps have no order of their own.
    return {key: _sorted(one) if key in _MAPS else one for key, one in found.items()}


_MAPS = ("filter_metadata", "isthmus", "policies", "typed_per_filter_config")


def _sorted(value: Any) -> Any:  # noqa: ANN401 - JSON
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _word(value: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """What stands for a part: for a TLS context whom it believes, for a logger its name."""
    kind = str(value.get("@type", "")).rpartition(".")[2]
    match kind:
        case "UpstreamTlsContext":
            common = value["common_tls_context"]
            expected = common["combined_validation_context"]["default_validation_context"]
            sans = [each["matcher"]["exact"] for each in expected["match_typed_subject_alt_names"]]
            sni = value.get("sni", "the endpoint's own")
            return {"TLS to": sans, "sni": sni, "alpn": common.get("alpn_protocols", [])}
        case "DownstreamTlsContext":
            return "mesh TLS"
        case "TypedStruct":
            return [each["stat"]["name"] for each in value["value"]["counters"]]
        case "HttpConnectionManager":
            return _manager(value)
        case "TcpProxy":
            return {"tcp": value.get("cluster") or value["weighted_clusters"]["clusters"]}
        case "Config" if "on_new_connection" in value:
            said = value["on_new_connection"][0]
            text = said["format_string"]["text_format_source"]["inline_string"]
            return {said["object_key"]: text}
        case "HttpProtocolOptions":
            return [key for key in value if key not in ("@type", "common_http_protocol_options")]
        case _:
            return kind if set(value) == {"@type"} else None


def _manager(value: dict[str, Any]) -> dict[str, Any]:
    routes = value["rds"]["route_config_name"] if "rds" in value else _short(value["route_config"])
    return {"http": routes, "side": value["stat_prefix"], "codec": value.get("codec_type", "AUTO")}


# ------------------------------------------------------------------------- without ADS


def static(told: Iterable[Told]) -> str:
    """All of it as a configuration that needs no control plane, for `envoy --mode validate`.

    Assignments and routes move into what refers to them. The directory that Envoy runs in must hold
    `identity/` (see `tests.support.identity`).
    """
    some = list(told)
    found = {(each.type_url, each.resource.name): each.message for each in some}
    wire = bootstrap_pb2.Bootstrap()
    json_format.Parse(
        bootstrap(Bootstrap(id="a", workload="b", ads="/tmp/no-ads", admin="/tmp/no-admin")), wire
    )
    wire.ClearField("dynamic_resources")
    wire.ClearField("admin")
    config = json_format.MessageToDict(wire, preserving_proto_field_name=True)
    clusters = [plain(each.message) for each in some if each.type_url == CLUSTER]
    for cluster in clusters:
        if cluster.get("type") == "EDS":
            cluster["type"] = "STATIC"
            del cluster["eds_cluster_config"]
            cluster["load_assignment"] = plain(found[ENDPOINTS, cluster["name"]])
    listeners = [plain(each.message) for each in some if each.type_url == LISTENER]
    config["static_resources"]["clusters"] += clusters
    config["static_resources"]["listeners"] = [_inlined(each, found) for each in listeners]
    return json.dumps(config, indent=1)


def _inlined(value: Any, found: Mapping[tuple[str, str], Message]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_inlined(each, found) for each in value]
    if not isinstance(value, dict):
        return value
    value = {key: _inlined(each, found) for key, each in value.items()}
    if "rds" in value:
        name = value.pop("rds")["route_config_name"]
        value["route_config"] = plain(found[ROUTES, name])
    return value
