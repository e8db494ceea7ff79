"""OpenAPI v2 (Swagger), made from the v3 documents.

For `kubectl explain --output=plaintext-openapiv2`, and for the check that kubectl makes itself
where a kind has no PATCH. v2 says less: what it cannot say (alternatives, null, fields beyond those
named) is left out, and with it whatever would have a client refuse what the server takes. One
`Part` per group and version; a document is its parts joined: a new kind costs its own part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.serve.kube import gnostic
from isthmus.serve.kube.blob import Blob, blob

MEDIA: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

Node = dict[str, Any]

_V3_REFERENCE: Final = "#/components/schemas/"
_V2_REFERENCE: Final = "#/definitions/"

_KEPT: Final = (
    "format", "title", "description", "default", "multipleOf", "maximum", "exclusiveMaximum",
    "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems",
    "maxProperties", "minProperties", "enum", "type", "required",
)  # fmt: skip
"""Keywords that v2 has too, of those that our v3 documents use."""

_METHODS: Final = ("get", "put", "post", "delete", "patch")


class Said(NamedTuple):
    """One definition or path in both forms."""

    json: msgspec.Raw
    encoded: bytes


class Part(NamedTuple):
    """What one group and version adds, by name: bytes alone, so that keeping it costs little."""

    definitions: Mapping[str, Said]
    paths: Mapping[str, Said]


def part(document: Mapping[str, Any], known: Mapping[str, Said]) -> Part:
    """The part of a v3 document. `known`: definitions made before, which are taken as they are."""
    schemas: Mapping[str, Node] = document["components"]["schemas"]
    definitions = {
        name: known.get(name) or _said(gnostic.definition, name, _definition(node))
        for name, node in schemas.items()
    }
    paths = {
        path: _said(gnostic.path, path, _path(item)) for path, item in document["paths"].items()
    }
    return Part(definitions, paths)


def _said(encode: Callable[[str, Node], bytes], name: str, node: Node) -> Said:
    return Said(msgspec.Raw(msgspec.json.encode(node)), encode(name, node))


def json(parts: Iterable[Part]) -> Blob:
    """The whole document as JSON."""
    paths, definitions = _joined(parts)
    whole = {
        "swagger": "2.0",
        "info": {"title": "isthmus", "version": "1"},
        "paths": {path: said.json for path, said in paths.items()},
        "definitions": {name: said.json for name, said in definitions.items()},
    }
    return blob(msgspec.json.encode(whole))


def protobuf(parts: Iterable[Part]) -> Blob:
    """The whole document as the protobuf message that kubectl reads."""
    paths, definitions = _joined(parts)
    told = (
        (said.encoded for said in paths.values()),
        (said.encoded for said in definitions.values()),
    )
    return blob(gnostic.document(*told), MEDIA)


def _joined(parts: Iterable[Part]) -> tuple[dict[str, Said], dict[str, Said]]:
    """All paths, and all definitions; of two by one name the first, which is built in."""
    paths: dict[str, Said] = {}
    definitions: dict[str, Said] = {}
    for each in parts:
        paths |= each.paths
        definitions = {**each.definitions, **definitions}
    return paths, definitions


# ---------------------------------------------------------------------------------------- schemas


def _definition(node: Node) -> Node:
    made = _node(node)
    # A text may be written as a number there: v2 clients take anything for a string.
    return made | {"type": "string"} if "oneOf" in node and "type" not in made else made


def _node(node: Node) -> Node:
    named = _reference(node)
    if named:
        return {"$ref": named} | _beside(node)
    made: Node = {name: node[name] for name in _KEPT if name in node} | _extensions(node)
    if "properties" in node:
        made["properties"] = {name: _node(each) for name, each in node["properties"].items()}
    if "items" in node:
        made["items"] = _node(node["items"])
    if "additionalProperties" in node:
        more = node["additionalProperties"]
        made["additionalProperties"] = _node(more) if isinstance(more, dict) else more
    return _loosened(made, node)


def _reference(node: Node) -> str:
    """What a node refers to: v3 writes it within allOf, for the sake of what stands beside."""
    within = node.get("allOf", ())
    inner = node if "$ref" in node else within[0] if len(within) == 1 else {}
    found = str(inner.get("$ref", ""))
    return found.replace(_V3_REFERENCE, _V2_REFERENCE, 1)


def _beside(node: Node) -> Node:
    return {n: node[n] for n in ("description", "default") if n in node} | _extensions(node)


def _extensions(node: Node) -> Node:
    return {name: value for name, value in node.items() if name.startswith("x-")}


def _loosened(made: Node, node: Node) -> Node:
    """Without what v2 clients would take for more than it says (as Kubernetes does for CRDs)."""
    gone: tuple[str, ...] = ()
    if node.get("nullable"):
        gone = ("type", "properties", "items", "additionalProperties", "required", "enum")
    elif node.get("x-kubernetes-preserve-unknown-fields"):
        gone = ("properties", "items", "additionalProperties", "required")
        if "properties" not in node:
            gone = ("type", *gone)
    elif node.get("x-kubernetes-int-or-string"):
        gone = ("type",)
    return {name: value for name, value in made.items() if name not in gone}


# ------------------------------------------------------------------------------------------ paths


def _path(item: Node) -> Node:
    made: Node = {method: _operation(item[method]) for method in _METHODS if method in item}
    return made | {"parameters": [_parameter(each) for each in item.get("parameters", ())]}


def _operation(operation: Node) -> Node:
    made: Node = {
        "operationId": operation["operationId"],
        "consumes": ["*/*"],
        "produces": ["application/json"],
        "parameters": [_parameter(each) for each in operation["parameters"]],
        "responses": dict(_responses(operation["responses"])),
    }
    return made | _extensions(operation)


def _parameter(said: Node) -> Node:
    schema: Node = said["schema"]
    return {name: value for name, value in said.items() if name != "schema"} | schema


def _responses(responses: Node) -> Iterator[tuple[str, Node]]:
    for code, answer in responses.items():
        schema = answer["content"]["application/json"]["schema"]
        yield code, {"description": answer["description"], "schema": _node(schema)}
