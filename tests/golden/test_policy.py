"""Small meshes as clients behind linkerd2-proxies are told of them: OutboundPolicies as text.

The meshes are those that sidecars of Envoy are shown with (`sidecars`); a client of namespace
`shop` asks for every port of every Service, and of every EgressNetwork that it can dial.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import text_format

from isthmus.dialects.linkerd import outbound_policy, policy_faults
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.census import Place
from isthmus.mesh.proxy import proxy_view
from isthmus.mesh.resolution import Asked, Dialled, Named, resolved
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import outbound_pb2 as pb
from tests.support.envoys import pod, scenario, scenarios
from tests.support.golden import Golden
from tests.support.meshworld import LOCAL, World
from tests.support.plain import dumped

FOLDER = Path(__file__).parent / "sidecars"
FILES = ("egress", "protocols", "routes", "traffic")
CLIENT = Place(LOCAL, "shop")
OUTSIDE = ("203.0.113.10", "198.51.100.7", "198.51.100.200")
PORTS = (80, 443, 5000, 8000, 9000)


def asked(world: World) -> Iterator[Asked]:
    view = world.db.read(proxy_view, pod("shop/me"))
    assert view is not None
    for name in view.upstreams:
        service = ObjectKey(LOCAL, name.parent.namespace, name.parent.name)
        yield Named(CLIENT, service, name.port)
    seen: set[OutboundName | None] = {None}
    for ip in OUTSIDE:
        for port in PORTS:
            one = Dialled(CLIENT, ip, port)
            found: OutboundName | None = world.db.read(resolved, one)
            if found not in seen:
                seen.add(found)
                yield one


def told(world: World, one: Asked) -> Iterator[str]:
    where = (
        f"{one.ip}" if isinstance(one, Dialled) else f"{one.service.name}.{one.service.namespace}"
    )
    yield f"--- {where}:{one.port}\n"
    found = pb.OutboundPolicy.FromString(world.db.read(outbound_policy, one))
    yield text_format.MessageToString(found)
    name = world.db.read(resolved, one)
    lacking = world.db.read(policy_faults, name) if name is not None else ()
    yield f"lacking:\n{dumped(lacking)}" if lacking else ""


@pytest.mark.parametrize("stem", FILES)
def test_what_a_client_is_told(stem: str, golden: Golden) -> None:
    for name, said in scenarios(FOLDER / f"{stem}.yaml").items():
        world = scenario(said)
        text = "".join(part for one in asked(world) for part in told(world, one))
        golden(f"{stem}/{name}.txt", text)
