"""Where a connection goes to: the name's address, and the Service, network or pod that has it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import msgspec

from isthmus.app.explain.client import Beside, Client, NoSuch
from isthmus.app.explain.question import To
from isthmus.app.explain.said import Line, ref_words
from isthmus.engine import View
from isthmus.ir.names import Ref
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.addressed import ThePod, TheWorkload, holder
from isthmus.mesh.dns import Foreign, Node, full_name, resolve
from isthmus.mesh.egress import network_of, network_ref
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.outbound import parent_ref
from isthmus.mesh.pods import pod_ips
from isthmus.mesh.resolution import service_named
from isthmus.mesh.scope import instances, ports_of, refused_networks
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import PODS, SERVICE_PODS, SERVICES, SERVICES_BY_IP, Address
from isthmus.mesh.targets import headless
from isthmus.mesh.workloads import external_ref, is_pod, own_ports, pod_ref, workload_key
from isthmus.model.key import ObjectKey

DEFAULT_PORT = 80


class Destination(msgspec.Struct, frozen=True):
    """`name` is the parent whose routes count; `workload` who is dialled by its own address.

    Both are None for what is outside, and of no network. `host` is the request's authority.
    """

    host: str
    ip: str
    port: int
    name: OutboundName | None = None
    workload: Ref | None = None

    @property
    def authority(self) -> str:
        """The host, with the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORT else f"{host}:{self.port}"


def destination(db: View, who: Client, to: To, lines: list[Line]) -> Destination:
    """What a client that says `to` is connected to.

    Raises:
        NoSuch: nobody has the name, or its address is not known here.
    """
    if to.namespace:
        return _pod(db, ObjectKey(who.where.cluster, to.namespace, to.host), to.port)
    ip = canonical_ip(to.host)
    if ip is None:
        name, ip = _looked_up(db, who, to)
        lines.append(Line("name", to.host, f"is {name}: {ip}" if name != to.host else f"is {ip}"))
        service = _named_service(db, who, name)
        if service is not None:
            return _to_service(db, who, to, service, ip)
    found = SERVICES_BY_IP.get(db, Address(who.where.cluster, ip))
    if found:
        return _to_service(db, who, to, found[0], ip)
    return _to_address(db, who, to, ip)


def _pod(db: View, key: ObjectKey, port: int) -> Destination:
    ips = pod_ips(db, key) if PODS.get(db, key) is not None else ()
    if not ips:
        raise NoSuch(f"there is no pod {key.namespace}/{key.name} with an address")
    ref = pod_ref(key)
    port = port or next((number for _, number in own_ports(db, ref)), DEFAULT_PORT)
    return Destination(ips[0], ips[0], port, workload=ref)


def _looked_up(db: View, who: Client, to: To) -> tuple[str, str]:
    """The whole name and its first address, by the search path of a pod's resolver."""
    for name in _candidates(db, who, to.host):
        resolution = resolve(db, name)
        match resolution.found:
            case Node(ips=[ip, *_]):
                return (resolution.aliases or (name,))[-1], ip
            case Node(ips=()) if name != to.host or not to.address:
                raise NoSuch(f"{name} has no address: nobody is behind it")
            case Foreign() if resolution.aliases and to.address:
                return resolution.aliases[-1], to.address
            case _:
                continue
    if to.address:
        return to.host, canonical_ip(to.address) or to.address
    raise NoSuch(
        f"{to.host!r} is no name of this cluster; Services of linked clusters end in -federated or "
        "-CLUSTER; for a name outside, say with --ip which address the client's resolver gives"
    )


def _candidates(db: View, who: Client, host: str) -> Iterator[str]:
    domain, namespace = settings(db).cluster_domain, who.where.namespace
    if namespace:
        yield f"{host}.{namespace}.svc.{domain}"
    yield f"{host}.svc.{domain}"
    yield f"{host}.{domain}"
    yield host


def _named_service(db: View, who: Client, name: str) -> ObjectKey | None:
    domain = settings(db).cluster_domain
    found = service_named(name, domain) if name.endswith(f".svc.{domain}") else None
    key = ObjectKey(who.where.cluster, *found) if found is not None else None
    return key if key is not None and SERVICES.get(db, key) is not None else None


def _to_service(db: View, who: Client, to: To, service: ObjectKey, ip: str) -> Destination:
    """By its ClusterIP; of one that has none, the endpoint whose address the client was given."""
    namespace = who.where.namespace
    port = to.port or _only_port(db, service)
    if headless(db, service):
        return _to_address(db, who, msgspec.structs.replace(to, port=port), ip)
    return Destination(to.host, ip, port, OutboundName(parent_ref(service), port, namespace))


def _only_port(db: View, service: ObjectKey) -> int:
    listed = [name.port for name in ports_of(db, service)]
    if len(listed) == 1 or (listed and DEFAULT_PORT not in listed):
        return listed[0]
    return DEFAULT_PORT


def _to_address(db: View, who: Client, to: To, ip: str) -> Destination:
    port = to.port or DEFAULT_PORT
    network = network_of(db, who.where, ip)
    if network is not None:
        name = OutboundName(network_ref(network), port, who.where.namespace)
        return Destination(to.host, ip, port, name, _holder(db, who, ip, port))
    return Destination(to.host, ip, port, workload=_holder(db, who, ip, port))


def _holder(db: View, who: Client, ip: str, port: int) -> Ref | None:
    match holder(db, who.where.cluster, ip, port):
        case ThePod(pod):
            return pod_ref(pod)
        case TheWorkload(workload):
            return external_ref(workload)
        case _:
            return None


def instance_of(db: View, workload: Ref, ip: str, port: int) -> OutboundName | None:
    """The port of a headless Service that an address is an endpoint of."""
    if not is_pod(workload):
        return None
    for service in SERVICE_PODS.selectors(db, workload_key(workload)):
        for name in ports_of(db, service):
            if any((one.ip, one.port) == (ip, port) for one in instances(db, name)):
                return name
    return None


def is_refused(db: View, who: Client, ip: str) -> bool:
    """Whether only Services have such addresses, so that Envoys close what is none's."""
    address = ip_address(ip)
    networks = (ip_network(each) for each in refused_networks(db, who.where.cluster))
    return who.beside is Beside.ENVOY and any(address in each for each in networks)


def dialled(db: View, to: Destination) -> str:
    """What is dialled, as a line shows it."""
    if to.name is not None and to.name.parent.kind == "Service":
        key = ObjectKey(to.name.parent.cluster, to.name.parent.namespace, to.name.parent.name)
        return f"{full_name(db, key)}:{to.port}"
    whom = f" ({ref_words(to.workload)})" if to.workload is not None else ""
    return f"{to.ip}:{to.port}{whom}"
