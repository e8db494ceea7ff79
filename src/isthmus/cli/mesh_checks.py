"""The checks of `isthmus check`: the API, the control plane, the mesh's trust, the proxies.

Grouped and named as `linkerd check` does it, where the same thing can be asked; what only makes
sense for a control plane of Deployments is left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from isthmus.cli import object_checks
from isthmus.cli.checks import Category, Check, Skip
from isthmus.cli.cluster import ENDPOINTS, Cluster
from isthmus.cli.multicluster import facts, names
from isthmus.errors import IsthmusError, NotFound, UserFault

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

Document = dict[str, Any]

MINIMUM: Final = (1, 23)
"""The Kubernetes API version that is needed."""
SOON: Final = timedelta(days=60)
GATEWAY_API: Final = "/apis/gateway.networking.k8s.io"
GROUPS: Final = (
    "policy.linkerd.io", "linkerd.io", "multicluster.linkerd.io", "workload.linkerd.io",
)  # fmt: skip
PAGE: Final = "500"
SHOWN: Final = 10


class World:
    """One cluster, looked at once. `connect` may fail."""

    def __init__(
        self, connect: Callable[[], Cluster], namespace: str | None, now: datetime
    ) -> None:
        self._connect = connect
        self._namespace = namespace
        self.now = now

    @cached_property
    def cluster(self) -> Cluster:
        """Its API."""
        return self._connect()

    @cached_property
    def version(self) -> Document:
        """What the API says of itself."""
        return self.cluster.get("/version")

    @cached_property
    def own(self) -> facts.Facts:
        """What the control plane says of its mesh."""
        return facts.ask(self.cluster, self._namespace)

    @cached_property
    def anchors(self) -> tuple[Certificate, ...]:
        """Roots that the mesh trusts."""
        return _certificates(self.own.anchors, "the trust anchors")

    @cached_property
    def issuer(self) -> Certificate:
        """What signs the proxies' certificates."""
        return _certificates(self.own.issuer, "the issuer's certificate")[0]


def categories(
    world: World, expected: str, *, proxies: bool, namespace: str | None
) -> Iterator[Category]:
    """All of them, those of links where there are any. `namespace` narrows the proxies' checks."""
    yield from of_cluster(world, expected, proxies=proxies, namespace=namespace)
    if _linked(world):
        from isthmus.cli.multicluster.checks import World as Links
        from isthmus.cli.multicluster.checks import categories as of_links

        yield from of_links(Links(world.cluster, world.own), expected)


def of_cluster(
    world: World, expected: str, *, proxies: bool, namespace: str | None
) -> Iterator[Category]:
    """Those of the cluster itself."""
    yield Category("kubernetes-api", (
        Check("can initialize the client", "client", partial(_client, world), fatal=True),
        Check("can query the Kubernetes API", "api", partial(_query, world), fatal=True),
    ))  # fmt: skip
    yield Category("kubernetes-version", (
        Check("is running the minimum Kubernetes API version", "version", partial(_minimum, world)),
    ))  # fmt: skip
    yield Category("gateway-api-crd", (
        Check("Gateway API is served in a usable version", "gateway-api", partial(_routes, world)),
    ))  # fmt: skip
    yield Category("linkerd-existence", tuple(_existence(world)))
    yield Category("linkerd-config", tuple(_config(world)))
    yield Category("linkerd-identity", tuple(_identity(world)))
    yield Category("control-plane-version", tuple(_versions(world, expected)))
    yield object_checks.category(lambda: world.cluster)
    if proxies:
        yield Category("linkerd-data-plane", tuple(_data_plane(world, namespace)))


def _linked(world: World) -> bool:
    """Whether the multicluster extension is installed, or anything is linked."""
    try:
        selector = f"{names.EXTENSION}=multicluster"
        found = world.cluster.get("/api/v1/namespaces", labelSelector=selector).get("items")
        return bool(found or world.cluster.get(names.LINKS, limit="1").get("items"))
    except NotFound:
        return False


# -------------------------------------------------------------------------------------------- API


def _client(world: World) -> str:
    _ = world.cluster
    return ""


def _query(world: World) -> str:
    _ = world.version
    return ""


def _minimum(world: World) -> str:
    said = tuple(
        int(found[0]) if (found := re.match(r"\d+", str(world.version.get(part)))) else 0
        for part in ("major", "minor")
    )
    if said < MINIMUM:
        text, least = (".".join(map(str, each)) for each in (said, MINIMUM))
        raise UserFault(f"the API is version {text}; {least} is needed")
    return ""


def _routes(world: World) -> str:
    try:
        group = world.cluster.get(GATEWAY_API)
    except NotFound as fault:
        raise UserFault("the Gateway API's kinds are not there: routes cannot be used") from fault
    served = {str(each.get("version")) for each in group.get("versions") or []}
    if "v1" not in served:
        raise UserFault(f"gateway.networking.k8s.io/v1 is not served, only {sorted(served)}")
    return ""


# ---------------------------------------------------------------------------------- control plane


def _existence(world: World) -> Iterator[Check]:
    yield Check(
        "'linkerd-config' config map exists", "config-map", partial(_config_map, world), fatal=True,
        waits=True,
    )  # fmt: skip
    yield Check("control plane is ready", "ready", partial(_ready, world), waits=True)
    yield Check(
        "cluster networks contains all node podCIDRs", "networks", partial(_node_networks, world)
    )
    yield Check("cluster networks contains all pods", "networks", partial(_pods_inside, world))
    yield Check(
        "cluster networks contains all services", "networks", partial(_services_inside, world)
    )


def _config_map(world: World) -> str:
    vars(world).pop("own", None)
    _ = world.own
    return ""


def _ready(world: World) -> str:
    namespace = world.own.namespace
    world.cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{ENDPOINTS}")
    from isthmus.cli.admin import page

    status, said = page(world.cluster.listener("admin", namespace), "/ready")
    if status != HTTPStatus.OK:
        reasons = said.get("reasons") if isinstance(said, dict) else said
        raise UserFault(f"the control plane is not ready: {reasons}")
    return ""


def _node_networks(world: World) -> str:
    return _inside(
        world,
        (
            (f"node {_name(node)}", cidr)
            for node in _all(world, "/api/v1/nodes")
            for cidr in _spec(node).get("podCIDRs") or []
        ),
    )


def _pods_inside(world: World) -> str:
    return _inside(
        world,
        (
            (f"pod {_namespace(pod)}/{_name(pod)}", (pod.get("status") or {}).get("podIP"))
            for pod in _all(world, "/api/v1/pods")
            if not _spec(pod).get("hostNetwork")
        ),
    )


def _services_inside(world: World) -> str:
    return _inside(
        world,
        (
            (f"svc {_namespace(each)}/{_name(each)}", _spec(each).get("clusterIP"))
            for each in _all(world, "/api/v1/services")
            if _spec(each).get("clusterIP") != "None"
        ),
    )


def _inside(world: World, found: Iterator[tuple[str, Any]]) -> str:
    networks = [
        ipaddress.ip_network(each.strip(), strict=False)
        for each in world.own.networks.split(",")
        if each.strip()
    ]
    if not networks:
        raise Skip
    faults = []
    for about, address in found:
        if not address:
            continue
        inner = ipaddress.ip_network(str(address), strict=False)
        if not any(inner.version == n.version and inner.subnet_of(n) for n in networks):  # type: ignore[arg-type]  # of one version
            faults.append(f"* {about} ({address}) is outside of {world.own.networks}")
    _fail(faults)
    return ""


def _config(world: World) -> Iterator[Check]:
    yield Check("control plane Namespace exists", "namespace", partial(_has_namespace, world))
    yield Check("control plane CustomResourceDefinitions exist", "kinds", partial(_kinds, world))


def _has_namespace(world: World) -> str:
    world.cluster.get(f"/api/v1/namespaces/{world.own.namespace}")
    return ""


def _kinds(world: World) -> str:
    served = {
        str(each.get("name")) for each in world.cluster.get("/apis").get("groups") or []
    }  # fmt: skip
    _fail(f"* the kinds of {group} are missing" for group in GROUPS if group not in served)
    return ""


# --------------------------------------------------------------------------------------- identity


def _identity(world: World) -> Iterator[Check]:
    def made(description: str, hint: str, work: Any, *, warns: bool = False) -> Check:  # noqa: ANN401
        return Check(description, hint, partial(work, world), warns=warns)

    yield made("certificate config is valid", "trust", _readable)
    yield made("trust anchors are using supported crypto algorithm", "algorithm", _anchor_keys)
    yield made("trust anchors are within their validity period", "anchors-valid", _anchor_times)
    yield made(
        "trust anchors are valid for at least 60 days", "anchors-soon", _anchors_last, warns=True
    )
    yield made("issuer cert is using supported crypto algorithm", "algorithm", _issuer_key)
    yield made("issuer cert is within its validity period", "issuer-valid", _issuer_time)
    yield made(
        "issuer cert is valid for at least 60 days", "issuer-soon", _issuer_lasts, warns=True
    )
    yield made("issuer cert is issued by the trust anchor", "issuer-chain", _issuer_chain)


def _readable(world: World) -> str:
    if not world.own.anchors and not world.own.issuer:
        raise Skip  # a CA is made when the first workload asks for a certificate
    _ = world.anchors, world.issuer
    return ""


def _some_anchors(world: World) -> tuple[Certificate, ...]:
    if not world.own.anchors:
        raise Skip
    return world.anchors


def _some_issuer(world: World) -> Certificate:
    if not world.own.issuer:
        raise Skip
    return world.issuer


def _anchor_keys(world: World) -> str:
    _fail(line for each in _some_anchors(world) for line in _key_fault(each))
    return ""


def _issuer_key(world: World) -> str:
    _fail(_key_fault(_some_issuer(world)))
    return ""


def _key_fault(certificate: Certificate) -> Iterator[str]:
    from isthmus.ca import chains

    try:
        chains.require_p256(certificate.public_key(), "its key")
    except UserFault as fault:
        yield f"* {_title(certificate)}: {fault.message}"


def _anchor_times(world: World) -> str:
    _fail(line for each in _some_anchors(world) for line in _time_fault(each, world.now))
    return ""


def _issuer_time(world: World) -> str:
    _fail(_time_fault(_some_issuer(world), world.now))
    return ""


def _time_fault(certificate: Certificate, now: datetime) -> Iterator[str]:
    if now < certificate.not_valid_before_utc:
        yield f"* {_title(certificate)} is not valid before {certificate.not_valid_before_utc}"
    if now > certificate.not_valid_after_utc:
        yield f"* {_title(certificate)} expired at {certificate.not_valid_after_utc}"


def _anchors_last(world: World) -> str:
    _fail(line for each in _some_anchors(world) for line in _soon(each, world.now))
    return ""


def _issuer_lasts(world: World) -> str:
    _fail(_soon(_some_issuer(world), world.now))
    return ""


def _soon(certificate: Certificate, now: datetime) -> Iterator[str]:
    if certificate.not_valid_after_utc < now + SOON:
        yield f"* {_title(certificate)} will expire at {certificate.not_valid_after_utc}"


def _issuer_chain(world: World) -> str:
    from isthmus.ca import chains

    chains.path((_some_issuer(world),), world.anchors, world.now)
    return ""


def _certificates(pem: str, what: str) -> tuple[Certificate, ...]:
    from isthmus.ca import chains

    return chains.read_pem(pem.encode(), what)


def _title(certificate: Certificate) -> str:
    return f"{certificate.serial_number} {certificate.subject.rfc4514_string()}"


# --------------------------------------------------------------------------------------- versions


def _versions(world: World, expected: str) -> Iterator[Check]:
    yield Check("can retrieve the control plane version", "control-plane-version",
                partial(_control_plane_version, world))  # fmt: skip
    yield Check("control plane and cli versions match", "versions",
                partial(_same_version, world, expected), warns=True)  # fmt: skip


def _control_plane_version(world: World) -> str:
    if not world.own.version:
        raise UserFault(f"ConfigMap {world.own.namespace}/{facts.NAME} tells no version")
    return ""


def _same_version(world: World, expected: str) -> str:
    if world.own.version != expected:
        raise UserFault(f"control plane running {world.own.version} but cli running {expected}")
    return ""


# ------------------------------------------------------------------------------------- data plane


def _data_plane(world: World, namespace: str | None) -> Iterator[Check]:
    yield Check("data plane namespace exists", "data-plane", partial(_exists, world, namespace))
    yield Check("data plane proxies are ready", "proxies-ready",
                partial(_proxies_ready, world, namespace), waits=True)  # fmt: skip
    yield Check("data plane is up-to-date", "proxies-version",
                partial(_proxies_current, world, namespace), warns=True)  # fmt: skip
    yield Check("data plane proxies take what they are told", "proxies-reject",
                partial(_proxies_content, world), warns=True)  # fmt: skip


def _exists(world: World, namespace: str | None) -> str:
    if namespace is None:
        raise Skip
    world.cluster.get(f"/api/v1/namespaces/{namespace}")
    return ""


def _meshed(world: World, namespace: str | None) -> list[Document]:
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
    selector = "linkerd.io/control-plane-ns"
    found = world.cluster.get(path, labelSelector=selector, limit=PAGE).get("items") or []
    if not found:
        raise Skip
    return list(found)


def _proxies_ready(world: World, namespace: str | None) -> str:
    _fail(
        f"* pod {_namespace(pod)}/{_name(pod)} is not ready: {_phase(pod)}"
        for pod in _meshed(world, namespace)
        if not _is_ready(pod)
    )
    return ""


def _is_ready(pod: Document) -> bool:
    if _phase(pod) == "Succeeded":
        return True
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase") or "Unknown")


def _proxies_current(world: World, namespace: str | None) -> str:
    key = "linkerd.io/proxy-version"
    said = [
        (pod, str(((pod.get("metadata") or {}).get("annotations") or {}).get(key) or ""))
        for pod in _meshed(world, namespace)
    ]
    _fail(
        f"* {_namespace(pod)}/{_name(pod)} ({version}), the control plane is {world.own.version}"
        for pod, version in said
        if version != world.own.version
    )
    return ""


def _proxies_content(world: World) -> str:
    from isthmus.cli.commands.proxy import LISTENER, ask, rejections

    try:
        found = ask(world.cluster.listener(LISTENER, world.own.namespace))
    except IsthmusError as fault:
        raise Skip from fault
    _fail(f"* {line}" for line in rejections(found))
    return ""


# ------------------------------------------------------------------------------- parts of objects


def _fail(faults: Any) -> None:  # noqa: ANN401  # lines
    lines = list(faults)
    if lines:
        more = [f"* and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise UserFault("\n".join(lines[:SHOWN] + more))


def _all(world: World, path: str) -> list[Document]:
    return list(world.cluster.get(path, limit=PAGE).get("items") or [])


def _name(document: Document) -> str:
    return str((document.get("metadata") or {}).get("name") or "")


def _namespace(document: Document) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "")


def _spec(document: Document) -> Document:
    return document.get("spec") or {}
