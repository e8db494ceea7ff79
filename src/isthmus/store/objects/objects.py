"""Objects: create, update and delete as Kubernetes' API conventions have them, over any store."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from isthmus.aio import Clock
from isthmus.errors import Cause, Invalid
from isthmus.model import intake
from isthmus.model.key import Key
from isthmus.model.kind import Document, Kind
from isthmus.model.times import format_seconds
from isthmus.store import codec
from isthmus.store.contract import Committed, Compare, Delete, Op, Put, Record, Refused, Store
from isthmus.store.objects import deletion, metadata, refusals
from isthmus.store.objects.terms import ANY, Admission, Change, Preconditions, Proposed, Written

MAX_OBJECT: Final = 1_572_864
"""Bytes of one object as stored: 1.5 MiB, Kubernetes' limit."""

ATTEMPTS: Final = 100
"""How often a write is run again because others were faster."""

NAMES: Final = 8
"""How many random names are tried for one generateName."""


class _Admitted(NamedTuple):
    """A write after all rules: what to store (None: remove), what else its transaction holds."""

    document: Document | None
    compares: tuple[Compare, ...]
    ops: tuple[Op, ...]
    warnings: tuple[str, ...]


class _Step(NamedTuple):
    """From the record that was read to the document that shall replace it."""

    kind: Kind
    record: Record
    old: Document
    new: Document
    subresource: str

    def proposed(self) -> Proposed:
        _, namespace, name = self.record.key
        return Proposed(self.kind, namespace, name, self.old, self.new, self.subresource)

    @property
    def unmoved(self) -> Compare:
        """Nobody was faster."""
        return Compare(self.record.key, self.record.revision)


class Objects:
    """Writes objects of any kind.

    What the writer left out is filled in (`Kind.default`, `Kind.carry`), then every rule of
    metadata and of the kind is checked (`Kind.check`; all faults in one Invalid), then the
    admissions are asked, in order; what they change is filled in and checked again. One transaction
    holds the object and what the admissions add. A dry run does everything but write.
    """

    def __init__(
        self, store: Store, *, clock: Clock, random: Random, admissions: Sequence[Admission] = ()
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._admissions = tuple(admissions)

    # ---------------------------------------------------------------- verbs

    async def get(self, kind: Kind, namespace: str, name: str) -> Written:
        """The stored object; NotFound."""
        record = await self._read(kind, namespace, name)
        return Written(
            codec.document(record.value, record.revision), record.revision, changed=False
        )

    async def create(self, kind: Kind, document: Document, *, dry_run: bool = False) -> Written:
        """Write a new object, in the stored version. The document is not changed.

        uid, creationTimestamp and generation are set here; a status is left out where it has a
        subresource of its own. A metadata.generateName is completed until the name is free.

        AlreadyExists; Invalid with all causes; BadRequest; TooLarge; what admissions raise.
        """
        namespace, asked = metadata.placed(kind, document)
        created = format_seconds(self._clock.time())
        new = metadata.newborn(
            kind, document, namespace=namespace, uid=metadata.uuid(self._random), created=created
        )
        base = metadata.text_of(new["metadata"], "generateName")
        name, names = asked or metadata.generated(base, self._random), 1
        for _ in range(ATTEMPTS):
            key = kind.key(namespace, name)
            done = await self._create(kind, key, new, dry_run=dry_run)
            if isinstance(done, Written):
                return done
            if done.present.get(key) is not None:
                if asked or names == NAMES:
                    raise refusals.already_exists(kind, name)
                name, names = metadata.generated(base, self._random), names + 1
        raise refusals.restless(kind, name, ATTEMPTS)

    async def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Change,
        *,
        subresource: str = "",
        preconditions: Preconditions = ANY,
        dry_run: bool = False,
    ) -> Written:
        """Bring the stored object to what `change` makes of it.

        A main write leaves the status alone where that is a subresource; a write of "status"
        changes nothing else; "finalize" (Namespaces) changes spec.finalizers alone; "scale" is a
        main write. A uid or resourceVersion in the new document is a precondition. An update that
        changes nothing writes nothing. An object that is marked goes with its last finalizer.

        NotFound; Conflict for a precondition; Invalid with all causes; BadRequest; TooLarge; what
        admissions and `change` raise.
        """
        for _ in range(ATTEMPTS):
            record = await self._read(kind, namespace, name)
            old = codec.document(record.value, record.revision)
            _require(kind, name, old, record, preconditions)
            wanted = change(codec.document(record.value, record.revision))
            metadata.require_version(kind, name, old, wanted)
            new = metadata.successor(kind, old, wanted, subresource)
            main = subresource not in ("status", "finalize")
            faults = list(metadata.update_faults(old, wanted)) if main else []
            step = _Step(kind, record, old, new, subresource)
            done = await self._update(step, faults, dry_run=dry_run)
            if isinstance(done, Written):
                return done
        raise refusals.restless(kind, name, ATTEMPTS)

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = ANY,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Written:
        """Remove the object, or mark it if something must happen first.

        It stays while it has finalizers, which `propagation` Foreground and Orphan add for the
        garbage collector ("" leaves them as they are); a Pod that runs on a node gets its grace; a
        Namespace is emptied first. `Written.removed` says which.

        NotFound; Conflict for a precondition; BadRequest; what admissions raise.
        """
        deletion.check_options(propagation, grace_seconds)
        for _ in range(ATTEMPTS):
            record = await self._read(kind, namespace, name)
            old = codec.document(record.value, record.revision)
            _require(kind, name, old, record, preconditions)
            new = deletion.marked(
                kind,
                old,
                now=self._clock.time(),
                propagation=propagation,
                grace_seconds=grace_seconds,
            )
            done = await self._mark(_Step(kind, record, old, new, ""), dry_run=dry_run)
            if isinstance(done, Written):
                return done
        raise refusals.restless(kind, name, ATTEMPTS)

    # ---------------------------------------------------------------- steps

    async def _read(self, kind: Kind, namespace: str, name: str) -> Record:
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            raise refusals.not_found(kind, name)
        return record

    async def _create(
        self, kind: Kind, key: Key, new: Document, *, dry_run: bool
    ) -> Written | Refused:
        new = {**new, "metadata": {**new["metadata"], "name": key.name}}
        new = _checked(kind, key.name, new, None)
        admitted = await self._admitted(Proposed(kind, key.namespace, key.name, None, new, ""))
        document = admitted.document or new
        if document is not new:
            document = _checked(kind, key.name, document, None)
        raw = _encoded(kind, key.name, document)
        done = await self._commit(Compare(key, 0), (Put(key, raw),), admitted, dry_run=dry_run)
        if isinstance(done, Refused):
            return done
        revision = 0 if dry_run else done.revision
        return Written(codec.document(raw, revision), revision, admitted.warnings)

    async def _update(
        self, step: _Step, faults: Sequence[Cause], *, dry_run: bool
    ) -> Written | Refused:
        kind = step.kind
        if faults or not metadata.lets_go(step.old, step.new):
            step = step._replace(new=_stepped(step, faults))
        if deletion.gone(kind, step.new):
            return await self._remove(step, dry_run=dry_run)
        admitted = await self._admitted(step.proposed())
        new = admitted.document or step.new
        if new is not step.new:
            new = _stepped(step._replace(new=new))
        new = metadata.counted(kind, step.old, metadata.with_old_times(step.old, new))
        return await self._replace(step._replace(new=new), admitted, dry_run=dry_run)

    async def _mark(self, step: _Step, *, dry_run: bool) -> Written | Refused:
        """A delete: remove the object, or store it with what the delete wrote on it."""
        if deletion.gone(step.kind, step.new):
            return await self._remove(step, dry_run=dry_run)
        admitted = await self._admitted(step.proposed())
        return await self._replace(step, admitted, dry_run=dry_run)

    async def _remove(self, step: _Step, *, dry_run: bool) -> Written | Refused:
        key = step.record.key
        admitted = await self._admitted(step.proposed()._replace(new=None))
        done = await self._commit(step.unmoved, (Delete(key),), admitted, dry_run=dry_run)
        if isinstance(done, Refused):
            return done
        last = codec.document(codec.encode(step.new), done.revision)
        return Written(last, done.revision, admitted.warnings, removed=True)

    async def _replace(
        self, step: _Step, admitted: _Admitted, *, dry_run: bool
    ) -> Written | Refused:
        key, held = step.record.key, step.record.revision
        raw = _encoded(step.kind, key.name, step.new)
        changed = raw != step.record.value
        ops = (Put(key, raw),) if changed else ()
        done: Committed | Refused = Committed(held)
        if ops or admitted.ops:
            done = await self._commit(step.unmoved, ops, admitted, dry_run=dry_run)
        if isinstance(done, Refused):
            return done
        revision = done.revision if changed else held
        return Written(codec.document(raw, revision), revision, admitted.warnings, changed=changed)

    async def _admitted(self, proposed: Proposed) -> _Admitted:
        compares: list[Compare] = []
        ops: list[Op] = []
        warnings = list(_warnings(proposed))
        for admission in self._admissions:
            verdict = await admission.admit(proposed)
            if verdict.document is not None and proposed.new is not None:
                proposed = proposed._replace(new=verdict.document)
            compares += verdict.compares
            ops += verdict.ops
            warnings += verdict.warnings
        return _Admitted(proposed.new, tuple(compares), tuple(ops), tuple(warnings))

    async def _commit(
        self, unmoved: Compare, ops: tuple[Op, ...], admitted: _Admitted, *, dry_run: bool
    ) -> Committed | Refused:
        compares = tuple(dict.fromkeys((unmoved, *admitted.compares)))
        if not dry_run:
            return await self._store.txn(compares, (*ops, *admitted.ops))
        present = {each.key: await self._store.get(each.key) for each in compares}
        moved = any(_revision(present[each.key]) != each.revision for each in compares)
        return Refused(present) if moved else Committed(unmoved.revision)


def _warnings(proposed: Proposed) -> tuple[str, ...]:
    """What the kind has to say of what somebody writes, not of what a delete marks."""
    new = proposed.new
    if new is None or proposed.subresource or "deletionTimestamp" in new["metadata"]:
        return ()
    return intake.warnings(proposed.kind, new, proposed.old)


def _revision(record: Record | None) -> int:
    return record.revision if record is not None else 0


def _require(
    kind: Kind, name: str, old: Document, record: Record, preconditions: Preconditions
) -> None:
    held = old["metadata"].get("uid")
    if preconditions.uid and preconditions.uid != held:
        raise refusals.conflict(kind, name, metadata.other_uid(preconditions.uid, held))
    if preconditions.revision and preconditions.revision != record.revision:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {preconditions.revision}, "
            f"ResourceVersion in object meta: {record.revision}"
        )
        raise refusals.conflict(kind, name, why)


def _checked(
    kind: Kind, name: str, document: Document, old: Document | None, faults: Sequence[Cause] = ()
) -> Document:
    """The document with what its kind fills in; Invalid if it breaks a rule, or with `faults`."""
    document = codec.copy(document)
    for default in kind.default:
        default(document)
    for carry in kind.carry:
        carry(document, old)
    causes = [*faults, *intake.faults(kind, document, old)]
    if causes:
        raise refusals.invalid(kind, name, causes)
    return document


def _stepped(step: _Step, faults: Sequence[Cause] = ()) -> Document:
    """`_checked` of an update. What only writes a status is not refused for what stood before."""
    kind, name = step.kind, step.record.key.name
    try:
        return _checked(kind, name, step.new, step.old, faults)
    except Invalid as refused:
        if step.subresource != "status":
            raise
        held = set(intake.faults(kind, step.old, step.old))
        new = [cause for cause in refused.causes if cause not in held]
        if new:
            raise refusals.invalid(kind, name, new) from None
        return codec.copy(step.new)


def _encoded(kind: Kind, name: str, document: Document) -> bytes:
    raw = codec.encode(document)
    if len(raw) > MAX_OBJECT:
        raise refusals.too_large(kind, name, len(raw), MAX_OBJECT)
    return raw
