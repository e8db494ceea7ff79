"""Reading a structural schema, and refusing one that is not: every reason with its path.

A schema comes from outside: recursive references are refused with all references, the number of
nodes is bounded, and no keyword is trusted to be of its type (below `items` the API has no types).
The rules are those of Kubernetes ("Specifying a structural schema"); paths are written as its API
server writes them: `properties[spec].items.type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from isthmus.errors import Cause
from isthmus.model.crd.nodes import NOTHING, TYPES, Bounds, Node, Rule
from isthmus.model.document import json_type
from isthmus.model.faults import forbidden, invalid, not_supported, required, wrong_type
from isthmus.model.regex import regex_problems
from isthmus.model.walk import MAX_FAULTS

MAX_NODES: Final = 20_000
"""Nodes of one schema. Reading one takes about 20 microseconds, and others wait meanwhile."""

MAX_NESTING: Final = 60
"""Nodes inside one another."""


class Read(NamedTuple):
    """A schema, as far as it could be read, and what is wrong with it."""

    root: Node
    faults: tuple[Cause, ...]


def read(said: object, path: str) -> Read:
    """The schema of a version, at `path` of its definition."""
    reader = _Reader()
    root = reader.root(said, path)
    return Read(root, tuple(reader.faults[:MAX_FAULTS]))


class _TooMany(Exception):
    """More nodes than are read."""


_UNSUPPORTED: Final = (
    "$ref",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
    "additionalItems",
)
_OF_STRUCTURE: Final = (
    "description", "type", "default", "nullable", "additionalProperties", "title",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip
"""What no node inside allOf, anyOf, oneOf and not may say."""

_KNOWN: Final = frozenset(
    (
        *_UNSUPPORTED, *_OF_STRUCTURE, "$schema", "format", "pattern", "enum", "required",
        "properties", "items", "allOf", "anyOf", "oneOf", "not", "maximum", "minimum",
        "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength",
        "maxItems", "minItems", "maxProperties", "minProperties", "uniqueItems", "example",
        "externalDocs",
    )
)  # fmt: skip


class _Reader:
    """One reading: its faults, and how much it has read."""

    def __init__(self) -> None:
        self.faults: list[Cause] = []
        self._nodes = 0

    def root(self, said: object, path: str) -> Node:
        try:
            node = self._node(said, path, 0)
        except _TooMany:
            self.faults = [forbidden(path, f"a schema may have at most {MAX_NODES} nodes")]
            return Node(type="object")
        if node.type != "object":
            self.faults.append(
                invalid(f"{path}.type", node.type, "must be object at the root")
                if node.type
                else required(f"{path}.type", "must be object at the root")
            )
        self._metadata(node, path)
        return node

    def _metadata(self, root: Node, path: str) -> None:
        """Metadata has its schema already; only what its names look like may be said."""
        meta = root.properties.get("metadata")
        if meta is None:
            return
        where = f"{path}.properties[metadata]"
        if (
            set(meta.properties) - {"name", "generateName"}
            or meta.rules
            or meta.default is not NOTHING
        ):
            says = "must not specify anything other than name and generateName, but metadata is"
            self.faults.append(forbidden(where, f"{says} implicitly specified"))
        for name, of in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
            held = root.properties.get(name)
            if held is not None and held.type != of:
                self.faults.append(
                    invalid(f"{path}.properties[{name}].type", held.type, f"must be {of}")
                )

    # ------------------------------------------------------------------------------ structure

    def _node(self, said: object, path: str, depth: int) -> Node:
        """A node of the structure, with all below it."""
        keywords = self._keywords(said, path, depth)
        node = self._inside(keywords, path, depth, logic=False)
        self._check_type(node, path)
        self._check_object(node, keywords, path)
        self._check_list(node, path)
        for part, where in _parts(node, path):
            self._complete(node, part, where, path)
        return node

    def _keywords(self, said: object, path: str, depth: int) -> Mapping[str, Any]:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _TooMany
        if not isinstance(said, dict):
            self.faults.append(_not_of_type(path, said, "object"))
            return {}
        if depth > MAX_NESTING:
            self.faults.append(forbidden(path, f"nested more than {MAX_NESTING} deep"))
            return {}
        for name in said:
            if name not in _KNOWN:
                self.faults.append(forbidden(f"{path}.{name}", "is no keyword of schemas"))
            elif name in _UNSUPPORTED and said[name] not in (None, "", {}, []):
                self.faults.append(forbidden(f"{path}.{name}", f"{name} is not supported"))
        if said.get("uniqueItems") is True:
            quadratic = "the runtime complexity becomes quadratic"
            why = f"uniqueItems cannot be set to true since {quadratic}"
            self.faults.append(forbidden(f"{path}.uniqueItems", why))
        return said

    def _inside(self, said: Mapping[str, Any], path: str, depth: int, *, logic: bool) -> Node:
        """What the keywords say. `logic`: the node stands in allOf, anyOf, oneOf or not."""
        get = _Getter(said, path, self.faults)
        values, is_open = (None, False) if logic else self._additional(get, depth)
        pattern = get.text("pattern")
        for problem in regex_problems(pattern) if pattern else ():
            self.faults.append(invalid(f"{path}.pattern", pattern, problem))
        items = said.get("items")
        if isinstance(items, list):
            says = "items must be a schema object and not an array"
            self.faults.append(forbidden(f"{path}.items", says))
            items = None
        below = self._logic if logic else self._node
        return Node(
            type=get.text("type"),
            description=get.text("description"),
            format=get.text("format"),
            pattern=pattern,
            nullable=get.truth("nullable"),
            default=said.get("default", NOTHING),
            enum=get.sequence("enum"),
            bounds=_bounds(get),
            required=get.texts("required"),
            properties={
                name: below(each, f"{path}.properties[{name}]", depth + 1)
                for name, each in get.mapping("properties").items()
            },
            values=values,
            open=is_open,
            items=None if items is None else below(items, f"{path}.items", depth + 1),
            all_of=self._several(get, "allOf", depth),
            any_of=self._several(get, "anyOf", depth),
            one_of=self._several(get, "oneOf", depth),
            negated=self._logic(said["not"], f"{path}.not", depth + 1) if said.get("not") else None,
            preserve=get.truth("x-kubernetes-preserve-unknown-fields"),
            embedded=get.truth("x-kubernetes-embedded-resource"),
            int_or_string=get.truth("x-kubernetes-int-or-string"),
            list_type=get.text("x-kubernetes-list-type"),
            list_keys=get.texts("x-kubernetes-list-map-keys"),
            map_type=get.text("x-kubernetes-map-type"),
            rules=self._rules(get),
            said=said,
        )

    def _additional(self, get: _Getter, depth: int) -> tuple[Node | None, bool]:
        said = get.said.get("additionalProperties")
        where = f"{get.path}.additionalProperties"
        if said is None or said is True:
            return None, said is True
        if said is False:
            self.faults.append(forbidden(where, "additionalProperties cannot be set to false"))
            return None, False
        return self._node(said, where, depth + 1), False

    def _several(self, get: _Getter, name: str, depth: int) -> tuple[Node, ...]:
        listed = get.sequence(name) or ()
        return tuple(
            self._logic(each, f"{get.path}.{name}[{at}]", depth + 1)
            for at, each in enumerate(listed)
        )

    def _rules(self, get: _Getter) -> tuple[Rule, ...]:
        found: list[Rule] = []
        name = "x-kubernetes-validations"
        for at, said in enumerate(get.sequence(name) or ()):
            where = f"{get.path}.{name}[{at}]"
            if not isinstance(said, dict):
                self.faults.append(_not_of_type(where, said, "object"))
                continue
            part = _Getter(said, where, self.faults)
            optional = said.get("optionalOldSelf")
            found.append(
                Rule(
                    rule=part.text("rule"),
                    message=part.text("message"),
                    message_expression=part.text("messageExpression"),
                    reason=part.text("reason") or "FieldValueInvalid",
                    field_path=part.text("fieldPath"),
                    optional_old_self=optional if isinstance(optional, bool) else None,
                )
            )
        return tuple(found)

    # ---------------------------------------------------------------------------------- logic

    def _logic(self, said: object, path: str, depth: int) -> Node:
        """A node of allOf, anyOf, oneOf or not: rules of values, no structure."""
        keywords = self._keywords(said, path, depth)
        # The one place where a type may be said again: integer or string, each alone.
        alone = set(keywords) == {"type"} and keywords["type"] in ("integer", "string")
        for name in _OF_STRUCTURE:
            if keywords.get(name) not in (None, "", False) and not (alone and name == "type"):
                self.faults.append(forbidden(f"{path}.{name}", "must be empty to be structural"))
        return self._inside(keywords, path, depth, logic=True)

    def _complete(self, outer: Node, part: Node, where: str, path: str) -> None:
        """Fields that a rule of values speaks of must be in the structure; nor may it say types."""
        if part.type and not (outer.int_or_string and not part.properties):
            self.faults.append(forbidden(f"{where}.type", "must be empty to be structural"))
        for name, inner in part.properties.items():
            held = outer.properties.get(name, outer.values)
            if held is None and not outer.open:
                missing = required(
                    f"{path}.properties[{name}]", f"because it is defined in {where}"
                )
                self.faults.append(missing)
            elif held is not None:
                self._complete(held, inner, f"{where}.properties[{name}]", path)
        if part.items is not None:
            if outer.items is None:
                missing = required(f"{path}.items", f"because it is defined in {where}.items")
                self.faults.append(missing)
            else:
                self._complete(outer.items, part.items, f"{where}.items", f"{path}.items")
        for inner, below in _parts(part, where):
            self._complete(outer, inner, below, path)

    # --------------------------------------------------------------------------------- checks

    def _check_type(self, node: Node, path: str) -> None:
        say = self.faults.append
        if node.type and node.type not in TYPES:
            say(not_supported(f"{path}.type", node.type, TYPES))
        if node.int_or_string and node.type:
            why = "must be empty if x-kubernetes-int-or-string is true"
            say(forbidden(f"{path}.type", why))
        if not node.type and not node.int_or_string and not node.preserve:
            of = "array items" if path.endswith(".items") else "object fields"
            say(required(f"{path}.type", f"must not be empty for specified {of}"))
        if node.items is not None and node.type != "array":
            say(
                forbidden(f"{path}.items", f"must not be specified for type {node.type or 'any'!r}")
            )
        if node.type == "array" and node.items is None:
            say(required(f"{path}.items", "must be specified"))

    def _check_object(self, node: Node, said: Mapping[str, Any], path: str) -> None:
        say = self.faults.append
        if said.get("x-kubernetes-preserve-unknown-fields") is False:
            where = f"{path}.x-kubernetes-preserve-unknown-fields"
            say(invalid(where, False, "must be true or undefined"))
        if node.properties and (node.values is not None or node.open):
            why = "additionalProperties and properties are mutual exclusive"
            say(forbidden(f"{path}.additionalProperties", why))
        holds = node.properties or node.values is not None or node.open
        if holds and node.type != "object":
            say(invalid(f"{path}.type", node.type, "must be object where fields are specified"))
        if node.preserve and node.type not in ("", "object"):
            why = "must be object if x-kubernetes-preserve-unknown-fields is true"
            say(invalid(f"{path}.type", node.type, why))
        if node.embedded and node.type != "object":
            why = "must be object if x-kubernetes-embedded-resource is true"
            say(invalid(f"{path}.type", node.type, why))
        if node.embedded and not (node.preserve or node.properties):
            why = "must not be empty if x-kubernetes-embedded-resource is true without"
            say(required(f"{path}.properties", f"{why} x-kubernetes-preserve-unknown-fields"))
        where = f"{path}.x-kubernetes-map-type"
        if node.map_type and node.map_type not in ("atomic", "granular"):
            say(not_supported(where, node.map_type, ("atomic", "granular")))
        if node.map_type and node.type != "object":
            why = "must be object if x-kubernetes-map-type is specified"
            say(invalid(f"{path}.type", node.type, why))

    def _check_list(self, node: Node, path: str) -> None:
        say, where = self.faults.append, f"{path}.x-kubernetes-list-type"
        if node.list_keys and node.list_type != "map":
            says = "must be map if x-kubernetes-list-map-keys is non-empty"
            say(invalid(where, node.list_type, says))
        if not node.list_type:
            return
        if node.list_type not in ("atomic", "set", "map"):
            say(not_supported(where, node.list_type, ("atomic", "map", "set")))
        if node.type != "array":
            why = "must be array if x-kubernetes-list-type is specified"
            say(invalid(f"{path}.type", node.type, why))
        items = node.items
        if items is not None and node.list_type == "set":
            whole = items.list_type in ("", "atomic") and (
                items.type != "object" or items.map_type == "atomic"
            )
            if items.nullable or not whole:
                why = "items of a set must be scalars or atomic, and may not be null"
                say(forbidden(f"{path}.items", why))
        if items is not None and node.list_type == "map":
            self._check_keys(node, items, path)

    def _check_keys(self, node: Node, items: Node, path: str) -> None:
        say, where = self.faults.append, f"{path}.x-kubernetes-list-map-keys"
        if not node.list_keys:
            say(required(where, "must not be empty if x-kubernetes-list-type is map"))
        if items.type != "object":
            why = "must be object if parent array's x-kubernetes-list-type is map"
            say(invalid(f"{path}.items.type", items.type, why))
        if items.nullable:
            say(forbidden(f"{path}.items.nullable", "cannot be nullable in a list of type map"))
        for at, key in enumerate(node.list_keys):
            held = items.properties.get(key)
            if held is None:
                say(invalid(f"{where}[{at}]", key, "entries must all be names of item properties"))
                continue
            if held.type in ("array", "object"):
                says = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                say(invalid(f"{path}.items.properties[{key}].type", held.type, says))
            if key not in items.required and held.default is NOTHING:
                says = (
                    "this property must either be required or have a default in a list of type map"
                )
                say(required(f"{path}.items.properties[{key}].default", says))
        if len(set(node.list_keys)) != len(node.list_keys):
            say(invalid(where, list(node.list_keys), "may not say a key twice"))


def _parts(node: Node, path: str) -> list[tuple[Node, str]]:
    """The nodes that a node combines, with their paths."""
    found = [
        (each, f"{path}.{name}[{at}]")
        for name, nodes in (("allOf", node.all_of), ("anyOf", node.any_of), ("oneOf", node.one_of))
        for at, each in enumerate(nodes)
    ]
    return [*found, (node.negated, f"{path}.not")] if node.negated is not None else found


# --------------------------------------------------------------------------------------- keywords


def _not_of_type(path: str, value: object, wanted: str) -> Cause:
    found = json_type(value)
    return wrong_type(path, found, f'{path} in body must be of type {wanted}: "{found}"')


class _Getter:
    """Keywords of one node by their types; what is of another type is a fault, and left out."""

    def __init__(self, said: Mapping[str, Any], path: str, faults: list[Cause]) -> None:
        self.said = said
        self.path = path
        self.faults = faults

    def _wrong(self, name: str, wanted: str) -> None:
        self.faults.append(_not_of_type(f"{self.path}.{name}", self.said[name], wanted))

    def text(self, name: str) -> str:
        value = self.said.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self._wrong(name, "string")
        return ""

    def truth(self, name: str) -> bool:
        value = self.said.get(name)
        if value is None or isinstance(value, bool):
            return value is True
        self._wrong(name, "boolean")
        return False

    def number(self, name: str) -> float | None:
        value = self.said.get(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        self._wrong(name, "number")
        return None

    def count(self, name: str) -> int | None:
        value = self.said.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self._wrong(name, "integer")
        return None

    def sequence(self, name: str) -> tuple[Any, ...] | None:
        value = self.said.get(name)
        if value is None or isinstance(value, list):
            return None if value is None else tuple(value)
        self._wrong(name, "array")
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        listed = self.sequence(name) or ()
        if not all(isinstance(each, str) for each in listed):
            self._wrong(name, "array of strings")
            return ()
        return listed

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.said.get(name)
        if value is None or isinstance(value, dict):
            return value or {}
        self._wrong(name, "object")
        return {}


_NUMBERS: Final = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip

_UNBOUNDED: Final = Bounds()


def _bounds(get: _Getter) -> Bounds:
    if not any(name in get.said for name in _NUMBERS):
        return _UNBOUNDED
    multiple = get.number("multipleOf")
    if multiple is not None and multiple <= 0:
        get.faults.append(invalid(f"{get.path}.multipleOf", multiple, "must be greater than 0"))
        multiple = None
    return Bounds(
        minimum=get.number("minimum"),
        maximum=get.number("maximum"),
        over_minimum=get.truth("exclusiveMinimum"),
        under_maximum=get.truth("exclusiveMaximum"),
        multiple_of=multiple,
        min_length=get.count("minLength"),
        max_length=get.count("maxLength"),
        min_items=get.count("minItems"),
        max_items=get.count("maxItems"),
        min_properties=get.count("minProperties"),
        max_properties=get.count("maxProperties"),
    )
