"""The checks of `multicluster check`: the links of a cluster, and how others link to it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from isthmus import __version__
from isthmus.cli.checks import Category, Check, Settled, Skip
from isthmus.cli.cluster import Cluster
from isthmus.cli.kubeconfig import Access, Kubeconfig
from isthmus.cli.multicluster import facts, names
from isthmus.errors import IsthmusError, NotFound, UserFault

Document = dict[str, Any]

OUTWARD = "linkerd-multicluster"
INWARD = "linkerd-multicluster-access"
VERBS = ("get", "list", "watch")
PAGE = "500"
"""Pods that are compared for equal addresses."""
SHOWN = 10
"""Lines of one error."""

REACHED = ("Accepted", "CredentialsValid", "Reachable")
REFUSED = REACHED[:2]
"""Only somebody who writes another Link or Secret mends these."""
GATEWAY = "GatewayAlive"
"""Conditions of a Link: what its watcher knows."""


class World:
    """One cluster, what it says, and the clusters that it links to; everything asked once."""

    def __init__(self, cluster: Cluster, own: facts.Facts) -> None:
        self.cluster = cluster
        self.own = own
        self._others: dict[str, Cluster] = {}

    @cached_property
    def links(self) -> list[Document]:
        """All Links, by their names."""
        found = self.cluster.get(names.LINKS).get("items") or []
        return sorted(found, key=_name)

    def fresh(self) -> list[Document]:
        """The Links as they are now: their statuses change."""
        vars(self).pop("links", None)
        return self.links

    def other(self, link: Document) -> Cluster:
        """The API of a linked cluster, with the link's credentials.

        Raises:
            UserFault: they are missing or cannot be used.
        """
        name = _name(link)
        if name not in self._others:
            self._others[name] = Cluster(self._access(link))
        return self._others[name]

    def _access(self, link: Document) -> Access:
        namespace, secret = _namespace(link), str(_spec(link).get("clusterCredentialsSecret") or "")
        about = f"[{namespace}/{secret}]"
        try:
            found = self.cluster.get(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
        except NotFound as fault:
            raise UserFault(f"secret {about} is missing") from fault
        body = (found.get("data") or {}).get("kubeconfig")
        if not body:
            raise UserFault(f"secret {about} holds no kubeconfig")
        try:
            return Kubeconfig.of(base64.b64decode(str(body), validate=True)).access()
        except (binascii.Error, IsthmusError) as fault:
            raise UserFault(f"secret {about}: kubeconfig cannot be used: {_said(fault)}") from fault


def categories(world: World, expected: str = __version__) -> Iterator[Category]:
    """Both directions: where this cluster links to, and what waits for those that link to it."""
    yield Category(OUTWARD, tuple(_outward(world, expected)))
    yield Category(INWARD, tuple(_inward(world)))


# ---------------------------------------------------------------------------------------- outward


def _outward(world: World, expected: str) -> Iterator[Check]:
    def of(work: Any) -> partial[str]:  # noqa: ANN401  # a function of the world
        return partial(work, world)

    yield Check("Link CRD exists", "link-crd", of(_kind), fatal=True)
    yield Check("Link resources are valid", "links", of(_valid), fatal=True)
    versions = partial(_versions, world, expected)
    yield Check("Link and CLI versions match", "link-versions", versions, warns=True)
    yield Check("remote cluster access credentials are valid", "credentials", of(_credentials))
    yield Check("clusters share trust anchors", "anchors", of(_anchors))
    yield Check("service mirror controllers are running", "mirroring", of(_reached), waits=True)
    yield Check(
        "probe services able to communicate with all gateway mirrors", "gateways", of(_probes),
        waits=True,
    )  # fmt: skip
    yield Check(
        "all mirror services have endpoints", "mirror-endpoints", of(_endpoints), waits=True
    )
    yield Check(
        "all mirror services are part of a Link", "mirrors-without-link", of(_orphans), warns=True
    )
    yield Check("all services are mirrored as asked", "mirrored", of(_mirrored), warns=True)
    yield Check(
        "pods of clusters without a gateway have addresses of their own", "overlap", of(_overlap)
    )


def _kind(world: World) -> str:
    try:
        _ = world.links
    except NotFound as fault:
        raise UserFault("multicluster.linkerd.io/Link CRD is missing") from fault
    return ""


def _valid(world: World) -> str:
    if not world.links:
        raise Skip
    faults, targets = [], dict[str, str]()
    for link in world.links:
        name, spec = _name(link), _spec(link)
        missing = [
            field for field in ("targetClusterName", "clusterCredentialsSecret")
            if not spec.get(field)
        ]  # fmt: skip
        faults += [f"* {name}: spec.{field} is not set" for field in missing]
        first = targets.setdefault(str(spec.get("targetClusterName") or f"?{name}"), name)
        if first != name:
            faults.append(f"* {name}: spec.targetClusterName is that of {first} too")
    _fail(faults)
    return _listed(_name(link) for link in world.links)


def _versions(world: World, expected: str) -> str:
    made = {
        _name(link): _notes(link).get(names.CREATED_BY, "").rpartition("isthmus/cli ")[2]
        for link in _some(world)
        if "isthmus/cli " in _notes(link).get(names.CREATED_BY, "")
    }
    if not made:
        raise Skip
    _fail(f"* {name}: made by {said}, this is {expected}" for name, said in made.items()
          if said != expected)  # fmt: skip
    return ""


def _credentials(world: World) -> str:
    faults = []
    for link in _some(world):
        name = str(_spec(link).get("targetClusterName"))
        try:
            other = world.other(link)
            other.get("/version")
            faults += [
                f"* missing service permission [{verb}] for cluster [{name}]"
                for verb in VERBS
                if not _may(other, verb)
            ]
        except IsthmusError as fault:
            text = fault.message
            known = text.startswith("secret ")
            faults.append(
                f"* {text}"
                if known
                else f"* failed to connect to API for cluster: [{name}]: {text}"
            )
    _fail(faults)
    return _listed(_spec(link).get("targetClusterName") for link in world.links)


def _may(cluster: Cluster, verb: str) -> bool:
    about = {"verb": verb, "group": "", "version": "v1", "resource": "services"}
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": about},
    }
    answer = cluster.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked)
    return (answer.get("status") or {}).get("allowed") is True


def _anchors(world: World) -> str:
    links, faults = _some(world), []
    ours = _certificates(world.own.anchors)
    for link in links:
        name = str(_spec(link).get("targetClusterName"))
        try:
            theirs = _certificates(_told(world, link).anchors)
        except UserFault:
            faults.append(f"* {name}: cannot parse trust anchors")
        except IsthmusError:
            faults.append(f"* {name}: unable to fetch anchors")
        else:
            if len(ours) != len(theirs) or set(ours) != set(theirs):
                faults.append(f"* {name}")
    if faults:
        raise UserFault("Problematic clusters:\n" + "\n".join(f"    {each}" for each in faults))
    return _listed(_spec(link).get("targetClusterName") for link in world.links)


class _UnreachableError(IsthmusError):
    """Its ConfigMap cannot be fetched."""


def _told(world: World, link: Document) -> facts.Facts:
    namespace = str(_spec(link).get("targetClusterLinkerdNamespace") or facts.LINKERD)
    path = f"/api/v1/namespaces/{namespace}/configmaps/{facts.NAME}"
    try:
        document = world.other(link).get(path)
    except IsthmusError as fault:
        raise _UnreachableError(fault.message) from fault
    return facts.of(document)


def _certificates(pem: str) -> tuple[bytes, ...]:
    from cryptography.hazmat.primitives.serialization import Encoding

    from isthmus.ca import chains

    found = chains.read_pem(pem.encode(), "the trust anchors")
    return tuple(each.public_bytes(Encoding.DER) for each in found)


def _reached(world: World) -> str:
    faults, hopeful = [], False
    for link in world.fresh() or _skip():
        held = _conditions(link)
        if REACHED[-1] not in held:
            faults.append(f"* {_name(link)}: nothing watches this cluster yet")
        bad = [each for each in map(held.get, REACHED) if each and each.get("status") != "True"]
        faults += [
            f"* {_name(link)}: {each.get('reason')}: {each.get('message')}" for each in bad[:1]
        ]
        refused = any(each.get("status") == "False" for each in map(held.get, REFUSED) if each)
        hopeful = hopeful or (bool(bad) and not refused) or REACHED[-1] not in held
    _fail(faults, UserFault if hopeful else Settled)
    return ""


def _probes(world: World) -> str:
    gated = [link for link in world.fresh() if _spec(link).get("gatewayAddress")]
    if not gated:
        raise Skip
    faults = []
    for link in gated:
        said = _conditions(link).get(GATEWAY) or {}
        if said.get("status") != "True":
            why = said.get("message") or "was not probed yet"
            faults.append(f"* {_name(link)}: gateway {_spec(link).get('gatewayAddress')}: {why}")
    _fail(faults)
    return _listed(_name(link) for link in gated)


def _endpoints(world: World) -> str:
    mirrors = [each for each in _mirrors(world) if _by_gateway(each)]
    if not mirrors:
        raise Skip
    slices = world.cluster.get(
        "/apis/discovery.k8s.io/v1/endpointslices", labelSelector=f"{names.MIRROR_CLUSTER}"
    )
    ready = {
        (_namespace(each), _labels(each).get("kubernetes.io/service-name", ""))
        for each in slices.get("items") or []
        if any((e.get("conditions") or {}).get("ready") is not False
               for e in each.get("endpoints") or [])
    }  # fmt: skip
    _fail(
        f"* Service {_name(each)} mirrored from cluster [{_labels(each)[names.MIRROR_CLUSTER]}]"
        f" (in namespace {_namespace(each)}) has no endpoints"
        for each in mirrors
        if (_namespace(each), _name(each)) not in ready
    )
    return ""


def _by_gateway(service: Document) -> bool:
    plain = names.REMOTE_DISCOVERY not in _labels(service)
    notes = _notes(service)
    return plain and not {names.REMOTE_DISCOVERY, names.LOCAL_DISCOVERY} & notes.keys()


def _orphans(world: World) -> str:
    mirrors = [each for each in _mirrors(world) if names.MIRROR_CLUSTER in _labels(each)]
    if not mirrors:
        raise Skip
    known = {str(_spec(link).get("targetClusterName")) for link in world.links}
    _fail(
        f"* mirror service {_name(each)}.{_namespace(each)} is not part of any Link"
        for each in mirrors
        if _labels(each)[names.MIRROR_CLUSTER] not in known
    )
    return ""


def _mirrors(world: World) -> list[Document]:
    wanted = f"{names.MIRRORED}=true"
    return world.cluster.get("/api/v1/services", labelSelector=wanted).get("items") or []


def _mirrored(world: World) -> str:
    """What the Links' statuses say of single services."""
    faults: list[str] = []
    for link in world.fresh() or _skip():
        status = link.get("status") or {}
        for held in ("mirrorServices", "federatedServices"):
            for each in status.get(held) or []:
                faults += _unwell(_name(link), each)
    _fail(faults)
    return ""


def _unwell(link: str, service: Document) -> Iterator[str]:
    about = service.get("remoteRef") or {}
    for said in service.get("conditions") or []:
        if said.get("status") != "True":
            where = f"{about.get('namespace')}/{about.get('name')}"
            yield f"* {link}: {where}: {said.get('reason')}: {said.get('message')}"


def _overlap(world: World) -> str:
    flat = [link for link in world.links if not _spec(link).get("gatewayAddress")]
    if not flat:
        raise Skip
    faults: list[str] = []
    ours = _pod_addresses(world.cluster)
    for link in flat:
        try:
            both = ours & _pod_addresses(world.other(link))
        except IsthmusError:
            continue  # said above
        if both:
            some = ", ".join(sorted(both)[:3])
            faults.append(f"* {_name(link)}: both clusters have pods at {some}; use a gateway")
    _fail(faults)
    return ""


def _pod_addresses(cluster: Cluster) -> set[str]:
    found = cluster.get("/api/v1/pods", limit=PAGE).get("items") or []
    return {
        str((each.get("status") or {}).get("podIP") or "")
        for each in found
        if not _spec(each).get("hostNetwork")
    } - {""}


# ----------------------------------------------------------------------------------------- inward


def _inward(world: World) -> Iterator[Check]:
    yield Check("account of linked clusters exists", "account", partial(_account, world))
    yield Check(
        "account of linked clusters may read what they mirror", "account-rights",
        partial(_rights, world),
    )  # fmt: skip
    yield Check("gateway can be reached by linked clusters", "gateway-address",
                partial(_gateway, world), waits=True)  # fmt: skip
    yield Check("multicluster extension proxies are healthy", "extension-proxies",
                partial(_proxies, world), warns=True, waits=True)  # fmt: skip
    yield Check("multicluster extension proxies and cli versions match", "extension-versions",
                partial(_proxy_versions, world), warns=True)  # fmt: skip


def _account(world: World) -> str:
    _installed(world)
    path = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/{names.REMOTE_ACCESS}"
    try:
        world.cluster.get(path)
    except NotFound as fault:
        raise UserFault(
            f"ServiceAccount {names.NAMESPACE}/{names.REMOTE_ACCESS} is missing:"
            " no other cluster can link to this one"
        ) from fault
    return ""


def _rights(world: World) -> str:
    from isthmus.cli.multicluster.install import READABLE

    _installed(world)
    asked = [
        (verb, group, resource)
        for group, resources in READABLE[:2]
        for resource in resources
        for verb in VERBS
    ]
    faults = [
        f"* may not {verb} {resource}"
        for verb, group, resource in asked
        if not _account_may(world.cluster, verb, group, resource)
    ]
    if not _account_may(world.cluster, "create", "", "serviceaccounts", token=True):
        faults.append("* may not ask for its own tokens: credentials of links will expire")
    _fail(faults)
    return ""


def _account_may(
    cluster: Cluster, verb: str, group: str, resource: str, *, token: bool = False
) -> bool:
    about = {"verb": verb, "group": group, "version": "v1", "resource": resource}
    if token:
        about |= {
            "subresource": "token", "namespace": names.NAMESPACE, "name": names.REMOTE_ACCESS,
        }  # fmt: skip
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{names.NAMESPACE}:{names.REMOTE_ACCESS}",
            "resourceAttributes": about,
        },
    }
    answer = cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)
    return (answer.get("status") or {}).get("allowed") is True


def _gateway(world: World) -> str:
    path = f"/api/v1/namespaces/{names.NAMESPACE}/services/{names.GATEWAY}"
    try:
        service = world.cluster.get(path)
    except NotFound:
        raise Skip from None
    status = (service.get("status") or {}).get("loadBalancer") or {}
    if _spec(service).get("type") == "LoadBalancer" and not status.get("ingress"):
        raise UserFault(f"Service {names.NAMESPACE}/{names.GATEWAY} has no address yet")
    if not any(_ready(pod) for pod in _pods(world, f"app={names.GATEWAY}")):
        raise UserFault(f"no pod of {names.NAMESPACE}/{names.GATEWAY} is ready")
    return ""


def _proxies(world: World) -> str:
    pods = _pods(world) or _skip()
    _fail(f"* pod {_name(pod)} is not ready" for pod in pods if not _ready(pod))
    return ""


def _proxy_versions(world: World) -> str:
    pods = _pods(world) or _skip()
    said = {_name(pod): _notes(pod).get("linkerd.io/proxy-version", "") for pod in pods}
    _fail(
        f"* {name}: {version}, this is {__version__}"
        for name, version in said.items()
        if version != __version__
    )
    return ""


def _pods(world: World, selector: str = "linkerd.io/control-plane-ns") -> list[Document]:
    path = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
    return world.cluster.get(path, labelSelector=selector).get("items") or []


def _ready(pod: Document) -> bool:
    said = _conditions(pod).get("Ready")
    return said is not None and said.get("status") == "True"


def _installed(world: World) -> None:
    try:
        world.cluster.get(f"/api/v1/namespaces/{names.NAMESPACE}")
    except NotFound:
        raise Skip from None


# ------------------------------------------------------------------------------- parts of objects


def _some(world: World) -> list[Document]:
    return world.links or _skip()


def _skip() -> list[Document]:
    raise Skip


def _fail(faults: Any, fault: type[UserFault] = UserFault) -> None:  # noqa: ANN401  # lines
    lines = list(faults)
    if lines:
        more = [f"* and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise fault("\n".join(lines[:SHOWN] + more))


def _listed(found: Any) -> str:  # noqa: ANN401  # names
    return "\n".join(f"    * {each}" for each in found)


def _said(fault: BaseException) -> str:
    return fault.message if isinstance(fault, IsthmusError) else str(fault)


def _meta(document: Document) -> Document:
    return document.get("metadata") or {}


def _name(document: Document) -> str:
    return str(_meta(document).get("name") or "")


def _namespace(document: Document) -> str:
    return str(_meta(document).get("namespace") or "")


def _labels(document: Document) -> Mapping[str, str]:
    return _meta(document).get("labels") or {}


def _notes(document: Document) -> Mapping[str, str]:
    return _meta(document).get("annotations") or {}


def _spec(document: Document) -> Document:
    return document.get("spec") or {}


def _conditions(document: Document) -> Mapping[str, Document]:
    found = (document.get("status") or {}).get("conditions") or []
    return {str(each.get("type")): each for each in found}
