"""The objects of `multicluster link` and `link-gen`: how another cluster reaches this one.

Made against the target, applied to the cluster that shall use its services.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from isthmus import __version__
from isthmus.cli.cluster import Cluster
from isthmus.cli.kubeconfig import Access
from isthmus.cli.multicluster import names
from isthmus.cli.multicluster.documents import Document, named
from isthmus.cli.multicluster.facts import Facts
from isthmus.errors import NotFound, UserFault

TOKEN_SECONDS: Final = 7 * 86_400
"""Life of the first token. The cluster that uses it renews it at two thirds of that."""


class Wanted(NamedTuple):
    """What the flags say. `gateway` is None for a link without one."""

    cluster: str
    namespace: str
    account: str
    api_server: str
    selector: str
    remote_discovery: str
    federated: str
    excluded_annotations: tuple[str, ...]
    excluded_labels: tuple[str, ...]
    gateway: GatewayAt | None


class GatewayAt(NamedTuple):
    """Which gateway; `addresses` and `port` replace what its Service says."""

    name: str
    namespace: str
    addresses: str
    port: int


def objects(cluster: Cluster, access: Access, facts: Facts, wanted: Wanted) -> Iterator[Document]:
    """Two Secrets with the same credentials, and the Link.

    Raises:
        UserFault: the target lacks something; says what.
    """
    link = _link(cluster, facts, wanted)
    token = _token(cluster, wanted)
    kubeconfig = base64.b64encode(_kubeconfig(access, wanted, token)).decode()
    name, data = f"{names.CREDENTIALS}{wanted.cluster}", {"kubeconfig": kubeconfig}
    yield named("v1", "Secret", name, wanted.namespace, type=names.CREDENTIALS_TYPE, data=data)
    yield named(
        "v1", "Secret", name, facts.namespace,
        labels={names.CLUSTER_NAME: wanted.cluster},
        annotations={
            names.TRUST_DOMAIN: facts.trust_domain,
            names.CLUSTER_DOMAIN: facts.domain,
        },
        type=names.CREDENTIALS_TYPE, data=data,
    )  # fmt: skip
    yield link


# ------------------------------------------------------------------------------------ credentials


def _token(cluster: Cluster, wanted: Wanted) -> str:
    """A token of the account: one that Linkerd keeps in a Secret, else a fresh one that ends."""
    where = f"/api/v1/namespaces/{wanted.namespace}"
    listed = cluster.get(
        f"{where}/secrets", fieldSelector="type=kubernetes.io/service-account-token"
    )
    for secret in listed.get("items") or []:
        notes = (secret.get("metadata") or {}).get("annotations") or {}
        kept = (secret.get("data") or {}).get("token")
        if notes.get("kubernetes.io/service-account.name") == wanted.account and kept:
            return base64.b64decode(str(kept)).decode()
    return _fresh(cluster, f"{where}/serviceaccounts/{wanted.account}/token", wanted)


def _fresh(cluster: Cluster, path: str, wanted: Wanted) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    try:
        answer = cluster.create(path, request)
    except NotFound as fault:
        raise UserFault(
            f"could not find service account {wanted.account} in namespace {wanted.namespace};"
            " apply the output of `multicluster install` to this cluster first"
        ) from fault
    return str((answer.get("status") or {}).get("token") or "")


def _kubeconfig(access: Access, wanted: Wanted, token: str) -> bytes:
    """The context that was used, with the account as its user."""
    import yaml

    server: dict[str, Any] = {"server": wanted.api_server or access.server}
    if access.authority:
        authority = base64.b64encode(access.authority.encode()).decode()
        server["certificate-authority-data"] = authority
    if access.server_name:
        server["tls-server-name"] = access.server_name
    if access.insecure:
        server["insecure-skip-tls-verify"] = True
    name, user = access.context, wanted.account
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return str(yaml.safe_dump(document, sort_keys=False, width=2**20)).encode()


# ------------------------------------------------------------------------------------------- link


def _link(cluster: Cluster, facts: Facts, wanted: Wanted) -> Document:
    spec: Document = {
        "targetClusterName": wanted.cluster,
        "targetClusterDomain": facts.domain,
        "targetClusterLinkerdNamespace": facts.namespace,
        "clusterCredentialsSecret": f"{names.CREDENTIALS}{wanted.cluster}",
    }
    if wanted.gateway is not None:
        spec |= _gateway(cluster, wanted.gateway)
        spec["selector"] = selector(wanted.selector)
    spec["remoteDiscoverySelector"] = selector(wanted.remote_discovery)
    spec["federatedServiceSelector"] = selector(wanted.federated)
    if wanted.excluded_annotations:
        spec["excludedAnnotations"] = list(wanted.excluded_annotations)
    if wanted.excluded_labels:
        spec["excludedLabels"] = list(wanted.excluded_labels)
    notes = {names.CREATED_BY: f"isthmus/cli {__version__}"}
    if facts.name:
        notes[names.OWN_NAME] = facts.name
    return named(
        names.LINK_VERSION, "Link", wanted.cluster, wanted.namespace, annotations=notes, spec=spec
    )


def _gateway(cluster: Cluster, at: GatewayAt) -> Document:
    about = f"{at.name}.{at.namespace}"
    try:
        service = cluster.get(f"/api/v1/namespaces/{at.namespace}/services/{at.name}")
    except NotFound as fault:
        raise UserFault(
            f"there is no gateway {about}: apply the output of `multicluster install`, or use"
            " --gateway=false"
        ) from fault
    notes = (service.get("metadata") or {}).get("annotations") or {}
    identity = notes.get(names.GATEWAY_IDENTITY)
    if not identity:
        raise UserFault(f"Gateway {about} has no {names.GATEWAY_IDENTITY} annotation")
    return {
        "gatewayAddress": at.addresses or _addresses(service, about),
        "gatewayPort": str(at.port or _port(service, names.GATEWAY_PORT, about)),
        "gatewayIdentity": identity,
        "probeSpec": _probe(service, notes, about),
    }


def _addresses(service: Document, about: str) -> str:
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    found = [str(each.get("ip") or each.get("hostname") or "") for each in ingress]
    if not any(found):
        raise UserFault(f"Gateway {about} has no ingress addresses")
    return ",".join(filter(None, found))


def _probe(service: Document, notes: Document, about: str) -> Document:
    path, period = notes.get(names.PROBE_PATH), str(notes.get(names.PROBE_PERIOD) or "")
    if not path:
        raise UserFault(f"Gateway {about}: probe path is empty")
    if not (period.isascii() and period.isdigit() and int(period)):
        raise UserFault(
            f"Gateway {about}: annotation {names.PROBE_PERIOD} {period!r} is no number of seconds"
        )
    port = _port(service, names.PROBE_PORT, about, node=False)
    return {"path": str(path), "port": str(port), "period": f"{period}s"}


def _port(service: Document, name: str, about: str, *, node: bool = True) -> int:
    spec = service.get("spec") or {}
    for each in spec.get("ports") or []:
        if each.get("name") == name:
            by_node = node and spec.get("type") == "NodePort"
            return int(each.get("nodePort" if by_node else "port") or 0)
    raise UserFault(f"Gateway {about} has no port named {name}")


# -------------------------------------------------------------------------------------- selectors

_SET: Final = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^()]*)\)$")
_OPERATORS: Final = {"in": "In", "notin": "NotIn"}


def selector(text: str) -> Document:
    """A LabelSelector from its text form, such as `a=b,c!=d,e in (f,g),h,!i`.

    Raises:
        UserFault: a part of it is none.
    """
    labels: dict[str, str] = {}
    expressions: list[Document] = []
    for part in _parts(text):
        key, value = _equal(part)
        if value is not None:
            labels[key] = value
        else:
            expressions.append(_expression(part, text))
    made: Document = {"matchLabels": labels} if labels else {}
    return made | ({"matchExpressions": expressions} if expressions else {})


def _parts(text: str) -> Sequence[str]:
    """Split at the commas that no parentheses hold."""
    return [part for each in re.split(r",(?![^(]*\))", text) if (part := each.strip())]


def _equal(part: str) -> tuple[str, str | None]:
    found = re.fullmatch(r"([^\s!=]+)\s*==?\s*([^\s!=]*)", part)
    return (found[1], found[2]) if found else ("", None)


def _expression(part: str, text: str) -> Document:
    if found := _SET.match(part):
        values = [each.strip() for each in found["values"].split(",")]
        return {"key": found["key"], "operator": _OPERATORS[found["operator"]], "values": values}
    if found := re.fullmatch(r"([^\s!=]+)\s*!=\s*([^\s!=]*)", part):
        return {"key": found[1], "operator": "NotIn", "values": [found[2]]}
    if found := re.fullmatch(r"(!?)\s*([^\s!=()]+)", part):
        return {"key": found[2], "operator": "DoesNotExist" if found[1] else "Exists"}
    raise UserFault(f"the selector {text!r} is not understood at {part!r}")
