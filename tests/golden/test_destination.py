"""The corpus as the Destination service tells it: objects in, IR and messages of linkerd beside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from isthmus.dialects.linkerd import Fault, addresses, delta, faults, profile_bytes
from isthmus.mesh.endpoints import endpoint_sets
from isthmus.mesh.profiles import profile
from isthmus.mesh.settings import Http2Params
from isthmus.proto.linkerd import destination_pb2 as pb
from tests.support.golden import Golden
from tests.support.meshworld import World
from tests.support.plain import dumped

CORPUS = Path(__file__).parent / "corpus"


def lines(message: Message, indent: str = "  ") -> Iterator[str]:
    """A line per value of a field."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated and not is_map(field) else (value,):
            yield f"{indent}{field.name}: {shown(each)}\n"


def is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def shown(value: object) -> str:
    if isinstance(value, Message):
        return text_format.MessageToString(value, as_one_line=True)
    return str(dict(sorted(value.items())) if isinstance(value, Mapping) else value)


def messages(parts: Iterable[bytes]) -> Iterator[str]:
    for part in parts:
        update = pb.Update.FromString(part)
        kind = update.WhichOneof("update")
        assert kind is not None
        yield f"{kind}\n"
        yield from lines(getattr(update, kind))


def get(world: World, path: str, token: str) -> Iterator[str]:
    key = world.get_key(path, token)
    if isinstance(key, Fault):
        yield f"{key.status}: {key.text}\n"
        return
    yield dumped(world.db.read(endpoint_sets, key))
    yield from messages(delta(None, world.db.read(addresses, key)))


def ask_profile(world: World, path: str, token: str) -> Iterator[str]:
    key = world.profile_key(path, token)
    if isinstance(key, Fault):
        yield f"{key.status}: {key.text}\n"
        return
    yield dumped(world.db.read(profile, key))
    if found := world.db.read(faults, key):
        yield dumped(found)
    yield from lines(pb.DestinationProfile.FromString(world.db.read(profile_bytes, key)))


def told(world: World, ask: dict[str, str]) -> Iterator[str]:
    token = json.dumps({"ns": ask.get("namespace", ""), "nodeName": ask.get("node", "")})
    yield f"##### {' '.join(f'{key}={value}' for key, value in ask.items())}\n"
    if "get" in ask:
        yield from get(world, ask["get"], token)
    else:
        yield from ask_profile(world, ask["profile"], token)


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.yaml")), ids=lambda file: file.stem)
def test_what_is_told(file: Path, golden: Golden) -> None:
    said = yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    settings = said.get("settings", {})
    if "meshed_http2" in settings:
        settings["meshed_http2"] = Http2Params(**settings["meshed_http2"])
    world = World(*said["objects"], **settings)
    text = "".join(part for ask in said["asks"] for part in told(world, ask))
    golden(f"{file.stem}.txt", text)
