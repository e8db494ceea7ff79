"""DELETE of one object, or of all that a selector names."""

from __future__ import annotations

from isthmus.aio import Clock
from isthmus.errors import NotFound
from isthmus.model.document import get
from isthmus.model.kind import Kind
from isthmus.serve.kube.answer import Answer, Asked, of_document
from isthmus.serve.kube.body import parse
from isthmus.serve.kube.deletion import DeleteOptions, delete_options
from isthmus.serve.kube.negotiate import OBJECT_BODIES, body
from isthmus.serve.kube.options import list_options
from isthmus.serve.kube.read import Reader
from isthmus.serve.kube.show import Showings, shape_of
from isthmus.serve.kube.status import subject, success
from isthmus.store.codec import encode
from isthmus.store.objects import Writer, Written


class Deleter:
    """Deletes through the one way in for writers."""

    def __init__(self, objects: Writer, reader: Reader, showings: Showings, clock: Clock) -> None:
        self._objects = objects
        self._reader = reader
        self._showings = showings
        self._clock = clock

    async def delete(self, asked: Asked) -> Answer:
        """A Status when the object is gone; the object when finalizers or its grace keep it."""
        options = await _options(asked)
        target, kind = asked.target, asked.kind
        written = await self._delete(kind, target.namespace, target.name, options)
        if not written.removed:
            showing = self._showings.of(kind, asked.version)
            shape = shape_of(asked.accept, asked.query, asked.version)
            raw = encode(written.document)
            shown = showing.one(shape, raw, written.revision, self._clock.time())
            return Answer(shown, warnings=written.warnings)
        uid = get(written.document, "metadata.uid") or ""
        return of_document(success(subject(kind, target.name, uid)), warnings=written.warnings)

    async def delete_many(self, asked: Asked) -> Answer:
        """Delete all that the selectors name; one that fails does not keep the others."""
        options = await _options(asked)
        wanted = list_options(asked.query, asked.kind, asked.target.namespace)
        records, _ = await self._reader.select(asked.kind, asked.target.namespace, wanted)
        failed: Exception | None = None
        for record in records:
            try:
                await self._delete(asked.kind, record.key.namespace, record.key.name, options)
            except NotFound:
                continue
            except Exception as error:  # noqa: BLE001  # told when the others are done
                failed = failed or error
        if failed is not None:
            raise failed
        return of_document(success())

    async def _delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions
    ) -> Written:
        return await self._objects.delete(
            kind,
            namespace,
            name,
            preconditions=options.preconditions,
            propagation=options.propagation or "",
            grace_seconds=options.grace_seconds,
            dry_run=options.dry_run,
        )


async def _options(asked: Asked) -> DeleteOptions:
    raw = await asked.body()
    if not raw:
        return delete_options(asked.query)
    media = body(asked.content_type, OBJECT_BODIES)
    return delete_options(asked.query, parse(raw, media, strict=False).document)
