"""A small mesh to be asked by DNS, without sockets; dnspython reads what it answers."""

from __future__ import annotations

from dns import message, rcode, rdatatype, rrset

from isthmus.engine import Put
from isthmus.mesh.dns import HOSTS
from isthmus.serve.dns.machine import Resolver, Transport
from tests.support.compact import Compact, Name
from tests.support.meshworld import DOMAIN, World

SVC = f"svc.{DOMAIN}"
FEW = 6
MANY = 120

OBJECTS: tuple[Compact, ...] = (
    {
        "svc": "shop/cart",
        "ip": "10.96.0.7",
        "ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "tls"}],
    },
    {"svc": "shop/out", "type": "ExternalName"},
    {"svc": "shop/db", "ip": "None", "ports": [{"port": 5432, "name": "pg"}]},
    {
        "slice": "shop/db-1",
        "svc": "db",
        "ports": [{"name": "pg", "port": 5432}],
        "eps": [{"ip": f"10.0.0.{n}", "host": f"db-{n}"} for n in range(1, FEW + 1)],
    },
    {"svc": "shop/many", "ip": "None"},
    {
        "slice": "shop/many-1",
        "svc": "many",
        "eps": [{"ip": f"10.0.1.{n}"} for n in range(1, MANY + 1)],
    },
)


def small_mesh() -> World:
    """Services of every kind in the namespace `shop`, and the host `color`."""
    made = World(*OBJECTS, cluster_networks=("10.0.0.0/8",))
    made.write(Name(None, "namespaces", "", "shop"), {"metadata": {"name": "shop"}})
    near = {"type": "ExternalName", "externalName": f"cart.shop.{SVC}"}
    made.write("svc shop/near", {"metadata": {"name": "near", "namespace": "shop"}, "spec": near})
    lost = {"type": "ExternalName", "externalName": f"lost.shop.{SVC}"}
    made.write("svc shop/far", {"metadata": {"name": "far", "namespace": "shop"}, "spec": lost})
    made.db.commit([Put(HOSTS, "color", ("198.51.100.2", "2001:db8::2"))])
    return made


class Asker:
    """Asks one resolver. Every answer is read by dnspython, and must be one to the question."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or small_mesh()
        self.resolver = Resolver(self.world.db.read)

    def raw(self, packet: bytes, transport: Transport = Transport.UDP) -> bytes | None:
        return self.resolver.answer(packet, transport)

    def ask(
        self,
        name: str,
        kind: str = "A",
        transport: Transport = Transport.UDP,
        *,
        edns: int | bool = False,
        payload: int = 1232,
    ) -> message.Message:
        query = message.make_query(name, kind, use_edns=edns, payload=payload)
        answer = self.raw(query.to_wire(), transport)
        assert answer is not None
        read = message.from_wire(answer)
        assert query.is_response(read)
        return read


def code(answer: message.Message) -> str:
    return str(rcode.to_text(answer.rcode()))


def said(section: list[rrset.RRset]) -> list[str]:
    """Records as texts: `name TYPE data`."""
    return [
        f"{each.name.to_text(omit_final_dot=True)} {rdatatype.to_text(each.rdtype)} {one.to_text()}"
        for each in section
        for one in each
    ]
