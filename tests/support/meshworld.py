"""A mesh in memory: objects in the compact notation, questions as proxies ask them.

No store, no server, no loop: rows are made of the documents' bytes, as the board makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address

import msgspec

from isthmus.dialects.linkerd import (
    AddressBook,
    Fault,
    addresses,
    delta,
    get_question,
    profile_bytes,
    profile_question,
)
from isthmus.engine import Change, Database, Delete, Put
from isthmus.mesh import SOURCES
from isthmus.mesh.asked import GetKey, ProfileKey
from isthmus.mesh.clusters import LINKED, Cluster
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.model.annotations import Ports, port_list
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.proto.linkerd import net_pb2
from tests.support.compact import Compact, Document, Name, document, name_in, name_of

LOCAL = "here"
MESH = "isthmus"
DOMAIN = "mesh.test"
TRUST = "trust.mesh.test"
DEFAULT_OPAQUE = "25,587,3306,4444,5432,6379,9300,11211"

Held = dict[tuple[str, int], tuple[dict[str, str], pb.WeightedAddr]]
"""What a client knows: by address, all labels and the rest."""


def ports(text: str) -> Ports:
    """A list of ports as a setting."""
    found = port_list(text)
    assert isinstance(found, Ports)
    return found


def settings(**changes: object) -> MeshSettings:
    """Settings of a small mesh; transport headers only where they are needed."""
    usual = MeshSettings(
        cluster=LOCAL,
        cluster_domain=DOMAIN,
        trust_domain=TRUST,
        control_plane_namespace=MESH,
        default_opaque_ports=ports(DEFAULT_OPAQUE),
        transport_header=False,
    )
    return msgspec.structs.replace(usual, **changes)


class World:
    """Objects and the database over them."""

    def __init__(self, *objects: Compact, **changes: object) -> None:
        self.db = Database()
        self.db.commit([Put(SETTINGS, WHOLE, settings(**changes))])
        self.apply(*objects)

    def apply(self, *objects: Compact) -> None:
        """Create or replace objects, in one revision."""
        self.db.commit([change for each in objects for change in self._put(each)])

    def delete(self, *names: str) -> None:
        """Delete objects (`pod shop/cart-a`), in one revision."""
        self.db.commit([self._gone(name_in(text)) for text in names])

    def write(self, where: Name | str, written: Document) -> None:
        """Create or replace an object as a document; of its metadata, what is said."""
        where = name_in(where) if isinstance(where, str) else where
        self.db.commit([self._row(where, written)])

    def remove(self, where: Name) -> None:
        """Delete an object that was written as a document."""
        self.db.commit([self._gone(where)])

    def link(self, name: str, trust_domain: str = "", cluster_domain: str = "") -> None:
        """Link a cluster, or unlink it if nothing is said of it."""
        cluster = Cluster(trust_domain, cluster_domain) if trust_domain else None
        self.db.commit([Put(LINKED, name, cluster) if cluster else Delete(LINKED, name)])

    def _put(self, compact: Compact) -> Iterable[Change]:
        if "link" in compact:
            if not {"type", "no_label", "no_trust"} & compact.keys():
                yield Put(LINKED, compact["link"], _linked(compact))
            return
        yield self._row(name_of(compact), document(compact, MESH))

    def _row(self, where: Name, written: Document) -> Change:
        source = SOURCES[where.resource]
        return Put(source.table, _key(where), source.row(msgspec.json.encode(written)))

    def _gone(self, where: Name) -> Change:
        return Delete(SOURCES[where.resource].table, _key(where))

    # Questions.

    def get_key(self, path: str, token: str = "") -> GetKey | Fault:
        """What a Get asks for."""
        return get_question(self.db.read, request(path, token))

    def profile_key(self, path: str, token: str = "") -> ProfileKey | Fault:
        """What a GetProfile asks for."""
        return profile_question(self.db.read, request(path, token))

    def book(self, path: str, token: str = "") -> AddressBook:
        """What a Get stream should hold."""
        key = self.get_key(path, token)
        assert isinstance(key, GetKey), key
        return self.db.read(addresses, key)

    def get(self, path: str, token: str = "") -> Held:
        """What a fresh client of Get holds."""
        return fold({}, delta(None, self.book(path, token)))

    def profile(self, path: str, token: str = "") -> pb.DestinationProfile:
        """What a fresh client of GetProfile holds."""
        key = self.profile_key(path, token)
        assert isinstance(key, ProfileKey), key
        return pb.DestinationProfile.FromString(self.db.read(profile_bytes, key))


def _linked(compact: Compact) -> Cluster:
    """`mesh`, `own` and `dead` stand beside what credentials say."""
    return Cluster(
        compact["trust"],
        compact["domain"],
        control_plane_namespace=compact.get("mesh", ""),
        own_name=compact.get("own", ""),
        usable=not compact.get("dead", False),
    )


def _key(where: Name) -> ObjectKey:
    return ObjectKey(where.cluster or LOCAL, where.namespace, where.name)


def request(path: str, token: str = "") -> bytes:
    """A GetDestination as a proxy sends it."""
    return pb.GetDestination(path=path, context_token=token).SerializeToString()


def fold(held: Held, messages: Sequence[bytes]) -> Held:
    """What a client holds after these messages: addresses win over the labels of their set."""
    for message in messages:
        update = pb.Update.FromString(message)
        match update.WhichOneof("update"):
            case "add":
                common = dict(update.add.metric_labels)
                for each in update.add.addrs:
                    labels = common | dict(each.metric_labels)
                    each.ClearField("metric_labels")
                    held[socket(each.addr)] = labels, each
            case "remove":
                for gone in update.remove.addrs:
                    held.pop(socket(gone), None)
            case "no_endpoints":
                held.clear()
    return held


def socket(address: net_pb2.TcpAddress) -> tuple[str, int]:
    """An address of the wire, as text and port."""
    ip = address.ip
    if ip.WhichOneof("ip") == "ipv4":
        return str(IPv4Address(ip.ipv4)), address.port
    return str(IPv6Address(ip.ipv6.first << 64 | ip.ipv6.last)), address.port
