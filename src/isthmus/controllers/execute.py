"""Steps become writes through Objects, with the uid as precondition: a plan never hits another."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import msgspec

from isthmus.aio import Clock
from isthmus.ca.tokens import Bound
from isthmus.controllers.merge import merged
from isthmus.controllers.steps import Create, Delete, Issue, Update, Write, canonical, describe
from isthmus.errors import NotFound
from isthmus.model.kind import Document, Kind
from isthmus.model.times import format_time
from isthmus.store.objects import Preconditions, Writer

Kinds = Callable[[str], Kind | None]
"""The kind of a store key's resource part, also of kinds that users defined."""

Sign = Callable[[Bound, str], str]
"""(account, name of the Secret) -> the token to keep there."""


class Executor:
    """Carries out single steps."""

    def __init__(self, objects: Writer, kinds: Kinds, clock: Clock, sign: Sign) -> None:
        self._objects = objects
        self._kinds = kinds
        self._clock = clock
        self._sign = sign

    async def execute(self, step: Write) -> int:
        """Write; return the store revision that holds it.

        Raises:
            UserFault: somebody was faster (AlreadyExists, NotFound, Conflict), or a rule refuses.
        """
        kind = self._kinds(step.resource)
        if kind is None:
            raise NotFound(f"{describe(step)}: no kind is called {step.resource}")
        match step:
            case Create():
                return (await self._objects.create(kind, self._born(step))).revision
            case Update():
                return await self._update(kind, step)
            case Issue():
                return await self._update(kind, self._issued(step))
            case Delete():
                done = await self._objects.delete(
                    kind,
                    step.namespace,
                    step.name,
                    preconditions=Preconditions(uid=step.uid),
                    propagation=step.propagation.value,
                )
                return done.revision

    def _born(self, step: Create) -> Document:
        document: Document = msgspec.json.decode(step.document)
        if step.resource == "events":
            now = format_time(self._clock.utc())
            document |= {"firstTimestamp": now, "lastTimestamp": now}
        return document

    def _issued(self, step: Issue) -> Update:
        account = Bound("serviceaccounts", step.namespace, step.account, step.account_uid)
        merge = msgspec.json.decode(step.merge)
        token = b64encode(self._sign(account, step.name).encode()).decode()
        merge["data"] = {**merge.get("data", {}), "token": token}
        where = (step.resource, step.namespace, step.name, step.uid)
        return Update(*where, canonical(merge))

    async def _update(self, kind: Kind, step: Update) -> int:
        patch = msgspec.json.decode(step.merge)
        now = format_time(self._clock.utc())
        done = await self._objects.update(
            kind,
            step.namespace,
            step.name,
            lambda document: merged(document, patch, now),
            subresource=step.subresource,
            preconditions=Preconditions(uid=step.uid),
        )
        return done.revision
