"""What clients are told, read by dnspython."""

from __future__ import annotations

from typing import ParamSpec, TypeVar

import pytest
from dns import flags, message, rdatatype

from isthmus.engine import Query
from isthmus.serve.dns.machine import Resolver, Transport
from isthmus.serve.dns.machine.answers import finished
from tests.support.dnsworld import FEW, MANY, SVC, Asker, code, said, small_mesh
from tests.support.meshworld import DOMAIN

P = ParamSpec("P")
T = TypeVar("T")

CART = f"cart.shop.{SVC}"
DB = f"db.shop.{SVC}"
SOA = f"{DOMAIN} SOA ns.dns.{DOMAIN}. hostmaster.{DOMAIN}. 1 7200 1800 86400 5"


@pytest.fixture
def asker() -> Asker:
    return Asker()


def test_an_address(asker: Asker) -> None:
    answer = asker.ask(CART)
    assert code(answer) == "NOERROR"
    assert said(answer.answer) == [f"{CART} A 10.96.0.7"]
    assert answer.flags & flags.AA
    assert answer.flags & flags.RD
    assert not answer.flags & flags.RA
    assert answer.answer[0].ttl == 5


def test_the_question_is_repeated_as_it_was_written(asker: Asker) -> None:
    """Resolvers mix large and small letters to be sure of the answer."""
    name = "cArT.sHoP.SVC." + DOMAIN.upper()
    answer = asker.ask(name)
    assert answer.question[0].name.to_text(omit_final_dot=True) == name
    assert answer.answer[0].name.to_text(omit_final_dot=True) == name


@pytest.mark.parametrize("kind", ["AAAA", "MX", "TXT", "HTTPS", "SRV", "PTR", "SOA", "NS"])
def test_a_name_without_the_type_is_there_all_the_same(asker: Asker, kind: str) -> None:
    answer = asker.ask(CART, kind)
    assert (code(answer), said(answer.answer)) == ("NOERROR", [])
    assert said(answer.authority) == [SOA]


def test_a_missing_name_may_be_remembered_a_moment(asker: Asker) -> None:
    answer = asker.ask(f"none.shop.{SVC}")
    assert code(answer) == "NXDOMAIN"
    assert said(answer.authority) == [SOA]
    assert answer.authority[0].ttl == 5
    assert answer.flags & flags.AA


def test_the_way_of_a_search_path(asker: Asker) -> None:
    """`cart.shop` in the namespace `other`: nothing until the right suffix, then the answer."""
    tried = [f"cart.shop.{suffix}" for suffix in (f"other.{SVC}", SVC)]
    assert [code(asker.ask(name)) for name in tried] == ["NXDOMAIN", "NOERROR"]
    short = asker.ask("cart")
    assert (code(short), said(short.authority)) == ("NXDOMAIN", [])
    assert not short.flags & flags.AA


def test_a_foreign_name_is_refused(asker: Asker) -> None:
    answer = asker.ask("example.org")
    assert (code(answer), said(answer.authority)) == ("REFUSED", [])
    assert not answer.flags & flags.AA


def test_a_named_port_comes_with_the_address_of_its_target(asker: Asker) -> None:
    answer = asker.ask(f"_http._tcp.{CART}", "SRV")
    assert said(answer.answer) == [f"_http._tcp.{CART} SRV 0 100 80 {CART}."]
    assert said(answer.additional) == [f"{CART} A 10.96.0.7"]


def test_a_headless_service(asker: Asker) -> None:
    assert said(asker.ask(DB).answer) == [f"{DB} A 10.0.0.{n}" for n in range(1, FEW + 1)]
    assert said(asker.ask(f"db-2.{DB}").answer) == [f"db-2.{DB} A 10.0.0.2"]
    servers = asker.ask(f"_pg._tcp.{DB}", "SRV", edns=0)
    name = f"_pg._tcp.{DB}"
    assert said(servers.answer) == [
        f"{name} SRV 0 100 5432 db-{n}.{DB}." for n in range(1, FEW + 1)
    ]
    assert said(servers.additional) == [f"db-{n}.{DB} A 10.0.0.{n}" for n in range(1, FEW + 1)]


def test_an_external_name(asker: Asker) -> None:
    for kind in ("A", "CNAME", "AAAA"):
        answer = asker.ask(f"out.shop.{SVC}", kind)
        assert code(answer) == "NOERROR"
        assert said(answer.answer) == [f"out.shop.{SVC} CNAME outside.example.org."]


def test_an_alias_of_our_own_is_followed(asker: Asker) -> None:
    near = f"near.shop.{SVC}"
    alias = f"{near} CNAME {CART}."
    assert said(asker.ask(near).answer) == [alias, f"{CART} A 10.96.0.7"]
    assert said(asker.ask(near, "CNAME").answer) == [alias]
    assert said(asker.ask(near, "ANY").answer) == [alias]
    nothing = asker.ask(near, "AAAA")
    assert (said(nothing.answer), said(nothing.authority)) == ([alias], [SOA])


def test_an_alias_that_leads_to_nobody(asker: Asker) -> None:
    answer = asker.ask(f"far.shop.{SVC}")
    assert code(answer) == "NXDOMAIN"  # RFC 6604: the code is that of the last name
    assert said(answer.answer) == [f"far.shop.{SVC} CNAME lost.shop.{SVC}."]
    assert said(answer.authority) == [SOA]


def test_reverse(asker: Asker) -> None:
    answer = asker.ask("7.0.96.10.in-addr.arpa", "PTR")
    assert said(answer.answer) == [f"7.0.96.10.in-addr.arpa PTR {CART}."]
    missing = asker.ask("8.0.96.10.in-addr.arpa", "PTR")
    assert code(missing) == "NXDOMAIN"
    assert missing.authority[0].name.to_text() == "in-addr.arpa."
    assert code(asker.ask("8.8.8.8.in-addr.arpa", "PTR")) == "REFUSED"


def test_a_host_of_the_operator(asker: Asker) -> None:
    assert said(asker.ask("color").answer) == ["color A 198.51.100.2"]
    assert said(asker.ask("color", "AAAA").answer) == ["color AAAA 2001:db8::2"]
    assert code(asker.ask("color", "MX")) == "NOERROR"


def test_the_domain_itself(asker: Asker) -> None:
    assert said(asker.ask(DOMAIN, "SOA").answer) == [SOA]
    assert said(asker.ask(DOMAIN, "NS").answer) == [f"{DOMAIN} NS ns.dns.{DOMAIN}."]
    assert said(asker.ask(f"dns-version.{DOMAIN}", "TXT").answer) == [
        f'dns-version.{DOMAIN} TXT "1.1.0"'
    ]


def test_any_gets_one_set_of_records(asker: Asker) -> None:
    assert said(asker.ask("color", "ANY").answer) == ["color A 198.51.100.2"]
    assert said(asker.ask(f"shop.{SVC}", "ANY").answer) == []


def test_classes_transfers_and_newer_edns_are_declined(asker: Asker) -> None:
    chaos = message.make_query("version.bind", "TXT", "CH")
    refused = message.from_wire(asker.raw(chaos.to_wire()) or b"")
    assert code(refused) == "REFUSED"
    assert code(asker.ask(DOMAIN, "AXFR")) == "REFUSED"
    assert code(asker.ask(CART, edns=1)) == "BADVERS"


def test_edns_is_answered_in_kind(asker: Asker) -> None:
    assert asker.ask(CART).edns == -1
    query = message.make_query(CART, "A", use_edns=0, want_dnssec=True)
    answer = message.from_wire(asker.raw(query.to_wire()) or b"")
    assert (answer.edns, answer.payload) == (0, 1232)
    assert answer.ednsflags & flags.DO


# ------------------------------------------------------------------------------- size


@pytest.mark.parametrize(
    ("edns", "payload", "most"),
    [(False, 0, 512), (0, 512, 512), (0, 100, 512), (0, 1232, 1232), (0, 65535, 1232)],
)
def test_what_does_not_fit_is_cut_and_said_to_be(
    asker: Asker, edns: int | bool, payload: int, most: int
) -> None:
    query = message.make_query(f"many.shop.{SVC}", "A", use_edns=edns, payload=payload)
    raw = asker.raw(query.to_wire()) or b""
    assert most - 16 < len(raw) <= most
    answer = message.from_wire(raw)
    assert answer.flags & flags.TC
    assert 0 < len(said(answer.answer)) < MANY


def test_over_tcp_it_is_whole(asker: Asker) -> None:
    answer = asker.ask(f"many.shop.{SVC}", transport=Transport.TCP)
    assert not answer.flags & flags.TC
    assert len(said(answer.answer)) == MANY


def test_what_nobody_asked_for_goes_first(asker: Asker) -> None:
    answer = asker.ask(f"_pg._tcp.{DB}", "SRV", payload=512, edns=0)
    assert len(said(answer.answer)) == FEW
    assert said(answer.additional) == []
    assert not answer.flags & flags.TC


# ------------------------------------------------------------------------------- the cache


def test_an_answer_is_made_once_for_all_who_ask() -> None:
    asker = Asker()
    asker.ask(DB)
    before = asker.world.db.stats.evaluations
    for name in (DB, DB.upper(), DB):
        asker.ask(name)
    assert asker.world.db.stats.evaluations == before


def test_an_answer_follows_the_mesh() -> None:
    asker = Asker()
    assert len(said(asker.ask(DB).answer)) == FEW
    asker.world.delete("slice shop/db-1")
    assert said(asker.ask(DB).answer) == []
    asker.world.delete("svc shop/db")
    assert code(asker.ask(DB)) == "NXDOMAIN"


def test_another_change_keeps_the_bytes() -> None:
    made = small_mesh()
    before = made.db.read(finished, CART, int(rdatatype.A))
    made.apply({"svc": "shop/cart", "ip": "10.96.0.7", "labels": {"a": "b"}, "ports": [8080]})
    assert made.db.read(finished, CART, int(rdatatype.A)) is before


def test_a_fault_of_ours_is_told_as_such() -> None:
    packet = message.make_query(CART, "A").to_wire()
    answer = Resolver(Broken()).answer(packet, Transport.UDP)
    assert code(message.from_wire(answer or b"")) == "SERVFAIL"


class Broken:
    """A mesh with a bug in one of its queries."""

    def __call__(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        raise ZeroDivisionError


def test_answers_are_counted(asker: Asker) -> None:
    asker.ask(CART)
    asker.ask("none", transport=Transport.TCP)
    asker.raw(b"?")
    assert dict(asker.resolver.counts) == {("udp", "NOERROR"): 1, ("tcp", "NXDOMAIN"): 1}
    assert asker.resolver.dropped == 1
