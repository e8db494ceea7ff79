"""An Envoy's page with every counter of ours, and what is made of it."""

from __future__ import annotations

import re

from isthmus.agent.metrics import export

IP = "10.1.0.9"
HTTP = "core|Service|faces|smiley|80||gateway.networking.k8s.io|HTTPRoute|faces|r"
GRPC = HTTP.replace("HTTPRoute", "GRPCRoute")
BACKEND = "core|Service|faces|smiley|80|"
SERVER = "policy.linkerd.io|server|web|8080"
SERVED = f"{SERVER}||default|default||"
LIMIT = "policy.linkerd.io|HTTPLocalRateLimitPolicy|slow|total"
CONNECTED, ENDED = "TcpUpstreamConnected", "TcpConnectionEnd"


def counted(counter: str, *groups: str, times: int = 1) -> str:
    return f'envoy_isthmus_{counter}{{labels="{";".join(groups)}"}} {times}\n'


def timed(counter: str, *groups: str) -> str:
    labels, name = f'labels="{";".join(groups)}"', f"envoy_isthmus_{counter}_ms"
    buckets = "".join(f'{name}_bucket{{{labels},le="{le}"}} 1\n' for le in ("50", "+Inf"))
    return f"{buckets}{name}_sum{{{labels}}} 9\n{name}_count{{{labels}}} 1\n"


def everything() -> str:
    """What the agent makes of all counters, in all their families."""
    page = "envoy_server_live{} 1\n"
    for route in (HTTP, GRPC):
        page += counted("outbound_http", route, BACKEND, "200", "0", "-", "2", "smiley")
        page += counted("outbound_http", route, BACKEND, "503", "14", "URX", "3", "smiley")
        page += counted("outbound_http", route, BACKEND, "503", "", "UF", "1", "smiley")
        page += counted("outbound_try", route, BACKEND, "503", "14", "-")
        page += timed("outbound_http", route, BACKEND)
    for kind in ("TCPRoute", "TLSRoute"):
        route = HTTP.replace("HTTPRoute", kind)
        for what in (CONNECTED, ENDED):
            page += counted("outbound_tcp", route, BACKEND, what, "-", IP, "80", "a.example")
    page += counted("inbound_http", SERVED, "200", "", "-", "8080", "default/x", "me")
    page += counted("inbound_http", SERVED, "403", "", "-", "8080", "", "me")
    page += counted("inbound_http", f"{SERVED}|{LIMIT}", "429", "", "RL", "8080", "", "me")
    page += counted("inbound_lost", SERVER, "8080", "")
    page += timed("inbound_http", SERVED)
    for opened, what in ((f"{SERVER}|default|x", CONNECTED), (f"{SERVER}||", ENDED)):
        page += counted("inbound_tcp", opened, what, "-", "80", "", "me")
    page += counted("inbound_tcp", f"{SERVER}|default|x", ENDED, "-", "80", "", "")
    return export(page, IP)


def series() -> dict[str, set[str]]:
    """The names of all series, with those of their labels."""
    found: dict[str, set[str]] = {}
    for line in everything().splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', rest))
    return found
