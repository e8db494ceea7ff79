"""Query strings of reads and writes, parsed to frozen options: the rules of the Kubernetes API.

Every fault is named at once (see `query`); parameters that nobody knows are passed over.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from isthmus.errors import BadRequest, Cause, DeadlineExceeded
from isthmus.model.key import Key
from isthmus.model.kind import Kind
from isthmus.serve.kube.paging import read_continue
from isthmus.serve.kube.query import Query, Reader, shown
from isthmus.serve.kube.selector import EVERYTHING, Selector, parse_fields, parse_labels

MAX_MANAGER = 128
"""Longest name of a field manager (Kubernetes: FieldManagerMaxLength)."""


class Match(StrEnum):
    """resourceVersionMatch: how a list relates to the revision it names."""

    UNSET = ""
    EXACT = "Exact"
    NOT_OLDER_THAN = "NotOlderThan"


class Validation(StrEnum):
    """fieldValidation: what becomes of fields that the kind does not have."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class GetOptions(msgspec.Struct, frozen=True):
    """One object: at least as new as `revision`; 0 asks for whatever is at hand."""

    revision: int | None = None


class ListOptions(msgspec.Struct, frozen=True):
    """What a list asks for.

    `revision` None: the newest; 0: whatever is at hand; else as `match` says (unset: not older).
    `limit` 0: all. With `after` (from a continue token) the list goes on beyond that key, and
    `revision` is exact.
    """

    selector: Selector = EVERYTHING
    revision: int | None = None
    match: Match = Match.UNSET
    limit: int = 0
    after: Key | None = None
    timeout: int | None = None

    @property
    def exact(self) -> int:
        """The revision at which the list must be read; 0: any that is new enough."""
        exact = self.match is Match.EXACT or self.after is not None
        return (self.revision or 0) if exact else 0

    @property
    def at_least(self) -> int:
        """The oldest revision that will do; 0: any."""
        return 0 if self.exact else self.revision or 0


class WatchOptions(msgspec.Struct, frozen=True):
    """What a watch asks for.

    `revision` None or 0: begin with everything there is, as ADDED; else what came after it.
    `initial_events` True: everything there is, then a bookmark that says so, whatever the revision.
    `timeout` is in seconds, None for the server's own.
    """

    selector: Selector = EVERYTHING
    revision: int | None = None
    initial_events: bool | None = None
    bookmarks: bool = False
    timeout: int | None = None

    @property
    def from_start(self) -> bool:
        """Whether the watch begins with ADDED for all that exists."""
        if self.initial_events is not None:
            return self.initial_events
        return not self.revision


class WriteOptions(msgspec.Struct, frozen=True):
    """What create, update and patch ask for; `force` belongs to server-side apply."""

    manager: str = ""
    validation: Validation = Validation.WARN
    dry_run: bool = False
    force: bool = False


def _selector(reader: Reader, kind: Kind) -> Selector:
    labels, fields = reader.text("labelSelector"), reader.text("fieldSelector")
    try:
        return Selector(parse_labels(labels), parse_fields(fields, kind))
    except BadRequest as fault:
        reader.attempt(fault)
        return EVERYTHING


def is_watch(query: Query) -> bool:
    """Whether a GET of a collection (or, deprecated, of an object) is a watch."""
    return Reader(query, "ListOptions").flag("watch") or False


def get_options(query: Query) -> GetOptions:
    """The options of a GET of one object."""
    reader = Reader(query, "GetOptions")
    options = GetOptions(reader.revision())
    reader.done()
    return options


def list_options(query: Query, kind: Kind, namespace: str = "", secret: bytes = b"") -> ListOptions:
    """The options of a list of `kind` in `namespace` ("" for all), or all faults.

    A continue token must be one that `paging` made for this list under the same `secret`.
    """
    reader = Reader(query, "ListOptions")
    match = Match(
        reader.choice("resourceVersionMatch", Match, reader.text("resourceVersionMatch")) or ""
    )
    revision, after = reader.revision(), None
    token = reader.text("continue")
    _list_rules(reader, match, revision, token)
    if token:
        try:
            revision, after = read_continue(token, kind, namespace, secret)
        except BadRequest as fault:
            reader.attempt(fault)
    options = ListOptions(
        selector=_selector(reader, kind),
        revision=revision,
        match=match,
        limit=max(0, reader.number("limit") or 0),
        after=after,
        timeout=_seconds(reader),
    )
    reader.done()
    return options


def _list_rules(reader: Reader, match: Match, revision: int | None, token: str) -> None:
    if token and revision:
        reader.unreadable("", "specifying resource version is not allowed when using continue")
    if match and revision is None and not token:
        reader.forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    if match and token:
        reader.forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
        )
    if match is Match.EXACT and revision == 0:
        reader.forbidden(
            "resourceVersionMatch",
            'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"',
        )
    if reader.flag("sendInitialEvents") is not None:
        reader.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def watch_options(query: Query, kind: Kind) -> WatchOptions:
    """The options of a watch of `kind`: BadRequest or Invalid with all faults."""
    reader = Reader(query, "ListOptions")
    initial = reader.flag("sendInitialEvents")
    _watch_rules(reader, initial=initial)
    options = WatchOptions(
        selector=_selector(reader, kind),
        revision=reader.revision(),
        initial_events=initial,
        bookmarks=reader.flag("allowWatchBookmarks") or False,
        timeout=_seconds(reader),
    )
    reader.done()
    return options


def _watch_rules(reader: Reader, *, initial: bool | None) -> None:
    text = reader.text("resourceVersionMatch")
    path, wanted = "resourceVersionMatch", Match.NOT_OLDER_THAN
    if initial is not None and text != wanted:
        reader.forbidden(
            path, f"sendInitialEvents requires setting resourceVersionMatch to {wanted}"
        )
    if not text:
        return
    if initial is None:
        reader.forbidden(
            path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if text != wanted:
        said = f'Unsupported value: {shown(text)}: supported values: "{wanted}"'
        reader.invalid(path, said, "FieldValueNotSupported")
    if reader.text("continue"):
        reader.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")


def _seconds(reader: Reader) -> int | None:
    """timeoutSeconds; what is not above 0 counts as not given."""
    seconds = reader.number("timeoutSeconds")
    return seconds if seconds and seconds > 0 else None


def too_new(asked: int, current: int) -> DeadlineExceeded:
    """What a read gets that waited in vain for a revision of the future: 504, try again."""
    return DeadlineExceeded(
        f"Too large resource version: {asked}, current: {current}",
        causes=(Cause("", "Too large resource version", "ResourceVersionTooLarge"),),
    )


# ---------------------------------------------------------------------------------------- writes


def write_options(query: Query, *, apply: bool = False) -> WriteOptions:
    """The options of create, update and patch; `apply` (server-side) must name its manager."""
    reader = Reader(query, "PatchOptions" if apply else "CreateOptions")
    manager = _manager(reader, apply=apply)
    if not apply and reader.flag("force") is not None:
        reader.forbidden("force", "may not be specified for non-apply patch")
    text = reader.text("fieldValidation")
    validation = reader.choice("fieldValidation", Validation, text) if text else None
    options = WriteOptions(
        manager=manager,
        validation=Validation(validation or Validation.WARN),
        dry_run=reader.dry_run(reader.values("dryRun")),
        force=reader.flag("force") or False,
    )
    reader.done()
    return options


def _manager(reader: Reader, *, apply: bool) -> str:
    manager = reader.text("fieldManager")
    if apply and not manager:
        reader.invalid(
            "fieldManager", "Required value: is required for apply patch", "FieldValueRequired"
        )
    if len(manager.encode()) > MAX_MANAGER:
        reader.invalid(
            "fieldManager",
            f"Too long: may not be more than {MAX_MANAGER} bytes",
            "FieldValueTooLong",
        )
    if not manager.isprintable():
        reader.invalid("fieldManager", "Invalid value: should only contain printable characters")
    return manager
