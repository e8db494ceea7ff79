"""Clients' questions over small meshes: what a port is told to be, case by case."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from isthmus.engine import View, query
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.census import Place
from isthmus.mesh.egress import network_of, network_ref
from isthmus.mesh.outbound import UNMANAGED, outbound, parent_ref, unmanaged
from isthmus.mesh.tables import SERVICES_BY_IP, Address
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, World
from tests.support.outbound_words import differences, policy

INSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")
CASES: dict[str, Any] = yaml.safe_load(  # noqa: TID251 - test data
    (Path(__file__).parent / "cases" / "outbound.yaml").read_text()
)


@query
def services_at(db: View, address: Address) -> tuple[ObjectKey, ...]:
    return SERVICES_BY_IP.get(db, address)


def told(world: World, client: str, ip: str, port: int) -> Outbound | None:
    """What a client in a namespace is told of an address, None if there is nobody."""
    services = world.db.read(services_at, Address(LOCAL, ip))
    if services:
        return world.db.read(outbound, OutboundName(parent_ref(services[0]), port, client))
    network = world.db.read(network_of, Place(LOCAL, client), ip)
    if network is not None:
        return world.db.read(outbound, OutboundName(network_ref(network), port, client))
    inside = any(ip_address(ip) in ip_network(each) for each in INSIDE)
    return None if inside else unmanaged(UNMANAGED, port)


def check(world: World, asks: list[Mapping[str, Any]]) -> None:
    for ask in asks:
        host, _, port = ask["to"].rpartition(":")
        found = told(world, ask.get("by", "mill"), host.strip("[]"), int(port))
        shown = policy(found) if found is not None else "nothing"
        assert not differences(ask["is"], shown, ask["to"])


@pytest.mark.parametrize("said", CASES.values(), ids=CASES)
def test_what_clients_are_told(said: Mapping[str, Any]) -> None:
    world = World(*said["objects"], cluster_networks=INSIDE)
    check(world, said["asks"])
    for step in said.get("then", ()):
        world.apply(*step.get("apply", ()))
        world.delete(*step.get("delete", ()))
        check(world, step["asks"])
