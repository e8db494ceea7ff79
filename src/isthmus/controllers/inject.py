"""Injection: a pod that asks for a proxy gets the shape of one that has it (decision 21).

Whether, and in which words it is refused, follows Linkerd's injector: the annotation
`linkerd.io/inject` on the pod wins over that on its namespace. What is written looks like Linkerd's
injected pods, so that people and programs that know those find what they look for. The proxy itself
is run by the host's agent, which plays the container `linkerd-proxy`. Default opaque ports are
never written onto pods (decision 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus import __version__
from isthmus.ca import AUDIENCE
from isthmus.model.document import get, items, mapping, text, texts, truth
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.model.names import label_value_problems
from isthmus.store.contract import Store
from isthmus.store.objects import Proposed, Verdict

INJECT: Final = "linkerd.io/inject"
CONFIG: Final = ("config.linkerd.io/", "config.alpha.linkerd.io/", "config.beta.linkerd.io/")
OURS: Final = "config.isthmus.dev/"
PROXY: Final = f"{OURS}proxy"
PROXIES: Final = ("envoy", "linkerd")
CONTAINER: Final = "linkerd-proxy"
CONTROL_PLANE: Final = "linkerd.io/control-plane-ns"

UID: Final = 2102
TOKEN_SECONDS: Final = 86_400
TOKEN_FOLDER: Final = "/var/run/secrets/tokens"  # noqa: S105  # a path
IDENTITY_FOLDER: Final = "/var/run/linkerd/identity/end-entity"

_ON: Final = ("enabled", "ingress")
_SIDECARS: Final = frozenset(
    {"linkerd-proxy", "linkerd-init", "istio-proxy", "istio-init", "envoy-sidecar"}
)
_OWNERS: Final = frozenset(
    {
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "ReplicaSet",
        "ReplicationController",
        "Job",
        "CronJob",
    }
)
_KUBERNETES: Final = frozenset({"kube-system"})


class Decision(NamedTuple):
    """Whether a pod is injected; if somebody asked for it and it is not, why."""

    inject: bool
    why: str = ""


class Injector:
    """The admission. `namespace` is the control plane's."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    async def admit(self, proposed: Proposed) -> Verdict:
        """The pod with its proxy, where it is to have one. A warning where it cannot have it."""
        pod = proposed.new
        if proposed.kind.resource != "pods" or proposed.old is not None or pod is None:
            return Verdict(None)
        if proposed.subresource or proposed.namespace in _KUBERNETES:
            return Verdict(None)
        around = await self._annotations(proposed.namespace)
        decided = decide(pod, around)
        if not decided.inject:
            return Verdict(None, warnings=(decided.why,) if decided.why else ())
        owner = await self._owner(proposed.namespace, pod)
        return Verdict(injected(pod, proposed.namespace, around, self._namespace, owner))

    async def _annotations(self, namespace: str) -> dict[str, str]:
        found = await self._read("namespaces", "", namespace)
        return texts(found, "metadata.annotations")

    async def _owner(self, namespace: str, pod: Document) -> tuple[str, str] | None:
        """What people call the workload: a ReplicaSet's Deployment, a Job's CronJob."""
        direct = _controller(pod)
        above = {"ReplicaSet": "replicasets.apps", "Job": "jobs.batch"}
        if direct is None or direct[0] not in above:
            return direct
        held = await self._read(above[direct[0]], namespace, direct[1])
        return _controller(held) or direct

    async def _read(self, resource: str, namespace: str, name: str) -> Document:
        record = await self._store.get(Key(resource, namespace, name))
        found: Any = msgspec.json.decode(record.value) if record is not None else {}
        return found if isinstance(found, dict) else {}


def decide(pod: Document, around: Mapping[str, str]) -> Decision:
    """Whether a pod is injected, `around` being its namespace's annotations."""
    own, outer = _wish(texts(pod, "metadata.annotations")), _wish(around)
    for said, where in ((outer, "ns"), (own, "workload")):
        if said not in ("", "disabled", *_ON):
            return Decision(False, f"not injected: invalid_inject_annotation_at_{where}: {said!r}")
    if (own or outer) not in _ON:
        return Decision(False)
    if truth(pod, "spec.hostNetwork"):
        return Decision(False, "not injected: hostNetwork is enabled")
    containers = items(pod, "spec.containers") + items(pod, "spec.initContainers")
    if any(text(each, "name") in _SIDECARS for each in containers):
        return Decision(False, "not injected: pod has a sidecar injected already")
    return Decision(True)


def injected(
    pod: Document,
    namespace: str,
    around: Mapping[str, str],
    control_plane: str,
    owner: tuple[str, str] | None,
) -> Document:
    """The pod as it is with a proxy; `pod` is not changed."""
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    annotations = _inherited(around) | texts(pod, "metadata.annotations")
    proxy = annotations.get(PROXY, "")
    annotations |= {
        PROXY: proxy if proxy in PROXIES else PROXIES[0],
        "linkerd.io/created-by": f"isthmus/proxy-injector {__version__}",
        "linkerd.io/proxy-version": __version__,
    }
    labels = texts(pod, "metadata.labels") | {
        CONTROL_PLANE: control_plane,
        "linkerd.io/workload-ns": namespace,
        **_owner_label(owner),
    }
    volumes = get(pod, "spec.volumes")
    containers = get(pod, "spec.containers")
    return {
        **pod,
        "metadata": {**metadata, "annotations": annotations, "labels": labels},
        "spec": {
            **spec,
            "containers": [*(containers if isinstance(containers, list) else []), _container()],
            "volumes": [*(volumes if isinstance(volumes, list) else []), *_volumes()],
        },
    }


def _wish(annotations: Mapping[str, str]) -> str:
    return annotations.get(INJECT, "")


def _inherited(around: Mapping[str, str]) -> dict[str, str]:
    """What a namespace says for all its pods."""
    return {
        key: value
        for key, value in around.items()
        if key == INJECT or key.startswith((*CONFIG, OURS))
    }


def _owner_label(owner: tuple[str, str] | None) -> dict[str, str]:
    if owner is None or owner[0] not in _OWNERS or label_value_problems(owner[1]):
        return {}
    return {f"linkerd.io/proxy-{owner[0].lower()}": owner[1]}


def _controller(document: Document) -> tuple[str, str] | None:
    for each in items(document, "metadata.ownerReferences"):
        if truth(each, "controller"):
            return text(each, "kind"), text(each, "name")
    return None


def _container() -> Document:
    listens = {"ADMIN": 4191, "CONTROL": 4190, "INBOUND": 4143}
    env = [
        {"name": f"LINKERD2_PROXY_{name}_LISTEN_ADDR", "value": f"0.0.0.0:{port}"}
        for name, port in listens.items()
    ]
    return {
        "name": CONTAINER,
        "image": f"isthmus/proxy:{__version__}",
        "imagePullPolicy": "IfNotPresent",
        "env": env,
        "ports": [
            {"name": "linkerd-proxy", "containerPort": 4143},
            {"name": "linkerd-admin", "containerPort": 4191},
        ],
        "livenessProbe": {"httpGet": {"path": "/live", "port": 4191}, "initialDelaySeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 4191}, "initialDelaySeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": UID,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "linkerd-identity-end-entity", "mountPath": IDENTITY_FOLDER},
            {"name": "linkerd-identity-token", "mountPath": TOKEN_FOLDER},
        ],
    }


def _volumes() -> list[Document]:
    token = {
        "path": "linkerd-identity-token",
        "expirationSeconds": TOKEN_SECONDS,
        "audience": AUDIENCE,
    }
    return [
        {"name": "linkerd-identity-end-entity", "emptyDir": {"medium": "Memory"}},
        {
            "name": "linkerd-identity-token",
            "projected": {"sources": [{"serviceAccountToken": token}]},
        },
    ]
