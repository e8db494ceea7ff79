from __future__ import annotations

import pytest

from isthmus.dialects.envoy import names
from isthmus.dialects.envoy.names import Address, Port
from isthmus.dialects.xds.ports import read_port
from isthmus.ir.names import Dns, Ref, Spiffe
from isthmus.ir.proxy import OutboundName


def test_names_lead_back_to_what_they_name() -> None:
    name = names.service(OutboundName(Ref("here", "", "Service", "shop", "cart"), 80, ""))
    kind, rest = names.split(name)
    assert (kind, names.read_service(rest)) == ("svc", Port("shop", "cart", 80))
    kind, rest = names.split(names.address(names.IP, "fd00::1", 5432))
    assert (kind, names.read_address(rest)) == ("ip", Address("fd00::1", 5432))


def test_identities_stand_in_names_as_in_certificates() -> None:
    assert names.direct(Dns("a.b"), linkerd=False) == "direct|a.b"
    assert names.direct(Spiffe("td", ("x",)), linkerd=True) == "direct-linkerd|spiffe://td/x"


def test_a_name_without_a_kind_is_its_own() -> None:
    assert names.split("inbound") == ("", "inbound")
    assert names.split("x" * 3000) == ("", "")


@pytest.mark.parametrize("rest", ["", "cart:80", "/cart:80", "shop/:80", "shop/cart", "shop/cart:"])
def test_what_is_no_port_of_a_service(rest: str) -> None:
    assert names.read_service(rest) is None


@pytest.mark.parametrize("rest", ["", "10.1.0.1", "|80", "10.1.0.1|x"])
def test_what_is_no_address(rest: str) -> None:
    assert names.read_address(rest) is None


@pytest.mark.parametrize(
    ("text", "port"),
    [("0", 0), ("65535", 65535), ("65536", None), ("08", None), ("", None), ("-1", None),
     ("1e3", None), ("123456", None), ("\u0668", None)],
)  # fmt: skip
def test_a_port_is_written_in_one_way(text: str, port: int | None) -> None:
    assert read_port(text) == port
