"""Two sidecars against the same two Envoys with a minimal configuration written by hand.

Both pairs run in one lab, each Envoy in its pod, with mTLS between them, the same load and the same
backend. Slices alternate; ratios are formed within a round and their median is told, for the
machine's speed drifts. CPU is what the scheduler charged the two Envoys per request. The sidecars
redirect, look at what is spoken, ask three policies who may, and count everything that metrics are
made of; the reference has fixed ports and does nothing of that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

from bench.table import Figure
from isthmus import ca
from isthmus.agent.binary import find
from isthmus.aio import SystemClock

ROUNDS: Final = 11
SLICE: Final = 1.5
"""Seconds of load."""
TRIES: Final = 10
"""Slices that may go wrong at first."""
LOOPBACK: Final = "127.57.0.0/16"
LOAD: Final = Path(__file__).with_name("_load.py")
BODY: Final = "x" * 1_000
BACKEND, IN, OUT = 8080, 9443, 9001
ANY: Final = "0.0.0.0"  # noqa: S104  # inside a pod
AIMS: Final = ("≥ 0.88", "≤ 1.15")

Json = Any


class Slice(NamedTuple):
    """What one slice of load gave."""

    rate: float
    cpu: float
    """Microseconds per request, of both Envoys."""
    middle: float
    late: float


def figures() -> Iterator[Figure]:
    """What `make bench` prints of the data plane."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        topology = _written(place)
        state = place / "state"
        lab = subprocess.Popen(
            [sys.executable, "-m", "isthmus", "lab", "up", str(topology),
             "--state-dir", str(state), "--loopback", LOOPBACK],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert lab.stdout is not None
            if not lab.stdout.readline():
                raise RuntimeError("the lab did not start")
            yield from _compared(state)
        finally:
            lab.terminate()
            lab.wait()


def _compared(state: Path) -> Iterator[Figure]:
    pods = {name: _ready(state, name) for name in ("load", "serve", "bare-load", "bare-serve")}
    ours = _envoys(state, pods["load"], pods["serve"], "bootstrap.yaml")
    theirs = _envoys(state, pods["bare-load"], pods["bare-serve"], "reference.json")
    sides = {
        "ours": ("load", "serve", 80, ours),
        "theirs": ("bare-load", "127.0.0.1", OUT, theirs),
    }
    order = Random(1)
    for kind, name in (("h1", "HTTP/1.1, 32 connections"), ("h2", "HTTP/2, 8 x 8")):
        rounds: list[dict[str, Slice]] = []
        for number in range(ROUNDS + 1):
            names = list(sides)
            order.shuffle(names)
            ask = _slice if number else _settled  # the first warms up
            done = {side: ask(state, kind, *sides[side]) for side in names}
            if number:
                rounds.append(done)
        yield from _told(name, rounds)


def _told(name: str, rounds: Sequence[Mapping[str, Slice]]) -> Iterator[Figure]:
    def ratio(what: str) -> list[float]:
        return [getattr(one["ours"], what) / getattr(one["theirs"], what) for one in rounds]

    for what, text, aim in (("rate", "throughput", AIMS[0]), ("cpu", "CPU per request", AIMS[1])):
        found = ratio(what)
        low, _, high = quantiles(found, n=4)
        spread = f"{low:.2f}-{high:.2f}"
        yield Figure(f"{name}: {text} to the minimum ({spread})", median(found), "x", aim)
    for side, word in (("ours", "sidecars"), ("theirs", "minimum")):
        rate, cpu, middle, late = (
            median(column) for column in zip(*(one[side] for one in rounds), strict=True)
        )
        yield Figure(f"{name}: {word}, throughput", rate, "req/s")
        yield Figure(f"{name}: {word}, CPU of both", cpu, "us/req")
        yield Figure(f"{name}: {word}, median", middle, "us")
        yield Figure(f"{name}: {word}, p99 (never an aim)", late, "us")


def _slice(state: Path, kind: str, pod: str, host: str, port: int, envoys: Sequence[int]) -> Slice:
    before = _seconds(envoys)
    out = _kubectl(
        state, "-n", "bench", "exec", f"deploy/{pod}", "-c", "main", "--",
        sys.executable, str(LOAD), kind, host, str(port), str(SLICE),
    )  # fmt: skip
    used = _seconds(envoys) - before
    answered, wrong, took, middle, late = map(float, out.split())
    if wrong or not answered:
        raise RuntimeError(f"{pod}: {wrong:g} of {answered:g} requests went wrong")
    return Slice(answered / took, used / answered * 1e6, middle, late)


def _settled(
    state: Path, kind: str, pod: str, host: str, port: int, envoys: Sequence[int]
) -> Slice:
    """A slice in which nothing went wrong: names may not be known yet at first."""
    for _ in range(TRIES):
        try:
            return _slice(state, kind, pod, host, port, envoys)
        except RuntimeError as fault:
            print(f"  once more: {fault}", file=sys.stderr)
    return _slice(state, kind, pod, host, port, envoys)


# ------------------------------------------------------------------------------- processes


def _seconds(pids: Sequence[int]) -> float:
    """CPU that the scheduler charged, over all threads."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _envoys(state: Path, client: str, server: str, config: str) -> list[int]:
    """The Envoys in the networks of two pods of the lab, by what they were started with."""
    space = _space(state)
    found = [
        int(entry.name)
        for entry, words in _processes()
        if any(word.endswith(config) for word in words)
        and (entry / "ns" / "pid").readlink() == space
        and _addresses(entry) & {client, server}
    ]
    if len(found) != 2:
        raise RuntimeError(f"{len(found)} Envoys run with {config}")
    return found


def _space(state: Path) -> Path:
    """The lab's process namespace: machines may have several labs with the same addresses."""
    own = Path("/proc/self/ns/pid").readlink()
    for entry, words in _processes():
        if any(str(state) in word for word in words):
            space = (entry / "ns" / "pid").readlink()
            if space != own:
                return space
    raise RuntimeError("the lab does not run")


def _processes() -> Iterator[tuple[Path, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:  # it has just ended
                continue
            yield entry, words


def _addresses(entry: Path) -> set[str]:
    """The addresses of a process's network that are its own."""
    lines = (entry / "net" / "fib_trie").read_text().splitlines()
    return {before.split()[-1] for before, line in pairwise(lines) if "/32 host" in line}


def _kubectl(state: Path, *words: str) -> str:
    kubectl = Path(sys.executable).with_name("kubectl")
    done = subprocess.run(
        [str(kubectl), "--kubeconfig", str(state / "kubeconfig"), *words],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout


def _ready(state: Path, name: str) -> str:
    """The address of the pod of a deployment, once it is ready."""
    _kubectl(state, "-n", "bench", "rollout", "status", f"deploy/{name}", "--timeout=120s")
    where = "jsonpath={.items[0].status.podIP}"
    return _kubectl(state, "-n", "bench", "get", "pods", "-l", f"app={name}", "-o", where)


# -------------------------------------------------------------------------------- what runs


def _written(folder: Path) -> Path:
    """The topology, and everything that it names."""
    envoy = find()
    if envoy is None:
        raise RuntimeError("there is no Envoy on this machine")
    keys = _keys(folder)
    configs = {
        "backend": _backend(),
        "reference-out": _reference_out(keys["client"]),
        "reference-in": _reference_in(keys["server"]),
    }
    for name, config in configs.items():
        (folder / name).mkdir()
        file = "reference.json" if name.startswith("reference") else "backend.json"
        (folder / name / file).write_text(json.dumps(config))
    runs = [str(envoy), "--concurrency", "1", "--disable-hot-restart", "-l", "error", "-c"]
    backend = _container("main", *runs, str(folder / "backend" / "backend.json"))
    # Bare pods have no name for the other one: a Service's is resolved when Envoy starts.
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}},
        _deployment("load", "enabled", _container("main", "sleep", "100000")),
        _deployment("serve", "enabled", backend),
        _deployment("bare-load", "disabled", _container("main", "sleep", "100000"),
                    _container("proxy", *runs, str(folder / "reference-out" / "reference.json"))),
        _deployment("bare-serve", "disabled", backend,
                    _container("proxy", *runs, str(folder / "reference-in" / "reference.json"))),
        _service("serve", {"port": 80, "targetPort": BACKEND}),
        _service("bare-serve", {"port": IN, "targetPort": IN}, clusterIP="None"),
        *_policies(),
    ]  # fmt: skip
    (folder / "bench.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
    cluster = {
        "name": "bench", "podCIDR": "10.55.1.0/24", "serviceCIDR": "10.56.1.0/24",
        "network": "bench", "server": {"store": "memory:"}, "manifests": ["bench.yaml"],
    }  # fmt: skip
    path = folder / "topology.yaml"
    networks = [{"name": "bench", "cidr": "172.17.1.0/24"}]
    path.write_text(json.dumps({"clusters": [cluster], "networks": networks}))
    return path


def _keys(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Of the client and of the server: files of key, chain and bundle."""
    now = SystemClock().utc()
    made = ca.make("bench", now=now)
    leaves = {"client": made.issue_client("bench", [], now=now),
              "server": made.issue_server(["reference.bench"], now=now)}  # fmt: skip
    found: dict[str, dict[str, str]] = {}
    for side, leaf in leaves.items():
        (folder / side).mkdir()
        files = {"key": leaf.key, "chain": leaf.certificate, "bundle": made.bundle}
        found[side] = {name: str(folder / side / f"{name}.pem") for name in files}
        for name, data in files.items():
            Path(found[side][name]).write_bytes(data)
    return found


def _container(name: str, *command: str) -> Json:
    return {"name": name, "image": "bench", "command": list(command)}


def _deployment(name: str, inject: str, *containers: Json) -> Json:
    labels = {"app": name}
    meta = {"labels": labels, "annotations": {"linkerd.io/inject": inject}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": meta, "spec": {"containers": list(containers)}},
        },
    }


def _service(name: str, port: Json, **spec: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {"selector": {"app": name}, "ports": [port], **spec},
    }


def _policies() -> list[Json]:
    """Who may call the backend: of three that are asked, the last one says yes."""
    group = "policy.linkerd.io"
    pods = {"podSelector": {"matchLabels": {"app": "serve"}}, "port": BACKEND}
    found = [_policy("Server", "v1beta3", "serve", {**pods, "proxyProtocol": "unknown"})]
    for name, account in (("a", "nobody"), ("b", "somebody"), ("c", "default")):
        proof = {"kind": "ServiceAccount", "name": account}
        server = {"group": group, "kind": "Server", "name": "serve"}
        spec = {"targetRef": server, "requiredAuthenticationRefs": [proof]}
        found.append(_policy("AuthorizationPolicy", "v1alpha1", name, spec))
    return found


def _policy(kind: str, version: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": f"policy.linkerd.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "bench"},
        "spec": spec,
    }


# ----------------------------------------------------------------- Envoy, as little as possible


def _type(name: str) -> str:
    return f"type.googleapis.com/envoy.extensions.{name}"


def _config(listener: Json, *clusters: Json) -> Json:
    stats = {"stats_matcher": {"inclusion_list": {"patterns": [{"prefix": "server."}]}}}
    return {
        "static_resources": {"listeners": [listener], "clusters": list(clusters)},
        "stats_config": stats,
        "deferred_stat_options": {"enable_deferred_creation_stats": True},
    }


def _listener(host: str, port: int, route: Json, tls: Json | None = None) -> Json:
    manager = {
        "@type": _type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "x",
        "generate_request_id": False,
        "skip_xff_append": True,
        "route_config": {
            "virtual_hosts": [
                {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, **route}]}
            ]
        },
        "http_filters": [
            {"name": "router", "typed_config": {"@type": _type("filters.http.router.v3.Router")}}
        ],
    }
    chain: Json = {"filters": [{"name": "hcm", "typed_config": manager}]}
    if tls is not None:
        chain["transport_socket"] = tls
    address = {"socket_address": {"address": host, "port_value": port}}
    return {"name": "in", "address": address, "filter_chains": [chain]}


def _cluster(name: str, host: str, port: int, tls: Json | None = None) -> Json:
    options = {
        "@type": _type("upstreams.http.v3.HttpProtocolOptions"),
        "use_downstream_protocol_config": {
            "http_protocol_options": {}, "http2_protocol_options": {},
        },
    }  # fmt: skip
    address = {"socket_address": {"address": host, "port_value": port}}
    found: Json = {
        "name": name,
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_ONLY",
        "connect_timeout": "5s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options
        },
    }
    if tls is not None:
        found["transport_socket"] = tls
    return found


def _tls(kind: str, keys: Mapping[str, str], **more: Json) -> Json:
    version = {"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3"}
    common = {
        "tls_params": version,
        "tls_certificates": [
            {
                "certificate_chain": {"filename": keys["chain"]},
                "private_key": {"filename": keys["key"]},
            }
        ],
        "validation_context": {"trusted_ca": {"filename": keys["bundle"]}},
    }
    context = _type(f"transport_sockets.tls.v3.{kind}TlsContext")
    return {
        "name": "tls",
        "typed_config": {"@type": context, "common_tls_context": common, **more},
    }


def _backend() -> Json:
    answer = {"direct_response": {"status": 200, "body": {"inline_string": BODY}}}
    return _config(_listener(ANY, BACKEND, answer))


def _reference_out(keys: Mapping[str, str]) -> Json:
    tls = _tls("Upstream", keys, sni="reference.bench")
    to = _cluster("far", "bare-serve.bench.svc.cluster.local", IN, tls)
    return _config(_listener("127.0.0.1", OUT, {"route": {"cluster": "far"}}), to)


def _reference_in(keys: Mapping[str, str]) -> Json:
    tls = _tls("Downstream", keys, require_client_certificate=True)
    to = _cluster("app", "127.0.0.1", BACKEND)
    return _config(_listener(ANY, IN, {"route": {"cluster": "app"}}, tls), to)
