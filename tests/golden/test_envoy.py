"""Small meshes as Envoy is told of them: objects in, IR and resources beside, as readable text.

A scenario says what is in it and what to show: beginnings of resource names. The workload is pod
`shop/me`, unless it says `as` whom. Parts that are the same everywhere are shown by a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from isthmus.dialects.envoy import faults
from isthmus.engine import Query
from isthmus.ir.proxy import InboundName, OutboundName
from isthmus.mesh.inbound import inbound
from isthmus.mesh.outbound import outbound
from isthmus.mesh.proxy import proxy_view
from tests.support.envoys import TYPES, WORDS, Sidecar, pod, scenario, scenarios, summary
from tests.support.golden import Golden
from tests.support.plain import dumped

FOLDER = Path(__file__).parent / "sidecars"
FILES = sorted(FOLDER.glob("*.yaml"))


def shown(value: Any) -> str:  # noqa: ANN401 - whatever YAML can say
    return yaml.safe_dump(value, sort_keys=False, width=100, default_flow_style=None)


def names(sidecar: Sidecar) -> Iterator[str]:
    for type_url, word in WORDS.items():
        yield f"{word}: {' '.join(sidecar.names(type_url))}\n"


def ir(sidecar: Sidecar, shows: list[str]) -> Iterator[str]:
    """The cells of the mesh that the resources to be shown are made of."""
    view = sidecar.world.db.read(proxy_view, sidecar.asker.workload)
    assert view is not None
    if any(each.startswith(("svc", "p", "gateway~")) for each in shows):
        for name in view.upstreams:
            yield from cell(sidecar, outbound, name)
            found = sidecar.world.db.read(faults, name)
            yield dumped(found) if found else ""
    if any(each.startswith("in") for each in shows):
        for port in view.inbounds:
            yield from cell(sidecar, inbound, port)


def cell(
    sidecar: Sidecar, query: Query[..., msgspec.Struct], name: OutboundName | InboundName
) -> Iterator[str]:
    yield f"--- {query.__name__} {name.port}\n"
    yield dumped(sidecar.world.db.read(query, name))


def resources(sidecar: Sidecar, shows: list[str]) -> Iterator[str]:
    for type_url in TYPES:
        for name in sidecar.names(type_url):
            if name.startswith(tuple(shows)):
                told = sidecar.one(type_url, name)
                yield f"--- {WORDS[type_url]} {name}\n"
                sent = told.resource.clusters
                yield shown(summary(told.message) | ({"sends to": list(sent)} if sent else {}))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_sidecar_is_told(file: Path, golden: Golden) -> None:
    for name, said in scenarios(file).items():
        sidecar = Sidecar(scenario(said), pod(said.get("as", "shop/me")))
        shows: list[str] = said["show"]
        parts = [*names(sidecar), *ir(sidecar, shows), *resources(sidecar, shows)]
        golden(f"{file.stem}/{name}.txt", "".join(parts))
