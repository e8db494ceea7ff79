"""What a case of tests/interop/cases/multicluster expects, compared with what is there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.support.compact import Document
from tests.support.linked import MC, LinkedWorld

MEMBERS = "multicluster.linkerd.io/remote-discovery"

Wanted = Mapping[str, Any]


async def faults(world: LinkedWorld, wanted: Wanted, writes: int) -> AsyncIterator[str]:
    """In what the world is not as wanted; nothing when it is."""
    if "writes" in wanted and writes != wanted["writes"]:
        yield f"{writes} writes"
    for namespace, names in wanted.get("services", {}).items():
        found = await world.here.names("services", namespace)
        if not fits(found, names):
            yield f"services of {namespace}: {found}"
    for path, said in wanted.get("service", {}).items():
        async for fault in _service(world, path, said):
            yield f"{path}: {fault}"
    for path, said in wanted.get("endpoints", {}).items():
        async for fault in _endpoints(world, path, said):
            yield f"endpoints of {path}: {fault}"
    for more in (_namespaces, _reports, _conditions, _events):
        async for fault in more(world, wanted):
            yield fault


async def _events(world: LinkedWorld, wanted: Wanted) -> AsyncIterator[str]:
    events = await world.here.all("events", MC)
    for text in wanted.get("events", ()):
        if not any(text in f"{each['reason']} {each['message']}" for each in events):
            yield f"no event says {text}: {events}"


def fits(found: list[str], wanted: list[str]) -> bool:
    """Whether names are those: a name that ends in `/regular expression/` stands for one."""
    if len(found) != len(wanted):
        return False
    patterns = [re.fullmatch(r"([^/]*)/(.*)/", each) for each in wanted]
    plain = [each for each, pattern in zip(wanted, patterns, strict=True) if pattern is None]
    rest = [each for each in found if each not in plain]
    loose = [re.escape(pattern[1]) + pattern[2] for pattern in patterns if pattern is not None]
    matched = all(any(re.fullmatch(one, name) for one in loose) for name in rest)
    return set(plain) <= set(found) and len(rest) == len(loose) and matched


async def _service(world: LinkedWorld, path: str, said: Wanted) -> AsyncIterator[str]:
    found = await world.service(path)
    if found is None:
        yield "is not there"
        return
    for fault in _keys(found["metadata"], said):
        yield fault
    spec, notes = found["spec"], found["metadata"].get("annotations", {})
    if "ports" in said and _ports(spec["ports"]) != [_port(each) for each in said["ports"]]:
        yield f"ports {spec['ports']}"
    if "headless" in said and (spec["clusterIP"] == "None") is not said["headless"]:
        yield f"clusterIP {spec['clusterIP']}"
    if "members" in said and notes.get(MEMBERS, "").split(",") != said["members"]:
        yield f"members {notes.get(MEMBERS)}"
    held = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
    for kind, wanted in said.get("conditions", {}).items():
        for fault in _condition(held.get(kind), wanted):
            yield f"{kind}: {fault}"


def _keys(metadata: Document, said: Wanted) -> list[str]:
    found = []
    for section in ("labels", "annotations"):
        held = metadata.get(section, {})
        for name, value in said.get(section, {}).items():
            if held.get(name) != value:
                found.append(f"{section} {name} is {held.get(name)!r}")
    for path in said.get("lacks", ()):
        section, _, name = path.partition("/")
        if name in metadata.get(section, {}):
            found.append(f"has {path}")
    return found


def _port(said: Wanted) -> dict[str, Any]:
    port = {"protocol": "TCP", "port": said["port"], "targetPort": said.get("target", said["port"])}
    return port | ({"name": said["name"]} if "name" in said else {})


def _ports(ports: list[Document]) -> list[Document]:
    """Exactly these: neither node ports nor application protocols are copied."""
    return [dict(each) for each in ports]


async def _endpoints(world: LinkedWorld, path: str, said: Wanted | None) -> AsyncIterator[str]:
    found = await world.endpoints(path)
    if said is None or found is None:
        if found is not None or said is not None:
            yield f"{found}"
        return
    for fault in _keys(found["metadata"], said):
        yield fault
    subsets = found.get("subsets") or []
    for word, field in (("ready", "addresses"), ("resting", "notReadyAddresses")):
        listed = [one["ip"] for subset in subsets for one in subset.get(field, [])]
        if word in said and listed != said[word]:
            yield f"{word} {listed}"
    ports = {port.get("name"): port["port"] for subset in subsets for port in subset["ports"]}
    if "ports" in said and ports != said["ports"]:
        yield f"ports {ports}"
    if "hosts" in said:
        hosts = {o["hostname"]: o["ip"] for subset in subsets for o in subset["addresses"]}
        wanted = {host: await _address(world, to) for host, to in said["hosts"].items()}
        if hosts != wanted:
            yield f"hosts {hosts}, not {wanted}"


async def _address(world: LinkedWorld, path: str) -> str:
    found = await world.service(path)
    return found["spec"]["clusterIP"] if found is not None else ""


async def _namespaces(world: LinkedWorld, wanted: Wanted) -> AsyncIterator[str]:
    for name, labels in wanted.get("namespace", {}).items():
        found = await world.here.get("namespaces", name, "")
        if (found is None) is not (labels is None):
            yield f"namespace {name}: {found}"
        elif found is not None:
            for fault in _keys(found["metadata"], {"labels": labels}):
                yield fault


async def _reports(world: LinkedWorld, wanted: Wanted) -> AsyncIterator[str]:
    for link, lists in wanted.get("reports", {}).items():
        for which, said in lists.items():
            found = await world.reports(link, which)
            if found.keys() != said.keys():
                yield f"{which} reports of {link}: {sorted(found)}"
                continue
            for path, each in said.items():
                for fault in _report(found[path], each):
                    yield f"{which} report of {path} on {link}: {fault}"


async def _conditions(world: LinkedWorld, wanted: Wanted) -> AsyncIterator[str]:
    for link, conditions in wanted.get("link", {}).items():
        status = await world.status(link)
        held = {each["type"]: each for each in status["conditions"]}
        for kind, said in conditions.items():
            for fault in _condition(held.get(kind), said):
                yield f"{link}: {kind}: {fault}"


def _report(found: Document, said: Wanted) -> list[str]:
    names = {name: found[name] for name in ("status", "reason") if name in said}
    faults = [f"{name} is {value}" for name, value in names.items() if value != said[name]]
    if "local" in said:
        ref = found.get("localRef")
        local = f"{ref['namespace']}/{ref['name']}" if ref else None
        faults += [f"stands here as {local}"] if local != said["local"] else []
    if said.get("message", "") not in found["message"]:
        faults.append(f"says {found['message']}")
    return faults


def _condition(found: Document | None, said: list[str] | None) -> list[str]:
    if said is None or found is None:
        return [] if found is None and said is None else [f"{found}"]
    status, reason, *text = said
    if (found["status"], found["reason"]) != (status, reason):
        return [f"{found}"]
    return [f"says {found['message']}" for one in text if one not in found["message"]]
