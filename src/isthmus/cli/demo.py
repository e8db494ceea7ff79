"""The demo: a lab with the workshop in it, linked and running, and what to try; or the walk.

The lab is run by the thread that called; everything else happens in a second one, because the lab
asks this process for sockets while it runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

from isthmus.aio import Clock
from isthmus.cli import kubeconfig
from isthmus.cli.checks import pause
from isthmus.cli.cluster import Cluster
from isthmus.cli.multicluster import facts
from isthmus.errors import AlreadyExists, IsthmusError, Unavailable
from isthmus.lab.starter import up
from isthmus.lab.state import State

TOPOLOGY: Final = "workshop"
FACE: Final = "k3d-face"
SMILEYS: Final = ("smiley-1", "smiley-2", "smiley-3")
FEDERATED: Final = "mirror.linkerd.io/federated"
GUI: Final = "faces/faces-gui"
COLOR: Final = "ghcr.io/buoyantio/faces-color:2.0.0-rc.2"
APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
PATIENCE: Final = 60.0
"""Seconds until the first smiley must be there."""
LOOK: Final = 0.1

Say = Callable[[str], None]


class Stopwatch:
    """How long what took, from the start of the process."""

    def __init__(self, clock: Clock, begin: float) -> None:
        self._clock = clock
        self._begin = self._last = begin
        self.laps: list[tuple[str, float]] = []

    def lap(self, what: str) -> None:
        """`what` is done now."""
        now = self._clock.now()
        self.laps.append((what, now - self._last))
        self._last = now

    @property
    def text(self) -> str:
        """`8.9 s (networks 2.1, ...)`."""
        parts = ", ".join(f"{what} {seconds:.1f}" for what, seconds in self.laps)
        return f"{self._last - self._begin:.1f} s ({parts})"


class Demo:
    """One run. `work` is what happens once the lab is there; its result is the exit code."""

    def __init__(self, state: State, loopback: IPv4Network, clock: Clock, say: Say) -> None:
        self._state = state
        self._loopback = loopback
        self._clock = clock
        self._say = say
        self._code = 0
        self._fault: BaseException | None = None
        self.watch = Stopwatch(clock, started(clock))

    def run(self, work: Callable[[], int | None], *, interrupted: int = 0) -> int:
        """Bring the lab up, do the work, take the lab down; None: it runs until Ctrl-C.

        `interrupted` is the exit code when Ctrl-C comes before the work is done.
        """
        self._code = interrupted
        working = threading.Thread(target=self._work, args=(work,), name="demo", daemon=True)
        # What the work sends when it is done may come after the lab has ended by itself.
        before = signal.signal(signal.SIGTERM, lambda *_: None)
        try:
            code = up(TOPOLOGY, self._state, self._loopback, step=self._step, ready=working.start)
        finally:
            signal.signal(signal.SIGTERM, before)
        if self._fault is not None:
            raise self._fault
        return code or self._code

    def _step(self, text: str) -> None:
        if text == "the networks are there":
            self.watch.lap("networks")
        self._say(f"  {text}")

    def _work(self, work: Callable[[], int | None]) -> None:
        self.watch.lap("control planes")
        try:
            code = work()
        except BaseException as fault:  # noqa: BLE001  # raised by the thread that waits
            self._fault = fault
        else:
            self._code = code or 0
            if code is None:
                return
        os.kill(os.getpid(), signal.SIGTERM)  # as somebody's Ctrl-C

    # ------------------------------------------------------------------------------------ the lab

    def cluster(self, context: str) -> Cluster:
        """The API of one of its clusters."""
        return Cluster(kubeconfig.load(str(self._state.kubeconfig)).access(context))

    def page(self) -> str:
        """Where the page is on this machine."""
        from isthmus.lab.local import Local

        for cluster in Local(self._state).status()["clusters"]:
            for each in cluster["published"]:
                if each["service"] == GUI:
                    return f"http://{each['host']}/"
        raise Unavailable(f"the Service {GUI} is not published yet")

    def url(self) -> str:
        """The same, waited for."""
        return self._until(self.page, "the page of Faces")

    def admin(self) -> str:
        """Where the face cluster's control plane tells of itself."""
        return f"http://{self.cluster(FACE).listener('admin', None)}/"

    def _until(self, look: Callable[[], str], what: str) -> str:
        end = self._clock.now() + PATIENCE
        while True:
            try:
                return look()
            except IsthmusError as fault:
                if self._clock.now() > end:
                    raise Unavailable(
                        f"{what} is not there after {PATIENCE:g} s: {fault}"
                    ) from fault
            pause(LOOK)

    # ------------------------------------------------------------------------------- bringing it up

    def federate(self) -> None:
        """What the workshop's first half does: install, link, label; and color outside."""
        from isthmus.lab.local import Local
        from isthmus.lab.topology import Run

        with ThreadPoolExecutor(len(SMILEYS) + 1) as pool:
            list(pool.map(self._install, (FACE, *(f"kind-{each}" for each in SMILEYS))))
            linked = list(pool.map(self._link, SMILEYS))
        face = self.cluster(FACE)
        for documents in linked:
            for each in documents:
                create(face, each)
        env = {"FACES_SERVICE": "color", "USER_HEADER_NAME": "X-Faces-User"}
        Local(self._state).start("color", Run(image=COLOR, env=env))

    def _install(self, context: str) -> None:
        from isthmus.cli.multicluster import install

        cluster = self.cluster(context)
        said = self._facts(cluster)
        for each in install.objects(said, None, credentials=True, kind=False):
            create(cluster, each)
        if context != FACE:
            path = "/api/v1/namespaces/faces/services/smiley"
            cluster.merge(path, {"metadata": {"labels": {FEDERATED: "member"}}})

    def _link(self, name: str) -> list[dict[str, Any]]:
        from isthmus.cli.multicluster import link, names

        access = kubeconfig.load(str(self._state.kubeconfig)).access(f"kind-{name}")
        cluster = Cluster(access)
        wanted = link.Wanted(
            cluster=name,
            namespace=names.NAMESPACE,
            account=names.REMOTE_ACCESS,
            api_server="",
            selector=names.SELECTOR,
            remote_discovery=names.REMOTE_DISCOVERY_SELECTOR,
            federated=names.FEDERATED_SELECTOR,
            excluded_annotations=(),
            excluded_labels=(),
            gateway=None,
        )
        return list(link.objects(cluster, access, self._facts(cluster), wanted))

    def _facts(self, cluster: Cluster) -> facts.Facts:
        end = self._clock.now() + PATIENCE
        while True:
            try:
                return facts.ask(cluster, None)
            except IsthmusError:
                if self._clock.now() > end:
                    raise
            pause(LOOK)

    def first_smiley(self, url: str) -> None:
        """Return when the page shows one. Unavailable if that takes too long."""
        from isthmus.lab.workshop.page import Page

        page, end = Page(url), self._clock.now() + PATIENCE
        while True:
            cell = page.cell(1, 1)
            if cell.cluster and not any(each.startswith("smiley") for each in cell.errors):
                return
            if self._clock.now() > end:
                raise Unavailable(f"no smiley after {PATIENCE:g} s: the page shows {cell.shown}")
            pause(LOOK)


def create(cluster: Cluster, document: dict[str, Any]) -> None:
    """Create an object of a kind of ours, unless there is one of its name."""
    from isthmus.model.registry import BUILT_IN

    version, meta = document["apiVersion"], document["metadata"]
    kind = BUILT_IN.by_api_version(version, document["kind"])
    if kind is None:
        raise LookupError(f"there is no kind {document['kind']} of {version}")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"/namespaces/{meta['namespace']}" if kind.namespaced else ""
    # As `kubectl apply` would leave it, so that a later one by hand has nothing to say.
    notes = {**(meta.get("annotations") or {}), APPLIED: json.dumps(document) + "\n"}
    wanted = {**document, "metadata": {**meta, "annotations": notes}}
    try:
        cluster.create(f"{root}{where}/{kind.plural}", wanted)
    except AlreadyExists:
        return


def started(clock: Clock) -> float:
    """When this process began, on the clock's scale."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[19])  # starttime, the 22nd of all
    up_for = float(Path("/proc/uptime").read_text().split()[0])
    return clock.now() - (up_for - ticks / os.sysconf("SC_CLK_TCK"))


def to_try(url: str, admin: str, state: State) -> Iterator[str]:
    """What to do now."""
    yield f"""
Smileys of three clusters, and colors from outside of all of them:

  Faces           {url}
  dashboard       {admin}   (what has no effect, links, proxies)

In another terminal:

  export KUBECONFIG={state.kubeconfig} PATH="{Path(sys.executable).parent}:$PATH"
  alias linkerd=isthmus
  linkerd --context k3d-face multicluster check
  linkerd --context k3d-face diagnostics endpoints smiley-federated.faces.svc.cluster.local:80
  kubectl --context kind-smiley-2 -n faces set env deployment/smiley SMILEY=HeartEyes
  kubectl --context kind-smiley-1 -n faces scale deployment/smiley --replicas=0

Ctrl-C ends it and leaves nothing behind."""
