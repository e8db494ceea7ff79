"""Trust material in the objects of a store: where Linkerd's installers, and people, put it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from isthmus.aio import Clock
from isthmus.ca import Material, Trust, trust
from isthmus.errors import AlreadyExists, Compacted, UserFault
from isthmus.model.core.config import CONFIG_MAP, SECRET
from isthmus.model.core.namespace import NAMESPACE
from isthmus.model.kind import Document, Kind
from isthmus.store.contract import Store
from isthmus.store.objects import Writer

MADE_BY: Final = "isthmus.dev/made-by"
PAUSE: Final = 1.0
"""Seconds before a watch that fell behind begins anew."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


class ObjectShelf:
    """The Secret and the ConfigMap in the control plane's namespace."""

    def __init__(self, namespace: str, store: Store, objects: Writer, clock: Clock) -> None:
        self._namespace = namespace
        self._store = store
        self._objects = objects
        self._clock = clock
        self._secret = SECRET.key(namespace, trust.ISSUER_SECRET)
        self._roots = CONFIG_MAP.key(namespace, trust.ROOTS_CONFIG_MAP)
        self._seen = 0

    @property
    def where(self) -> str:
        """The objects' names."""
        of, roots = trust.ISSUER_SECRET, trust.ROOTS_CONFIG_MAP
        return f"Secret {self._namespace}/{of} and ConfigMap {self._namespace}/{roots}"

    async def look(self) -> Material | None:
        """What they hold; None if neither is there."""
        self._seen = self._store.revision
        secret, roots = await self._store.get(self._secret), await self._store.get(self._roots)
        if secret is None and roots is None:
            return None
        if secret is None:
            raise UserFault(
                f"there is no Secret {self._namespace}/{trust.ISSUER_SECRET}, but the ConfigMap"
                f" {trust.ROOTS_CONFIG_MAP}: bring the issuer, or remove the ConfigMap"
            )
        bundle = ""
        if roots is not None:
            bundle = msgspec.json.decode(roots.value, type=_ConfigMap).data.get(trust.BUNDLE, "")
        material = trust.from_objects(self._decoded(secret.value), bundle)
        if material is None:
            pairs = " or ".join(f"{one} and {other}" for one, other in trust.PAIRS)
            raise UserFault(f"the Secret {self._namespace}/{trust.ISSUER_SECRET} lacks {pairs}")
        return material

    def _decoded(self, raw: bytes) -> dict[str, bytes]:
        data = msgspec.json.decode(raw, type=_Secret).data
        try:
            return {key: b64decode(text, validate=True) for key, text in data.items()}
        except ValueError as fault:
            name = f"{self._namespace}/{trust.ISSUER_SECRET}"
            raise UserFault(f"the Secret {name} holds what is not base64") from fault

    async def keep(self, made: Trust) -> None:
        """Create both. The Secret first, with the anchor beside it: it alone is enough."""
        await self._create(NAMESPACE, {"metadata": {"name": self._namespace}})
        data = {key: b64encode(held).decode() for key, held in trust.secret_data(made).items()}
        secret = {
            "metadata": self._metadata(trust.ISSUER_SECRET),
            "type": "linkerd.io/tls",
            "data": data,
        }
        if not await self._create(SECRET, secret):
            return  # somebody was faster, and makes the ConfigMap too
        roots = {
            "metadata": self._metadata(trust.ROOTS_CONFIG_MAP),
            "data": {trust.BUNDLE: made.bundle.decode()},
        }
        await self._create(CONFIG_MAP, roots)

    def _metadata(self, name: str) -> Document:
        made_by = {MADE_BY: "isthmus"}
        return {"name": name, "namespace": self._namespace, "annotations": made_by}

    async def _create(self, kind: Kind, rest: Mapping[str, object]) -> bool:
        document: Document = {"apiVersion": "v1", "kind": kind.name, **rest}
        try:
            await self._objects.create(kind, document)
        except AlreadyExists:
            return False
        return True

    async def changed(self) -> None:
        """Wait for a write of either object since the last look."""
        ours = {self._secret, self._roots}
        while True:
            with suppress(Compacted):
                async with self._store.watch(self._seen) as watch:
                    while True:
                        batch = await watch.next()
                        self._seen = batch.revision
                        if any(event.key in ours for event in batch.events):
                            return
            await self._clock.sleep(PAUSE)
            return  # history is gone: it may have changed
