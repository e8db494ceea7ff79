"""A mesh to be explained: Faces in two clusters, of which one is `here`."""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.app.explain import page
from isthmus.cli.commands.explain import qualified, text
from tests.support.compact import Compact
from tests.support.meshworld import World

DOMAIN = "cluster.local"
INSIDE = ("10.0.0.0/8", "fd00::/8")

OBJECTS: tuple[Compact, ...] = (
    {"ns": "faces"},
    {"ns": "tools"},
    {"ns": "linkerd-egress"},
    {"link": "east", "trust": DOMAIN, "domain": DOMAIN, "mesh": "isthmus"},
    {"pod": "faces/face-1", "ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "face"},
    {"pod": "faces/old-1", "ip": "10.1.0.2", "meshed": True, "sa": "old"},
    {"pod": "tools/curl", "ip": "10.1.0.3"},
    {
        "pod": "faces/narrow-1", "ip": "10.1.0.4", "meshed": True, "proxy": "envoy", "sa": "face",
        "annotations": {"config.isthmus.dev/upstreams": "faces/smiley"},
    },
    {"svc": "faces/smiley", "ip": "10.96.0.10", "ports": [80]},
    {
        "slice": "faces/smiley-1", "svc": "smiley", "ports": [8000],
        "eps": [{"ip": "10.1.1.1", "pod": "smiley-1"}],
    },
    {
        "pod": "faces/smiley-1", "ip": "10.1.1.1", "meshed": True, "proxy": "envoy",
        "sa": "smiley", "labels": {"app": "smiley"},
    },
    {"server": "faces/smiley", "port": 8000, "pods": {"app": "smiley"}},
    {"az": "faces/for-face", "for": "smiley", "needs": ["ServiceAccount face"]},
    {"svc": "faces/color", "ip": "10.96.0.11", "ports": [80]},
    {
        "slice": "faces/color-1", "svc": "color", "ports": [8000],
        "eps": [{"ip": "10.1.1.2", "pod": "color-1"}],
    },
    {"pod": "faces/color-1", "ip": "10.1.1.2", "meshed": True, "proxy": "envoy", "sa": "color"},
    {
        "route": "faces/color", "service": "color", "port": 80,
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/center"}}],
                "backendRefs": [
                    {"name": "color", "port": 80, "weight": 3},
                    {"name": "color2", "port": 80},
                ],
                "timeouts": {"request": "2s"},
            },
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/old"}}],
                "filters": [
                    {"type": "RequestRedirect", "requestRedirect": {"hostname": "new.example"}}
                ],
            },
        ],
    },
    {"svc": "faces/rpc", "ip": "10.96.0.14", "ports": [{"port": 8000, "app": "grpc"}]},
    {
        "groute": "faces/rpc", "service": "rpc",
        "rules": [{"matches": [{"method": {"service": "Color", "method": "Center"}}]}],
    },
    {
        "svc": "faces/cell", "ip": "10.96.0.12", "ports": [80],
        "annotations": {
            "multicluster.linkerd.io/local-discovery": "smiley",
            "multicluster.linkerd.io/remote-discovery": "smiley@east",
        },
    },
    {"svc": "faces/smiley", "in": "east", "ports": [80]},
    {
        "slice": "faces/smiley-1", "in": "east", "svc": "smiley", "ports": [8000],
        "eps": [{"ip": "10.2.1.1", "pod": "smiley-9"}],
    },
    {
        "pod": "faces/smiley-9", "in": "east", "ip": "10.2.1.1", "meshed": True,
        "proxy": "envoy", "sa": "smiley",
    },
    {
        "svc": "faces/smiley-east", "ip": "10.96.0.13", "ports": [80],
        "labels": {
            "mirror.linkerd.io/mirrored-service": "true",
            "mirror.linkerd.io/cluster-name": "east",
        },
        "annotations": {
            "mirror.linkerd.io/remote-svc-fq-name": "smiley.faces.svc.cluster.local",
        },
    },
    {
        "slice": "faces/smiley-east", "svc": "smiley-east", "ports": [4143],
        "eps": [{"ip": "198.51.100.9"}],
        "labels": {"mirror.linkerd.io/mirrored-service": "true"},
        "annotations": {
            "mirror.linkerd.io/remote-gateway-identity": "gate.mc.serviceaccount.identity",
            "mirror.linkerd.io/remote-svc-fq-name": "smiley.faces.svc.cluster.local",
        },
    },
    {
        "svc": "faces/peers", "ip": "None", "selector": {"app": "smiley"},
        "ports": [{"port": 8000, "name": "web"}],
    },
    {
        "slice": "faces/peers-1", "svc": "peers", "ports": [{"port": 8000, "name": "web"}],
        "eps": [{"ip": "10.1.1.1", "pod": "smiley-1"}],
    },
    {"egress": "linkerd-egress/all", "policy": "Deny"},
    {
        "route": "faces/api", "egress": "all", "of": "linkerd-egress", "port": 80,
        "hosts": ["api.example"],
    },
)  # fmt: skip


def faces(*more: Compact) -> World:
    """The mesh, and more objects."""
    return World(
        *OBJECTS,
        *more,
        cluster_domain=DOMAIN,
        trust_domain=DOMAIN,
        cluster_networks=INSIDE,
        service_networks=("10.96.0.0/16",),
    )


def explain(world: World, sender: str, to: str, **said: str) -> dict[str, Any]:
    """What the page answers, as a program reads it."""
    told = page(world.db.read)({"from": qualified(sender, None), "to": to, **said})
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(told))
    return found


def printed(found: dict[str, Any]) -> list[str]:
    """The lines that the command prints."""
    return list(text(found))
