"""The Kind record: everything the house knows of a resource kind, in one place.

The API server, `kubectl get` columns, store keys, OpenAPI, defaults, checks and the mesh's tables
all read it. A new kind is a Struct (its view) and a Kind record in the module of its API group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from isthmus.errors import Cause
from isthmus.model.key import Key
from isthmus.model.names import Grammar, subdomain_problems
from isthmus.model.schema import Schema

Document = dict[str, Any]
"""A whole object as JSON: the truth. Typed views are made from it."""

Default = Callable[[Document], None]
"""Fills in what the writer left out, in place; must be idempotent."""

Carry = Callable[[Document, Document | None], None]
"""(new, old or None on create): what is taken over from the old object or given at birth.

Kubernetes: PrepareForCreate and PrepareForUpdate. Runs after defaults, before checks; idempotent.
"""

Check = Callable[[Document, Document | None], Iterable[Cause]]
"""(new, old or None) -> every fault with its path. Must stand any document that fits the schema."""

Warn = Callable[[Document, Document | None], Iterable[str]]
"""(new, old or None) -> what looks like a mistake and is allowed: texts of Warning headers.

Must stand any document that fits the schema, as checks must.
"""

Convert = Callable[[Document, str, str], Document]
"""(document, from version, to version) -> the object in the other version; apiVersion stays."""


class Column(msgspec.Struct, frozen=True):
    """One column of `kubectl get`, after Name.

    `cell` makes the value from the document and `now` (seconds since the epoch, for ages): a
    string, an int, or None. `priority` above 0 shows the column only with `-o wide`.
    """

    name: str
    cell: Callable[[Document, float], str | int | None]
    type: str = "string"
    priority: int = 0
    description: str = ""


class Scale(msgspec.Struct, frozen=True):
    """Where `/scale` reads and writes, as dotted paths (as a CustomResourceDefinition says it)."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "spec.selector"


class Own(msgspec.Struct, frozen=True):
    """What a version has of its own; every one of these is the same in all of a built-in kind."""

    status: bool
    scale: Scale | None
    field_selectors: Mapping[str, str]


class Version(msgspec.Struct, frozen=True):
    """One version of a kind. Every served version may be written and read."""

    name: str
    schema: Schema
    columns: tuple[Column, ...] = ()
    served: bool = True
    named: bool = True
    """Whether the table begins with Name; only events do not."""
    deprecated: str = ""
    """The text of the Warning header when this version is used, or ""."""
    check: tuple[Check, ...] = ()
    """The rules for who writes in this version, in place of the kind's; empty: the kind's."""
    own: Own | None = None
    """What a CustomResourceDefinition says of this version alone; None: as the kind."""


class Kind(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A resource kind.

    `view` decodes stored bytes to the frozen Struct that the mesh reads; fields it does not name
    are left out. `stored` is the version objects are kept in. `persisted` is False for kinds that
    are only questions (TokenReview, SubjectAccessReview). `generation` says whether a change
    outside metadata and status counts generations. `custom` kinds are custom resources to kubectl:
    no strategic merge patch, no protobuf.
    """

    group: str
    name: str
    plural: str
    singular: str
    versions: tuple[Version, ...]
    stored: str
    view: type[msgspec.Struct]
    namespaced: bool = True
    grammar: Grammar = subdomain_problems
    """What names of this kind must look like."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    scale: Scale | None = None
    default: tuple[Default, ...] = ()
    carry: tuple[Carry, ...] = ()
    check: tuple[Check, ...] = ()
    ruled: bool = False
    """Whether its schema has rules in CEL. (Kinds of definitions ask theirs in `check`.)"""
    warn: tuple[Warn, ...] = ()
    convert: Convert | None = None
    persisted: bool = True
    generation: bool = True
    custom: bool = True
    definition: str = ""
    """The uid of the CustomResourceDefinition that the kind was made from; "" for built-in kinds.
    Types and rules of its schema are the business of `check` then, and objects are fitted to their
    version's schema whenever they are read."""
    edition: str = ""
    """Names what the definition says: a kind of another edition is shown otherwise."""
    keeps_unknown: bool = False
    """Fields that the schema does not know are stored where the writer's fieldValidation lets them
    pass, for a condition to tell of them; otherwise they are dropped, as Kubernetes does."""
    cleanup: str = ""
    """A finalizer that a delete adds: a controller has work to do before the object goes."""
    field_selectors: Mapping[str, str] = {}
    """Field selector name -> dotted path, beyond metadata.name and metadata.namespace."""
    verbs: tuple[str, ...] = (
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    )  # fmt: skip

    @property
    def resource(self) -> str:
        """`services`, or `servers.policy.linkerd.io`: the first part of a store key."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def version(self, name: str) -> Version | None:
        """The served version of this name, or None."""
        return next((v for v in self.versions if v.name == name and v.served), None)

    def seen_in(self, version: Version) -> Kind:
        """The kind as requests in `version` meet it: its subresources, what selects its objects.

        One value for each version, made once.
        """
        if version.own is None:
            return self
        made: dict[str, Kind] = self.__dict__.setdefault("_seen", {})
        if version.name not in made:
            made[version.name] = msgspec.structs.replace(
                self,
                status=version.own.status,
                scale=version.own.scale,
                field_selectors=version.own.field_selectors,
            )
        return made[version.name]

    def written_in(self, version: Version) -> Kind:
        """The kind as who writes in `version` meets it: by the rules of that version."""
        return msgspec.structs.replace(self, check=version.check) if version.check else self

    def api_version(self, version: str = "") -> str:
        """`v1`, or `policy.linkerd.io/v1beta3`; the stored version unless named."""
        name = version or self.stored
        return f"{self.group}/{name}" if self.group else name

    def key(self, namespace: str, name: str) -> Key:
        """The store key of one object of this kind."""
        return Key(self.resource, namespace if self.namespaced else "", name)
