"""A definition for tests: widgets, with everything that a definition may have."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Said = dict[str, Any]

TEXT: Said = {"type": "string"}

SCHEMA: Said = {
    "type": "object",
    "description": "A thing to be sold.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["color"],
            "properties": {
                "color": {**TEXT, "enum": ["red", "green", "blue"]},
                "replicas": {"type": "integer", "default": 1, "minimum": 0, "maximum": 100},
                "parts": {
                    "type": "array",
                    "maxItems": 16,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {**TEXT, "maxLength": 9},
                            "weight": {"type": "integer"},
                        },
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "self.replicas <= 10 || self.color == 'red'", "message": "too many"},
                {"rule": "self.color == oldSelf.color", "message": "color is fixed"},
            ],
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": TEXT, "note": TEXT},
        },
    },
}

SUBRESOURCES: Said = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


def version(name: str = "v1", *, storage: bool = True, **more: Any) -> Said:  # noqa: ANN401 - JSON
    """A served version."""
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": deepcopy(SCHEMA)},
        "subresources": deepcopy(SUBRESOURCES),
        "selectableFields": [{"jsonPath": ".spec.color"}],
    } | more


def definition(*versions: Said, group: str = "shop.example.com", **names: Any) -> Said:  # noqa: ANN401 - JSON
    """The definition of widgets, or of what `names` says."""
    named: Said = {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    named |= {"shortNames": ["wg"], "categories": ["toys"], **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{named['plural']}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": named,
            "versions": list(versions) or [version()],
        },
    }


def widget(name: str = "a", **spec: Any) -> Said:  # noqa: ANN401 - JSON
    """A widget."""
    return {
        "apiVersion": "shop.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"color": "red", **spec},
    }
