"""Pod: its view and record. Columns, defaults and rules are in modules beside it."""

from __future__ import annotations

from typing import Final

from msgspec import field

from isthmus.model.core.podcolumns import POD_COLUMNS
from isthmus.model.core.poddefaults import default_pod, default_pod_spec
from isthmus.model.core.podrules import pod_faults
from isthmus.model.core.proxywords import own_annotations
from isthmus.model.document import ensure, items, mapping, settle
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Condition, Meta, View
from isthmus.model.wire.schemas import schema_of


class Port(View, frozen=True):
    """A port that a container declares."""

    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"
    host_port: int = 0


class FieldRef(View, frozen=True):
    """A field of the pod as a variable's value: `metadata.name`, `status.podIP`, ..."""

    field_path: str = ""


class KeyRef(View, frozen=True):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class EnvSource(View, frozen=True):
    """Where a variable's value comes from."""

    field_ref: FieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(View, frozen=True):
    """A variable of a container's environment."""

    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class HTTPGet(View, frozen=True):
    """A probe by HTTP. `port` is a number or a container port's name."""

    path: str = "/"
    port: int | str = 0
    scheme: str = "HTTP"


class TCPSocket(View, frozen=True):
    """A probe by connecting."""

    port: int | str = 0


class GRPC(View, frozen=True):
    """A probe by gRPC health checking."""

    port: int = 0
    service: str = ""


class Probe(View, frozen=True):
    """How the kubelet asks a container; times in seconds."""

    http_get: HTTPGet | None = None
    tcp_socket: TCPSocket | None = None
    grpc: GRPC | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3


class Container(View, frozen=True):
    """A container. An init container whose `restart_policy` is Always is a native sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    ports: tuple[Port, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    restart_policy: str = ""


class PodSpec(View, frozen=True):
    """core/v1 PodSpec, in part."""

    node_name: str = ""
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""
    service_account_name: str = ""
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class PodIP(View, frozen=True):
    """One of a pod's addresses."""

    ip: str = ""


class HostIP(View, frozen=True):
    """One of its host's addresses."""

    ip: str = ""


class PodStatus(View, frozen=True):
    """core/v1 PodStatus, in part. `phase`: Pending, Running, Succeeded, Failed or Unknown."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    host_ip: str = field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] = field(default=(), name="hostIPs")
    start_time: str = ""

    @property
    def ready(self) -> bool:
        """Whether the Ready condition is True."""
        return any(each.type == "Ready" and each.status == "True" for each in self.conditions)

    @property
    def ips(self) -> tuple[str, ...]:
        """Every address of the pod, the first one first."""
        listed = tuple(each.ip for each in self.pod_ips if each.ip)
        return listed or ((self.pod_ip,) if self.pod_ip else ())


class Pod(View, frozen=True):
    """core/v1 Pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


def _carry(document: Document, old: Document | None) -> None:
    """A pod is born Pending; its addresses are said twice, and the list follows the first."""
    if old is None:
        document["status"] = {"phase": "Pending", "qosClass": _qos(document)}
        return
    status = ensure(document, "status")
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        listed = items(status, many)
        if listed and listed[0].get("ip"):
            settle(status, one, listed[0]["ip"])
        elif status.get(one) and not listed:
            status[many] = [{"ip": status[one]}]


def _qos(document: Document) -> str:
    """Guaranteed, Burstable or BestEffort, from what the containers request."""
    containers = items(document, "spec.containers") + items(document, "spec.initContainers")
    resources = [mapping(each, "resources") for each in containers]
    if not any(mapping(each, "requests") or mapping(each, "limits") for each in resources):
        return "BestEffort"
    for each in resources:
        limits = mapping(each, "limits")
        requests = mapping(each, "requests") or limits
        if {"cpu", "memory"} - limits.keys() or any(requests.get(k) != limits[k] for k in limits):
            return "Burstable"
    return "Guaranteed"


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    default_pod_spec(spec)
    default_pod(spec)


POD: Final = Kind(
    group="",
    name="Pod",
    plural="pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    versions=(Version("v1", schema_of("core.v1.Pod"), columns=POD_COLUMNS),),
    stored="v1",
    view=Pod,
    default=(_default,),
    carry=(_carry,),
    check=(pod_faults,),
    warn=(own_annotations,),
    field_selectors={
        "status.phase": "status.phase",
        "status.podIP": "status.podIP",
        "status.nominatedNodeName": "status.nominatedNodeName",
        "spec.nodeName": "spec.nodeName",
        "spec.restartPolicy": "spec.restartPolicy",
        "spec.schedulerName": "spec.schedulerName",
        "spec.serviceAccountName": "spec.serviceAccountName",
        "spec.hostNetwork": "spec.hostNetwork",
    },
    custom=False,
)
