"""Values of the IR as YAML, for golden files."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import yaml


def plain(value: object) -> Any:  # noqa: ANN401 - whatever YAML can say
    """A value as YAML: the type's name, and what differs from the defaults."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        said = {field.name: (getattr(value, field.name), field.default) for field in fields}
        kept = {name: plain(one) for name, (one, default) in said.items() if one != default}
        return {type(value).__name__: kept}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted((plain(one) for one in value), key=str)
    if isinstance(value, tuple):
        pairs = bool(value) and all(type(one) is tuple and len(one) == 2 for one in value)
        return dict(value) if pairs else [plain(one) for one in value]
    return value


def dumped(value: object) -> str:
    """That as text."""
    return yaml.safe_dump(plain(value), sort_keys=False, width=1000, default_flow_style=None)
