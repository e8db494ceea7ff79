"""Routes that no admission ever saw: whatever is stored, Envoy takes what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.interop.test_envoy_validate import refusals
from tests.support.compact import Document
from tests.support.envoys import Sidecar, pod, static
from tests.support.keys import identity
from tests.support.meshworld import World

TEXTS = (
    "", "a", "/", "/a", "/a?b", "/a#b", "//", "/%zz", "*", "*.", "*.a", "a.*", "a b", "\x00", "\n",
    "(", "[a", "a" * 3000, "é", "host", "Host", ":path", "%", "%REQ(x)%", "{a}", "x:y", "-", "a_b",
    "..", "/a/../b", "grpc-status", "te", "0", "00", "-1", "1e9", "\\1", "\\", "$0",
)  # fmt: skip
NUMBERS = (0, 1, 80, -1, 70_000, 2**31, 2**40, 443, 8_000)


class Dice:
    """Parts of routes, at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.of = self.random.choice

    def text(self) -> str:
        return self.of(TEXTS)

    def number(self) -> int:
        return self.of(NUMBERS)

    def some(self, make: Callable[[], Any], most: int) -> list[Any]:
        return [make() for _ in range(self.random.randint(0, most))]

    def value(self) -> Document:
        kind = self.of(("Exact", "RegularExpression", "Odd"))
        return {"name": self.text(), "value": self.text(), "type": kind}

    def pair(self) -> Document:
        return {"name": self.text(), "value": self.text()}

    def change(self) -> Document:
        kind = self.of(("ReplaceFullPath", "ReplacePrefixMatch", "Odd"))
        return {"type": kind, "replaceFullPath": self.text(), "replacePrefixMatch": self.text()}

    def filter(self) -> Document:
        headers = {
            "set": self.some(self.pair, 2),
            "add": self.some(self.pair, 2),
            "remove": self.some(self.text, 2),
        }
        share = {"numerator": self.number(), "denominator": self.number()}
        redirect: Document = {"path": self.change(), "port": self.number()}
        redirect |= {"scheme": self.of(("http", "https"))} if self.of((True, False)) else {}
        kinds: list[Document] = [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": headers},
            {"type": "ResponseHeaderModifier", "responseHeaderModifier": headers},
            {"type": "RequestRedirect", "requestRedirect": redirect},
            {"type": "RequestRedirect", "requestRedirect": {"hostname": self.text()}},
            {"type": "URLRewrite", "urlRewrite": {"path": self.change()}},
            {"type": "URLRewrite", "urlRewrite": {"hostname": self.text()}},
            {
                "type": "RequestMirror",
                "requestMirror": {"backendRef": {"name": "till", "port": 80}, "fraction": share},
            },
            {"type": self.text()},
        ]
        return self.of(kinds)

    def backend(self) -> Document:
        return {
            "name": self.of(("cart", "till", "gone", self.text())),
            "port": self.of((80, 80, self.number())),
            "weight": self.of((1, 1, 0, self.number())),
            "kind": self.of(("Service", "Service", "EgressNetwork", "Bucket")),
            "group": self.of(("", "", "policy.linkerd.io")),
            "filters": self.some(self.filter, 1),
        }

    def http_match(self) -> Document:
        kind = self.of(("Exact", "PathPrefix", "RegularExpression", "Odd"))
        return {
            "path": {"type": kind, "value": self.text()},
            "headers": self.some(self.value, 1),
            "queryParams": self.some(self.value, 1),
            "method": self.of(("GET", "", "get x")),
        }

    def call_match(self) -> Document:
        kind = self.of(("Exact", "RegularExpression"))
        method = {"type": kind, "service": self.text(), "method": self.text()}
        return {"method": method, "headers": self.some(self.value, 1)}

    def rule(self, match: Callable[[], Document]) -> Document:
        return {
            "matches": self.some(match, 3),
            "filters": self.some(self.filter, 2),
            "backendRefs": self.some(self.backend, 3),
            "timeouts": {"request": self.of(("1s", "99999999h", self.text()))},
            "retry": {"codes": [self.number()], "attempts": self.number()},
        }


def spec(dice: Dice, service: str, port: int, rules: list[Document]) -> Document:
    group = "policy.linkerd.io"
    parents = [
        {"group": "", "kind": "Service", "name": service},
        {"group": group, "kind": "EgressNetwork", "name": "net", "port": port},
    ]
    said = {"timeout.linkerd.io/request": dice.text(), "retry.linkerd.io/limit": dice.text()}
    found = {"parentRefs": parents, "hostnames": dice.some(dice.text, 4), "rules": rules}
    return {"metadata": {"annotations": said}, "spec": found}


def world(dice: Dice) -> World:
    names = ("cart", "till", "rpc", "tls", "tcp")
    made = World(
        {"ns": "shop"},
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"},
        *(
            {"svc": f"shop/{name}", "ip": f"10.96.0.{at}", "ports": [80]}
            for at, name in enumerate(names, 10)
        ),
        cluster_networks=("10.0.0.0/8",),
        service_networks=("10.96.0.0/16",),
    )
    networks = [
        {"cidr": dice.of(("192.0.2.0/24", "2001:db8::/32", dice.text())), "except": [dice.text()]}
    ]
    policy = {"trafficPolicy": dice.of(("Allow", "Deny", "odd")), "networks": networks}
    made.write("egress shop/net", {"metadata": {}, "spec": policy})
    streams = [{"backendRefs": [dice.backend() for _ in range(3)]}]
    for at in range(3):
        http = [dice.rule(dice.http_match) for _ in range(3)]
        calls = [dice.rule(dice.call_match) for _ in range(3)]
        made.write(f"route shop/h{at}", spec(dice, "cart", 80, http))
        made.write(f"groute shop/g{at}", spec(dice, "rpc", 8000, calls))
        made.write(f"tlsroute shop/t{at}", spec(dice, "tls", 443, streams))
        made.write(f"tcproute shop/c{at}", spec(dice, "tcp", 5000, streams))
    return made


@pytest.mark.parametrize("seed", range(12))
def test_envoy_takes_whatever_is_stored(seed: int, tmp_path: Path) -> None:
    identity(tmp_path)
    told = list(Sidecar(world(Dice(seed)), pod("shop/me")).told())
    assert refusals(tmp_path, static(told)) == ""
