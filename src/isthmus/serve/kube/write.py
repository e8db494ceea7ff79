"""Create, update and patch, of objects and of their subresources.

The body becomes a document in the version of the URL, is checked against that version, converted
to the stored one, and goes through `store.objects`, the one way in. A patch is a pure step from
the stored document: when somebody else was faster it is taken again, so that a patch without a
resourceVersion never conflicts. Every write keeps the accounts of who owns which field (`apply`).
"""

from __future__ import annotations

from collections.abc import Callable

from isthmus.aio import Clock
from isthmus.errors import AlreadyExists, BadRequest, NotFound, Unavailable, UnsupportedMediaType
from isthmus.model.document import get
from isthmus.model.kind import Document
from isthmus.serve.kube import negotiate, patch, scale
from isthmus.serve.kube.answer import Answer, Asked, of_document
from isthmus.serve.kube.apply import Writing, tracked
from isthmus.serve.kube.applying import (
    applying,
    applying_scale,
    configuration,
    newborn,
    writing,
)
from isthmus.serve.kube.auth import Attributes, Authorizer, require
from isthmus.serve.kube.body import checked, of_kind, parse, place
from isthmus.serve.kube.negotiate import MediaType
from isthmus.serve.kube.options import Validation, WriteOptions, write_options
from isthmus.serve.kube.read import Reader
from isthmus.serve.kube.show import Showings, convert, deprecation, shape_of
from isthmus.store.codec import document as read_document
from isthmus.store.codec import encode
from isthmus.store.objects import ATTEMPTS, Change, Writer, Written, conflict


class Editor:
    """Writes through the one way in for writers."""

    def __init__(
        self,
        objects: Writer,
        reader: Reader,
        showings: Showings,
        clock: Clock,
        authorizer: Authorizer,
    ) -> None:
        """`authorizer` is asked about creation when an apply finds nothing."""
        self._objects = objects
        self._reader = reader
        self._showings = showings
        self._clock = clock
        self._authorizer = authorizer

    # ------------------------------------------------------------------------------ whole bodies

    async def create(self, asked: Asked) -> Answer:
        """POST: 201 and the object as it was stored."""
        options = write_options(asked.query)
        document, warnings = await self._body(asked, options)
        place(document, asked.kind, asked.target.namespace, "")
        document = tracked(self._writing(asked, options), None, document)
        stored = convert(asked.kind, document, asked.kind.stored)
        kind = asked.kind.written_in(asked.version)
        written = await self._objects.create(kind, stored, dry_run=options.dry_run)
        return self._shown(asked, written, warnings, code=201)

    async def update(self, asked: Asked) -> Answer:
        """PUT of an object, its status, a Namespace's finalizers, or a Scale."""
        options = write_options(asked.query)
        if asked.target.subresource == "scale":
            return await self._put_scale(asked, options)
        document, warnings = await self._body(asked, options)
        place(document, asked.kind, asked.target.namespace, asked.target.name)
        who = self._writing(asked, options)
        written = await self._write(asked, options, lambda stored: _kept(who, stored, document))
        return self._shown(asked, written, warnings)

    async def _body(self, asked: Asked, options: WriteOptions) -> tuple[Document, tuple[str, ...]]:
        taken = negotiate.CUSTOM_BODIES if asked.kind.custom else negotiate.OBJECT_BODIES
        media = negotiate.body(asked.content_type, taken)
        raw = await asked.body()
        found = parse(raw, media, strict=options.validation is not Validation.IGNORE)
        of_kind(found.document, asked.kind, asked.version)
        return checked(
            found.document, found.repeated, asked.kind, asked.version, options.validation
        )

    # ----------------------------------------------------------------------------------- patches

    async def patch(self, asked: Asked) -> Answer:
        """PATCH of an object, its status, or its Scale."""
        media = _patch_media(asked)
        options = write_options(asked.query, apply=media is MediaType.APPLY_PATCH)
        raw = await asked.body()
        if asked.target.subresource == "scale":
            return await self._patch_scale(asked, options, media, raw)
        if media is MediaType.APPLY_PATCH:
            return await self._apply(asked, options, raw)
        warnings: list[str] = []
        change = _patching(self._writing(asked, options), options.validation, media, raw, warnings)
        written = await self._write(asked, options, change)
        return self._shown(asked, written, tuple(warnings))

    # ------------------------------------------------------------------------- server-side apply

    async def _apply(self, asked: Asked, options: WriteOptions, raw: bytes) -> Answer:
        """Apply to what there is; else, if it is no subresource, create it (201)."""
        config, warnings = configuration(asked, options, raw)
        who = self._writing(asked, options)
        for _ in range(ATTEMPTS):
            try:
                change = applying(who, config, force=options.force)
                written = await self._write(asked, options, change)
            except NotFound:
                if asked.target.subresource or await self._exists(asked):
                    raise
            else:
                return self._shown(asked, written, warnings)
            try:
                written = await self._born(asked, options, newborn(who, config))
            except AlreadyExists:
                continue
            return self._shown(asked, written, warnings, code=201)
        raise Unavailable(f"{asked.target.name} came and went during each of {ATTEMPTS} attempts")

    async def _exists(self, asked: Asked) -> bool:
        target = asked.target
        try:
            await self._reader.record(asked.kind, target.namespace, target.name)
        except NotFound:
            return False
        return True

    async def _born(self, asked: Asked, options: WriteOptions, document: Document) -> Written:
        """Create what was applied, if the applier may create; Conflict if it said which object."""
        target, kind = asked.target, asked.kind
        about = Attributes(
            "create", target.group, target.version, target.resource, "", target.namespace,
            target.name,
        )  # fmt: skip
        require(self._authorizer, asked.user, about)
        for field in ("uid", "resourceVersion"):
            said = get(document, f"metadata.{field}")
            if said:
                why = f"the {field} {said} was applied to, and there is no such object"
                raise conflict(kind, target.name, why)
        kind = kind.written_in(asked.version)
        return await self._objects.create(kind, document, dry_run=options.dry_run)

    # ------------------------------------------------------------------------------------- scale

    async def get_scale(self, asked: Asked) -> Answer:
        """GET of the Scale of an object (autoscaling/v1)."""
        target = asked.target
        record = await self._reader.record(asked.kind, target.namespace, target.name)
        stored = read_document(record.value, record.revision)
        return of_document(_scale_of(asked, stored))

    async def _put_scale(self, asked: Asked, options: WriteOptions) -> Answer:
        media = negotiate.body(asked.content_type, negotiate.OBJECT_BODIES)
        wanted = parse(await asked.body(), media).document
        return await self._scaled(asked, options, lambda _: wanted)

    async def _patch_scale(
        self, asked: Asked, options: WriteOptions, media: MediaType, raw: bytes
    ) -> Answer:
        if media is MediaType.APPLY_PATCH:
            wanted = parse(raw, media).document
            who = self._writing(asked, options, stored=True)
            change = applying_scale(who, wanted, force=options.force)
            return self._as_scale(asked, await self._write(asked, options, change))
        custom = asked.kind.custom
        return await self._scaled(
            asked, options, lambda held: patch.apply(media, scale.SCHEMA, held, raw, custom=custom)
        )

    async def _scaled(self, asked: Asked, options: WriteOptions, rescale: Change) -> Answer:
        """Write the replicas of the Scale that `rescale` makes of the present one."""
        kind, who = asked.kind, self._writing(asked, options, stored=True)

        def change(stored: Document) -> Document:
            wanted = rescale(_scale_of(asked, stored))
            held = scale.preconditions(wanted)
            metadata = {**stored["metadata"], "resourceVersion": str(held.revision or "")}
            if held.uid:
                metadata["uid"] = held.uid
            new = {**scale.applied(kind, stored, wanted), "metadata": metadata}
            return tracked(who, stored, new)

        return self._as_scale(asked, await self._write(asked, options, change))

    def _as_scale(self, asked: Asked, written: Written) -> Answer:
        return of_document(_scale_of(asked, written.document), warnings=written.warnings)

    # ------------------------------------------------------------------------------------ shared

    def _writing(self, asked: Asked, options: WriteOptions, *, stored: bool = False) -> Writing:
        return writing(asked, options, self._clock.time(), stored=stored)

    async def _write(self, asked: Asked, options: WriteOptions, change: Change) -> Written:
        target = asked.target
        return await self._objects.update(
            asked.kind.written_in(asked.version),
            target.namespace,
            target.name,
            change,
            subresource=target.subresource,
            dry_run=options.dry_run,
        )

    def _shown(
        self, asked: Asked, written: Written, warnings: tuple[str, ...], *, code: int = 200
    ) -> Answer:
        showing = self._showings.of(asked.kind, asked.version)
        shape = shape_of(asked.accept, asked.query, asked.version)
        raw = encode(written.document)
        body = showing.one(shape, raw, written.revision, self._clock.time())
        said = (*deprecation(asked.kind, asked.version), *warnings, *written.warnings)
        return Answer(body, code, warnings=said)


def _scale_of(asked: Asked, stored: Document) -> Document:
    """The Scale of an object as the version of the URL shows it."""
    return scale.of(asked.kind, convert(asked.kind, stored, asked.version.name))


def _kept(who: Writing, stored: Document, document: Document) -> Document:
    """A whole new document with its owners, from the version of the write to the stored one."""
    live = convert(who.kind, stored, who.version.name)
    return convert(who.kind, tracked(who, live, document), who.kind.stored)


def _patch_media(asked: Asked) -> MediaType:
    """The patch's type; UnsupportedMediaType naming those that are taken."""
    taken = negotiate.CUSTOM_PATCH_BODIES if asked.kind.custom else negotiate.PATCH_BODIES
    media = negotiate.body(asked.content_type, taken)
    if media not in taken:
        raise UnsupportedMediaType(f"{media} is no patch")
    return media


def _patching(
    who: Writing, validation: Validation, media: MediaType, raw: bytes, warnings: list[str]
) -> Callable[[Document], Document]:
    """The step from the stored document to the patched one; each time fills `warnings`."""
    kind, version = who.kind, who.version

    def change(stored: Document) -> Document:
        before = convert(kind, stored, version.name)
        wanted = patch.apply(media, version.schema, before, raw, custom=kind.custom)
        _same_object(before, wanted)
        of_kind(wanted, kind, version)
        wanted, said = checked(wanted, (), kind, version, validation)
        warnings[:] = said
        return convert(kind, tracked(who, before, wanted), kind.stored)

    return change


def _same_object(before: Document, wanted: Document) -> None:
    """A patch cannot make another object of it; BadRequest if it tries."""
    for path in ("metadata.name", "metadata.namespace"):
        if get(before, path) != get(wanted, path):
            shown = path.removeprefix("metadata.")
            raise BadRequest(
                f"the {shown} of the object ({get(wanted, path)}) does not match "
                f"the {shown} on the URL ({get(before, path)})"
            )
