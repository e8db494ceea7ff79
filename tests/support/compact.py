"""Objects in a compact notation, as the documents that an API would hold.

One mapping is one object. Its first key says the kind and, mostly, `namespace/name`; `in: X` puts
it into the linked cluster X. What is left out has a usual value.

    svc     ports: [8080 or {port, name, target, app}], ip or ips, type, opaque, labels,
            annotations, local (internalTrafficPolicy Local), selector
    pod     ip or ips, node, phase, meshed (true, or whose), native, proxy (envoy), sa, owner or
            owners: [Kind, name], labels, annotations, opaque, skip, ports: [{port, name, host,
            init, protocol}], probes: [{port, path}], hostIP, hostNetwork, deleting, inbound, noenv,
            rev
    slice   svc, family, ports: [8080 or {port, name}], labels, annotations,
            eps: [{ip, pod or ew, ready, serving, terminating, zone, hints, host}]
    sp      spec            node    zone            rs, job     owner: [Kind, name]
    server  pods or ews (matchLabels), raw_pods (a whole selector), port, protocol, access
    saz     server (name) or servers (matchLabels), client
    az      for: a Server's name, or [Kind.group, name]; needs: [Kind.group name or namespace/name]
    mtls    ids, or refs: [[Kind, name] or [Kind, name, namespace]]
    nets    networks: [cidr or {cidr, except}]
    limit   for (a Server's name), total, identity, overrides: [[rate, [account, ...]]]
    hr, phr, gr   a route on a Server: for, rules, hosts, created
    ew      ips, ports, id, sni, labels, opaque, ready, owner
    split   service, backends: [[service, weight]]
    route   service or egress (the parent's name), port, section, of (the parent's namespace, if it
            is another one), hosts, backends: [[name, port, weight]], rules: [as written], created
    proute, groute, tlsroute, tcproute: the same of other kinds; proute is policy.linkerd.io's
    egress  policy (Allow), networks: [cidr or {cidr, except}], opaque, annotations, created
    ns      annotations, labels
    link    trust, domain, type, no_label, no_trust: the credentials of a linked cluster
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Document = dict[str, Any]
Compact = Mapping[str, Any]

LONG_AGO = "2024-01-02T03:04:05Z"
OPAQUE = "config.linkerd.io/opaque-ports"
SKIP = "config.linkerd.io/skip-inbound-ports"
CONTROL_PLANE = "linkerd.io/control-plane-ns"
ZONE = "topology.kubernetes.io/zone"

RESOURCES = {
    "ns": "namespaces",
    "svc": "services",
    "pod": "pods",
    "slice": "endpointslices.discovery.k8s.io",
    "sp": "serviceprofiles.linkerd.io",
    "node": "nodes",
    "rs": "replicasets.apps",
    "job": "jobs.batch",
    "server": "servers.policy.linkerd.io",
    "saz": "serverauthorizations.policy.linkerd.io",
    "az": "authorizationpolicies.policy.linkerd.io",
    "mtls": "meshtlsauthentications.policy.linkerd.io",
    "nets": "networkauthentications.policy.linkerd.io",
    "limit": "httplocalratelimitpolicies.policy.linkerd.io",
    "hr": "httproutes.gateway.networking.k8s.io",
    "phr": "httproutes.policy.linkerd.io",
    "gr": "grpcroutes.gateway.networking.k8s.io",
    "ew": "externalworkloads.workload.linkerd.io",
    "split": "trafficsplits.split.smi-spec.io",
    "route": "httproutes.gateway.networking.k8s.io",
    "proute": "httproutes.policy.linkerd.io",
    "groute": "grpcroutes.gateway.networking.k8s.io",
    "tlsroute": "tlsroutes.gateway.networking.k8s.io",
    "tcproute": "tcproutes.gateway.networking.k8s.io",
    "egress": "egressnetworks.policy.linkerd.io",
    "link": "secrets",
}


class Name(NamedTuple):
    """Where an object is: `cluster` is None for the local one, `resource` as in store keys."""

    cluster: str | None
    resource: str
    namespace: str
    name: str


def kind_of(compact: Compact) -> str:
    """The word that says the kind."""
    return next(key for key in compact if key in RESOURCES)


def name_of(compact: Compact, mesh: str = "isthmus") -> Name:
    """Where the object is."""
    kind = kind_of(compact)
    namespace, name = _split(str(compact[kind]))
    if kind == "link":
        namespace, name = mesh, f"cluster-credentials-{name}"
    return Name(compact.get("in"), RESOURCES[kind], namespace, name)


def name_in(text: str) -> Name:
    """`pod shop/cart-a`, `east: pod shop/cart-a`."""
    cluster, _, rest = text.rpartition(": ")
    kind, _, path = rest.partition(" ")
    return name_of({kind: path} | ({"in": cluster} if cluster else {}))


def document(compact: Compact, mesh: str = "isthmus") -> Document:
    """The whole object. `mesh` is the namespace of the control plane."""
    kind = kind_of(compact)
    spread = _SPREAD[kind](compact, mesh)
    place = name_of(compact, mesh)
    metadata = {"name": place.name, "uid": f"{kind}-{place.namespace}-{place.name}"}
    if place.namespace:
        metadata["namespace"] = place.namespace
    own = spread.pop("metadata", {})
    metadata |= {"creationTimestamp": LONG_AGO, **{k: v for k, v in own.items() if v}}
    api_version, name = _KINDS[kind]
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, **spread}


_KINDS = {
    "ns": ("v1", "Namespace"),
    "svc": ("v1", "Service"),
    "pod": ("v1", "Pod"),
    "slice": ("discovery.k8s.io/v1", "EndpointSlice"),
    "sp": ("linkerd.io/v1alpha2", "ServiceProfile"),
    "node": ("v1", "Node"),
    "rs": ("apps/v1", "ReplicaSet"),
    "job": ("batch/v1", "Job"),
    "server": ("policy.linkerd.io/v1beta3", "Server"),
    "saz": ("policy.linkerd.io/v1beta1", "ServerAuthorization"),
    "az": ("policy.linkerd.io/v1alpha1", "AuthorizationPolicy"),
    "mtls": ("policy.linkerd.io/v1alpha1", "MeshTLSAuthentication"),
    "nets": ("policy.linkerd.io/v1alpha1", "NetworkAuthentication"),
    "limit": ("policy.linkerd.io/v1alpha1", "HTTPLocalRateLimitPolicy"),
    "hr": ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    "phr": ("policy.linkerd.io/v1beta3", "HTTPRoute"),
    "gr": ("gateway.networking.k8s.io/v1", "GRPCRoute"),
    "ew": ("workload.linkerd.io/v1beta1", "ExternalWorkload"),
    "split": ("split.smi-spec.io/v1alpha4", "TrafficSplit"),
    "route": ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    "proute": ("policy.linkerd.io/v1beta3", "HTTPRoute"),
    "groute": ("gateway.networking.k8s.io/v1", "GRPCRoute"),
    "tlsroute": ("gateway.networking.k8s.io/v1alpha2", "TLSRoute"),
    "tcproute": ("gateway.networking.k8s.io/v1", "TCPRoute"),
    "egress": ("policy.linkerd.io/v1alpha1", "EgressNetwork"),
    "link": ("v1", "Secret"),
}

_GROUPS = {
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def _split(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    return (namespace, name) if slash else ("", text)


def _owners(compact: Compact) -> list[Document]:
    listed: Sequence[Sequence[str]] = compact.get("owners") or [
        one for one in (compact.get("owner"),) if one
    ]
    return [
        {
            "apiVersion": _GROUPS.get(kind, "example.org/v1"),
            "kind": kind,
            "name": name,
            "uid": f"{kind}-{name}".lower(),
            **({"controller": True} if len(listed) == 1 else {}),
        }
        for kind, name in listed
    ]


def _meta(compact: Compact, **notes: str | None) -> Document:
    annotations = dict(compact.get("annotations", {}))
    annotations |= {key: value for key, value in notes.items() if value is not None}
    return {
        "labels": dict(compact.get("labels", {})),
        "annotations": annotations,
        "ownerReferences": _owners(compact),
    }


def _namespace(compact: Compact, _mesh: str) -> Document:
    return {"metadata": _meta(compact)}


def _service(compact: Compact, _mesh: str) -> Document:
    ports = [one if isinstance(one, Mapping) else {"port": one} for one in compact.get("ports", ())]
    ips = [str(ip) for ip in compact.get("ips", [compact["ip"]] if "ip" in compact else [])]
    spec: Document = {
        "type": compact.get("type", "ClusterIP"),
        "ports": [_service_port(port) for port in ports],
        "internalTrafficPolicy": "Local" if compact.get("local") else "Cluster",
    }
    if spec["type"] == "ExternalName":
        del spec["internalTrafficPolicy"]
        spec["externalName"] = "outside.example.org"
    elif not ports:
        ips = ips or ["None"]  # only a headless Service may have no ports
    if ips:
        spec |= {"clusterIP": ips[0], "clusterIPs": ips}
    if len(ips) > 1:
        spec |= {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}
    if "selector" in compact:
        spec["selector"] = dict(compact["selector"])
    return {"metadata": _meta(compact, **{OPAQUE: compact.get("opaque")}), "spec": spec}


def _service_port(port: Compact) -> Document:
    said = {
        "port": port["port"],
        "protocol": "TCP",
        "targetPort": port.get("target", port["port"]),
        "name": port.get("name"),
        "appProtocol": port.get("app"),
    }
    return {key: value for key, value in said.items() if value is not None}


def _pod(compact: Compact, mesh: str) -> Document:
    notes = {OPAQUE: compact.get("opaque"), SKIP: compact.get("skip")}
    metadata = _meta(compact, **notes, **{"config.isthmus.dev/proxy": compact.get("proxy")})
    meshed = compact.get("meshed")
    if meshed:
        metadata["labels"][CONTROL_PLANE] = mesh if meshed is True else meshed
    if compact.get("deleting"):
        metadata |= {"deletionTimestamp": LONG_AGO, "deletionGracePeriodSeconds": 30}
    ips = [str(ip) for ip in compact.get("ips", [compact["ip"]] if "ip" in compact else [])]
    containers, inits = _containers(compact)
    spec: Document = {
        "serviceAccountName": compact.get("sa"),
        "nodeName": compact.get("node"),
        "hostNetwork": compact.get("hostNetwork"),
        "initContainers": inits,
        "containers": containers,
    }
    status: Document = {
        "phase": compact.get("phase", "Running"),
        "podIP": ips[0] if ips else None,
        "podIPs": [{"ip": ip} for ip in ips],
        "hostIP": compact.get("hostIP"),
        "hostIPs": [{"ip": compact["hostIP"]}] if "hostIP" in compact else [],
    }
    return {
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value},
        "status": {key: value for key, value in status.items() if value},
    }


def _containers(compact: Compact) -> tuple[list[Document], list[Document]]:
    ports = compact.get("ports", ())
    main = _container("main", [port for port in ports if not port.get("init")])
    probes = [{"httpGet": dict(each)} for each in compact.get("probes", ())]
    main |= dict(zip(("livenessProbe", "readinessProbe", "startupProbe"), probes, strict=False))
    containers = [main]
    inits = [_container("setup", some)] if (some := [p for p in ports if p.get("init")]) else []
    if compact.get("meshed"):
        (inits if compact.get("native") else containers).append(_sidecar(compact))
    return containers, inits


def _container(name: str, ports: Sequence[Compact]) -> Document:
    listed = [
        {
            "containerPort": port["port"],
            "protocol": port.get("protocol", "TCP"),
            **({"name": port["name"]} if "name" in port else {}),
            **({"hostPort": port["host"]} if "host" in port else {}),
        }
        for port in ports
    ]
    return {"name": name, "image": f"example.org/{name}:1", **({"ports": listed} if listed else {})}


def _sidecar(compact: Compact) -> Document:
    proxy: Document = {"name": "linkerd-proxy", "image": "example.org/proxy:1"}
    if compact.get("native"):
        proxy["restartPolicy"] = "Always"
    if not compact.get("noenv"):
        listens = {
            "INBOUND": compact.get("inbound", "0.0.0.0:4143"),
            "ADMIN": "0.0.0.0:4191",
            "CONTROL": "0.0.0.0:4190",
        }
        proxy["env"] = [
            {"name": f"LINKERD2_PROXY_{name}_LISTEN_ADDR", "value": value}
            for name, value in listens.items()
        ]
    return proxy


def _slice(compact: Compact, _mesh: str) -> Document:
    metadata = _meta(compact)
    if "svc" in compact:
        metadata["labels"]["kubernetes.io/service-name"] = compact["svc"]
    ports = [one if isinstance(one, Mapping) else {"port": one} for one in compact.get("ports", ())]
    namespace, _ = _split(compact["slice"])
    return {
        "metadata": metadata,
        "addressType": compact.get("family", "IPv4"),
        "ports": [
            {"name": port.get("name", ""), "port": port["port"], "protocol": "TCP"}
            for port in ports
        ],
        "endpoints": [_endpoint(one, namespace) for one in compact.get("eps", ())],
    }


def _endpoint(one: Compact, namespace: str) -> Document:
    found: Document = {"addresses": [str(one["ip"])]}
    conditions = {key: one[key] for key in ("ready", "serving", "terminating") if key in one}
    if conditions:
        found["conditions"] = conditions
    for key, kind in (("pod", "Pod"), ("ew", "ExternalWorkload")):
        if key in one:
            found["targetRef"] = {"kind": kind, "namespace": namespace, "name": one[key]}
    for key, name in (("zone", "zone"), ("host", "hostname")):
        if key in one:
            found[name] = one[key]
    if "hints" in one:
        found["hints"] = {"forZones": [{"name": zone} for zone in one["hints"]]}
    return found


def _profile(compact: Compact, _mesh: str) -> Document:
    return {"metadata": _meta(compact), "spec": compact.get("spec", {})}


def _node(compact: Compact, _mesh: str) -> Document:
    labels = {ZONE: compact["zone"]} if "zone" in compact else {}
    return {"metadata": {"labels": labels}}


def _owned(compact: Compact, _mesh: str) -> Document:
    labels = {"app": str(compact[kind_of(compact)]).rpartition("/")[2]}
    pod: Document = {"containers": [_container("main", ())]}
    if "job" in compact:
        pod["restartPolicy"] = "Never"
    spec: Document = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if "rs" in compact:
        spec |= {"replicas": 0, "selector": {"matchLabels": labels}}
    return {"metadata": _meta(compact), "spec": spec}


def _server(compact: Compact, _mesh: str) -> Document:
    spec: Document = {
        "port": compact.get("port"),
        "proxyProtocol": compact.get("protocol", "unknown"),
    }
    if "access" in compact:
        spec["accessPolicy"] = compact["access"]
    if "pods" in compact:
        spec["podSelector"] = {"matchLabels": dict(compact["pods"])}
    if "raw_pods" in compact:
        spec["podSelector"] = compact["raw_pods"]
    if "ews" in compact:
        spec["externalWorkloadSelector"] = {"matchLabels": dict(compact["ews"])}
    return {"metadata": _dated(compact), "spec": spec}


def _workload(compact: Compact, _mesh: str) -> Document:
    ports = [
        {"protocol": "TCP", **{key: port[key] for key in ("name", "port") if key in port}}
        for port in compact.get("ports", ())
    ]
    ready = "True" if compact.get("ready", False) else "False"
    return {
        "metadata": _meta(compact, **{OPAQUE: compact.get("opaque")}),
        "spec": {
            "meshTLS": {"identity": compact.get("id", ""), "serverName": compact.get("sni", "")},
            "ports": ports,
            "workloadIPs": [{"ip": str(ip)} for ip in compact.get("ips", ())],
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def _split_object(compact: Compact, _mesh: str) -> Document:
    backends = [{"service": name, "weight": weight} for name, weight in compact["backends"]]
    return {
        "metadata": _meta(compact),
        "spec": {"service": compact["service"], "backends": backends},
    }


_PARENT = {"port": "port", "of": "namespace", "section": "sectionName"}
_EVERY = {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}


def _route(compact: Compact, _mesh: str) -> Document:
    group, kind, name = "", "Service", compact.get("service")
    if name is None:
        group, kind, name = "policy.linkerd.io", "EgressNetwork", compact["egress"]
    parent: Document = {"group": group, "kind": kind, "name": name}
    parent |= {name: compact[key] for key, name in _PARENT.items() if key in compact}
    spec: Document = {"parentRefs": [parent], "rules": compact.get("rules") or [_rule(compact)]}
    if "hosts" in compact:
        spec["hostnames"] = list(compact["hosts"])
    return {"metadata": _dated(compact), "spec": spec}


def _rule(compact: Compact) -> Document:
    keys = ("name", "port", "weight")
    backends = [dict(zip(keys, each, strict=False)) for each in compact.get("backends", ())]
    every = _EVERY if kind_of(compact) in ("route", "proute") else {}
    return {**every, **({"backendRefs": backends} if backends else {})}


def _egress(compact: Compact, _mesh: str) -> Document:
    spec: Document = {"trafficPolicy": compact.get("policy", "Allow")}
    if "networks" in compact:
        networks = compact["networks"]
        spec["networks"] = [{"cidr": one} if isinstance(one, str) else one for one in networks]
    dated = {"creationTimestamp": compact.get("created")}
    return {"metadata": _meta(compact, **{OPAQUE: compact.get("opaque")}) | dated, "spec": spec}


def _link(compact: Compact, _mesh: str) -> Document:
    prefix = "multicluster.linkerd.io"
    labels = {} if compact.get("no_label") else {f"{prefix}/cluster-name": compact["link"]}
    annotations = {f"{prefix}/cluster-domain": compact.get("domain", "cluster.local")}
    if not compact.get("no_trust"):
        annotations[f"{prefix}/trust-domain"] = compact.get("trust", "cluster.local")
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "type": compact.get("type", "mirror.linkerd.io/remote-kubeconfig"),
        "data": {"kubeconfig": base64.b64encode(b"apiVersion: v1\nkind: Config\n").decode()},
    }


POLICY = "policy.linkerd.io"
_OF_GROUP = {
    "Server": POLICY,
    "MeshTLSAuthentication": POLICY,
    "NetworkAuthentication": POLICY,
    "GRPCRoute": "gateway.networking.k8s.io",
}


def _kind_ref(text: str) -> Document:
    """`Server`, `HTTPRoute.policy.linkerd.io`; most kinds are of one group only."""
    kind, _, group = text.partition(".")
    return {"group": group or _OF_GROUP.get(kind, ""), "kind": kind}


def _server_authorization(compact: Compact, _mesh: str) -> Document:
    choice = (
        {"name": compact["server"]}
        if "server" in compact
        else {"selector": {"matchLabels": dict(compact["servers"])}}
    )
    return {"metadata": _meta(compact), "spec": {"server": choice, "client": compact["client"]}}


def _authorization_policy(compact: Compact, _mesh: str) -> Document:
    on = compact["for"]
    kind, name = ("Server", on) if isinstance(on, str) else on
    return {
        "metadata": _meta(compact),
        "spec": {
            "targetRef": {**_kind_ref(kind), "name": name},
            "requiredAuthenticationRefs": [_needed(each) for each in compact.get("needs", ())],
        },
    }


def _needed(text: str) -> Document:
    kind, _, path = text.partition(" ")
    namespace, name = _split(path)
    return {**_kind_ref(kind), "name": name, **({"namespace": namespace} if namespace else {})}


def _mesh_tls(compact: Compact, _mesh: str) -> Document:
    if "ids" in compact:
        return {"metadata": _meta(compact), "spec": {"identities": list(compact["ids"])}}
    refs = [
        {"kind": kind, "name": name, **({"namespace": more[0]} if more else {})}
        for kind, name, *more in compact["refs"]
    ]
    return {"metadata": _meta(compact), "spec": {"identityRefs": refs}}


def _networks(compact: Compact, _mesh: str) -> Document:
    listed = [
        dict(one) if isinstance(one, Mapping) else {"cidr": one} for one in compact["networks"]
    ]
    return {"metadata": _meta(compact), "spec": {"networks": listed}}


def _limit(compact: Compact, _mesh: str) -> Document:
    spec: Document = {"targetRef": {**_kind_ref("Server"), "name": compact["for"]}}
    for name in ("total", "identity"):
        if name in compact:
            spec[name] = {"requestsPerSecond": compact[name]}
    spec["overrides"] = [
        {
            "requestsPerSecond": rate,
            "clientRefs": [_needed(f"ServiceAccount {account}") for account in accounts],
        }
        for rate, accounts in compact.get("overrides", ())
    ]
    return {"metadata": _dated(compact), "spec": spec}


def _dated(compact: Compact) -> Document:
    return _meta(compact) | {"creationTimestamp": compact.get("created")}


def _server_route(compact: Compact, _mesh: str) -> Document:
    parent = {"group": POLICY, "kind": "Server", "name": compact["for"]}
    parent |= compact.get("parent", {})
    spec: Document = {"parentRefs": [parent]}
    for key, name in (("rules", "rules"), ("hosts", "hostnames")):
        if key in compact:
            spec[name] = compact[key]
    return {"metadata": _dated(compact), "spec": spec}


_SPREAD: Mapping[str, Callable[[Compact, str], Document]] = {
    "ns": _namespace,
    "svc": _service,
    "pod": _pod,
    "slice": _slice,
    "sp": _profile,
    "node": _node,
    "rs": _owned,
    "job": _owned,
    "server": _server,
    "saz": _server_authorization,
    "az": _authorization_policy,
    "mtls": _mesh_tls,
    "nets": _networks,
    "limit": _limit,
    "hr": _server_route,
    "phr": _server_route,
    "gr": _server_route,
    "ew": _workload,
    "split": _split_object,
    "route": _route,
    "proute": _route,
    "groute": _route,
    "tlsroute": _route,
    "tcproute": _route,
    "egress": _egress,
    "link": _link,
}
