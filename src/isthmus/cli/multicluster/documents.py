"""How objects are printed for `kubectl apply -f -`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

Document = dict[str, Any]

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    metavar="yaml|json",
    help="Form of the objects.",
)


def text(documents: Iterable[Document], form: str) -> str:
    """YAML documents, each ended by `---`; or JSON, one object a line."""
    if form == "json":
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents)
    import yaml

    class Plain(yaml.SafeDumper):
        """Equal parts are written out, each in its place."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    return "".join(
        f"{yaml.dump(each, Dumper=Plain, sort_keys=False, allow_unicode=True, width=4096)}---\n"
        for each in documents
    )


def print_all(documents: Iterable[Document], form: str) -> None:
    """All of them, or none: what fails while they are made has printed nothing yet."""
    click.echo(text(list(documents), form), nl=False)


def named(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **fields: Any,  # noqa: ANN401  # any part of an object
) -> Document:
    """An object, without the parts that are empty."""
    metadata: Document = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
