"""Workloads as people name them (`deploy/face`, `sts web`, `ns/shop`), and their pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from isthmus.cli.cluster import Cluster
from isthmus.errors import UserFault

Json = Mapping[str, Any]


class Kind(NamedTuple):
    """A kind of workload: its plural, where its objects are, and its short names."""

    plural: str
    group: str
    aliases: tuple[str, ...]

    def path(self, namespace: str) -> str:
        """Of the objects in a namespace."""
        if self.plural == "namespaces":
            return f"{self.group}/namespaces"
        return f"{self.group}/namespaces/{namespace}/{self.plural}"


KINDS: Final = (
    Kind("pods", "/api/v1", ("po", "pod")),
    Kind("namespaces", "/api/v1", ("ns", "namespace")),
    Kind("replicationcontrollers", "/api/v1", ("rc", "replicationcontroller")),
    Kind("deployments", "/apis/apps/v1", ("deploy", "deployment")),
    Kind("replicasets", "/apis/apps/v1", ("rs", "replicaset")),
    Kind("statefulsets", "/apis/apps/v1", ("sts", "statefulset")),
    Kind("daemonsets", "/apis/apps/v1", ("ds", "daemonset")),
    Kind("jobs", "/apis/batch/v1", ("job",)),
    Kind("cronjobs", "/apis/batch/v1", ("cj", "cronjob")),
)
PODS: Final = KINDS[0]
_BETWEEN: Final = {"deployments": KINDS[4], "cronjobs": KINDS[7]}
"""Whose pods are not its own, but those of what it owns."""

_ENDED: Final = ("Succeeded", "Failed")


class Workload(NamedTuple):
    """One that was asked for. `name` is "" for all of the kind."""

    kind: Kind
    name: str = ""


class Found(NamedTuple):
    """A workload that is there, and its pods by name."""

    name: str
    pods: tuple[Json, ...]


def read(words: Sequence[str]) -> list[Workload]:
    """`TYPE/NAME...`, `TYPE NAME...` or `TYPE`.

    Raises:
        UserFault: they are no such thing.
    """
    if not words:
        raise UserFault("name a workload, such as deploy/web")
    if any("/" in each for each in words):
        return [_slashed(each) for each in words]
    kind, names = _kind(words[0]), words[1:]
    return [Workload(kind, name) for name in names] or [Workload(kind)]


def _slashed(word: str) -> Workload:
    kind, slash, name = word.partition("/")
    if not slash or not name or "/" in name:
        raise UserFault(f"{word!r} is no workload; write TYPE/NAME, such as deploy/web")
    return Workload(_kind(kind), name)


def _kind(word: str) -> Kind:
    for kind in KINDS:
        if word.lower() in (kind.plural, *kind.aliases):
            return kind
    known = ", ".join(sorted(each.plural for each in KINDS))
    raise UserFault(f"there is no kind of workload {word!r}; there are: {known}")


# ----------------------------------------------------------------------------- their pods


def find(cluster: Cluster, namespace: str, wanted: Sequence[Workload]) -> list[Found]:
    """Those that are there, in the order asked for, all of a kind by name.

    Raises:
        NotFound: one that is named is not there.
    """
    return [found for each in wanted for found in _found(cluster, namespace, each)]


def pods(cluster: Cluster, namespace: str, wanted: Sequence[Workload]) -> list[Json]:
    """The pods of all of them, each once, by name."""
    some = (pod for each in find(cluster, namespace, wanted) for pod in each.pods)
    once = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in some}
    return [once[key] for key in sorted(once)]


def _found(cluster: Cluster, namespace: str, wanted: Workload) -> list[Found]:
    objects = _objects(cluster, namespace, wanted)
    match wanted.kind.plural:
        case "pods":
            return [Found(_name(pod), (pod,)) for pod in objects if runs(pod)]
        case "namespaces":
            return [Found(_name(one), _pods_in(cluster, _name(one))) for one in objects]
    running = _pods_in(cluster, namespace)
    between = _BETWEEN.get(wanted.kind.plural)
    more = _list(cluster, between.path(namespace)) if between is not None else []
    return [Found(_name(one), tuple(_owned(running, one, more))) for one in objects]


def _objects(cluster: Cluster, namespace: str, wanted: Workload) -> list[Json]:
    path = wanted.kind.path(namespace)
    if wanted.name:
        return [cluster.get(f"{path}/{wanted.name}")]
    return _list(cluster, path)


def _list(cluster: Cluster, path: str) -> list[Json]:
    return sorted(cluster.get(path).get("items") or [], key=_name)


def _pods_in(cluster: Cluster, namespace: str) -> tuple[Json, ...]:
    return tuple(pod for pod in _list(cluster, PODS.path(namespace)) if runs(pod))


def _owned(running: Sequence[Json], owner: Json, between: Sequence[Json]) -> list[Json]:
    own = {str(owner["metadata"].get("uid"))}
    own |= {str(each["metadata"].get("uid")) for each in between if _owners(each) & own}
    return [pod for pod in running if _owners(pod) & own]


def _owners(one: Json) -> set[str]:
    return {str(each.get("uid")) for each in one["metadata"].get("ownerReferences") or ()}


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


def runs(pod: Json) -> bool:
    """Whether it has not ended."""
    return (pod.get("status") or {}).get("phase") not in _ENDED
