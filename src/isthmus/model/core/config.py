"""ConfigMap, Secret and ServiceAccount: what workloads are given."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, text_column
from isthmus.model.document import get, mapping, settle, text, texts, truth
from isthmus.model.faults import forbidden, immutable, invalid, required, too_long
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.names import config_key_problems
from isthmus.model.wire.schemas import schema_of

MAX_DATA: Final = 1024 * 1024
"""Bytes of all values of a ConfigMap or a Secret together."""


class ConfigMap(View, frozen=True):
    """core/v1 ConfigMap."""

    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class Secret(View, frozen=True):
    """core/v1 Secret. The values of `data` are base64 text."""

    metadata: Meta = Meta()
    type: str = "Opaque"
    data: Mapping[str, str] = {}


class ServiceAccount(View, frozen=True):
    """core/v1 ServiceAccount: that it exists."""

    metadata: Meta = Meta()


def _count(document: Document, _now: float) -> int:
    return len(mapping(document, "data")) + len(mapping(document, "binaryData"))


_DATA: Final = Column("Data", _count, "integer")

# ------------------------------------------------------------------------------------ ConfigMap


def _config_faults(document: Document, old: Document | None) -> Iterator[Cause]:
    plain, binary = texts(document, "data"), texts(document, "binaryData")
    yield from _key_faults(plain, "data")
    yield from _key_faults(binary, "binaryData")
    for key in sorted(plain.keys() & binary.keys()):
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for value in plain.values()) + _decoded_size(binary)
    if size > MAX_DATA:
        yield too_long("", MAX_DATA)
    yield from _frozen_faults(document, old, ("data", "binaryData"))


def _key_faults(data: Mapping[str, str], path: str) -> Iterator[Cause]:
    for key in data:
        for problem in config_key_problems(key):
            yield invalid(f"{path}[{key}]", key, problem)


def _decoded_size(data: Mapping[str, str]) -> int:
    return sum(len(value) * 3 // 4 - value[-2:].count("=") for value in data.values())


def _frozen_faults(
    document: Document, old: Document | None, names: tuple[str, ...]
) -> Iterator[Cause]:
    if old is None or not truth(old, "immutable"):
        return
    if not truth(document, "immutable"):
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    for name in names:
        if mapping(document, name) != mapping(old, name):
            yield forbidden(name, "field is immutable when `immutable` is set")


# --------------------------------------------------------------------------------------- Secret


def _fold_text(document: Document) -> None:
    """`stringData` is for writers only: it goes into `data`, base64, and over what stands there."""
    plain = texts(document, "stringData")
    if plain:
        data = document.setdefault("data", {})
        data.update({key: b64encode(value.encode()).decode() for key, value in plain.items()})
    document.pop("stringData", None)


def _default_type(document: Document) -> None:
    settle(document, "type", "Opaque")


_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _secret_faults(document: Document, old: Document | None) -> Iterator[Cause]:
    data, purpose = texts(document, "data"), text(document, "type")
    yield from _key_faults(data, "data")
    if _decoded_size(data) > MAX_DATA:
        yield too_long("data", MAX_DATA)
    for key in _NEEDED.get(purpose, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if purpose == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    if purpose == "kubernetes.io/service-account-token":
        annotation = "kubernetes.io/service-account.name"
        if not texts(document, "metadata.annotations").get(annotation):
            yield required(f"metadata.annotations[{annotation}]")
    if old is not None and text(old, "type") and purpose != text(old, "type"):
        yield immutable("type", purpose)
    yield from _frozen_faults(document, old, ("data",))


# --------------------------------------------------------------------------------------- records


def _secrets(document: Document, _now: float) -> int:
    return len(get(document, "secrets") or ())


CONFIG_MAP: Final = Kind(
    group="",
    name="ConfigMap",
    plural="configmaps",
    singular="configmap",
    short_names=("cm",),
    versions=(Version("v1", schema_of("core.v1.ConfigMap"), columns=(_DATA, AGE)),),
    stored="v1",
    view=ConfigMap,
    status=False,
    check=(_config_faults,),
    generation=False,
    custom=False,
)

SECRET: Final = Kind(
    group="",
    name="Secret",
    plural="secrets",
    singular="secret",
    versions=(
        Version(
            "v1", schema_of("core.v1.Secret"), columns=(text_column("Type", "type"), _DATA, AGE)
        ),
    ),
    stored="v1",
    view=Secret,
    status=False,
    default=(_fold_text, _default_type),
    check=(_secret_faults,),
    field_selectors={"type": "type"},
    generation=False,
    custom=False,
)

SERVICE_ACCOUNT: Final = Kind(
    group="",
    name="ServiceAccount",
    plural="serviceaccounts",
    singular="serviceaccount",
    short_names=("sa",),
    versions=(
        Version(
            "v1",
            schema_of("core.v1.ServiceAccount"),
            columns=(Column("Secrets", _secrets, "integer"), AGE),
        ),
    ),
    stored="v1",
    view=ServiceAccount,
    status=False,
    generation=False,
    custom=False,
)
