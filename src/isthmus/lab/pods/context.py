"""What the parts of one pod share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import msgspec

from isthmus.aio import Backoff, Clock, Log
from isthmus.lab.images import Images
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.mounts import Mount
from isthmus.lab.pods.probes import Prober
from isthmus.lab.pods.sources import Sources, Where
from isthmus.lab.pods.volumes import Volumes

RESTART = Backoff(first=1.0, factor=2.0, most=60.0, jitter=0.0, settled=600.0)
"""Pauses between restarts of a container. Kubernetes begins with 10 s; a lab is for trying out."""

RETRY = 1.0
"""Seconds between looks for configuration that is not there yet."""


class Tools(msgspec.Struct, frozen=True):
    """What every pod of a node is given."""

    clock: Clock
    random: Random
    log: Log
    images: Images
    prober: Prober
    sources: Sources
    switches_users: bool
    """Whether processes can run as other users: not rootless."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One pod, once it has its place."""

    document: Document
    tools: Tools
    where: Where
    namespace: Namespace
    volumes: Volumes
    mounts: tuple[Mount, ...]
    """Of every container: its name resolution, and what a proxy has for it."""
    env: Mapping[str, str]
    """Of every container, where its spec does not say otherwise."""
    proxied: bool
    """Whether a proxy stands before it."""
    scratch: Path
    """A folder in memory."""
    logs: Path
    changed: Callable[[], None]
    """Something that the status tells has changed."""
