from __future__ import annotations

import pytest

from isthmus.mesh.addressed import (
    Nobody,
    Subject,
    ThePod,
    TheService,
    TheWorkload,
    holder,
    instance_of,
    subject,
    subject_refusal,
)
from isthmus.mesh.asked import AddressHost, InstanceHost, Refused, ServiceHost, Why
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

IP = "10.1.0.1"
CART = ObjectKey(LOCAL, "shop", "cart")


def key(name: str, namespace: str = "shop") -> ObjectKey:
    return ObjectKey(LOCAL, namespace, name)


def who(*objects: Compact, ip: str = IP, port: int = 8080) -> Subject:
    return World(*objects).db.read(holder, LOCAL, ip, port)


def pod(name: str, **said: object) -> Compact:
    return {"pod": f"shop/{name}", "ip": IP, **said}


def conflict(found: Subject) -> str:
    assert isinstance(found, Nobody)
    assert found.refused is not None
    assert found.refused.why is Why.CONFLICT
    return found.refused.text


def test_services_come_before_pods() -> None:
    service: Compact = {"svc": "shop/cart", "ip": IP, "ports": [8080]}
    assert who(service, pod("a")) == TheService(CART)
    assert who({**service, "ip": "None"}, pod("a")) == ThePod(key("a"), IP)


def test_addresses_are_compared_as_addresses() -> None:
    service: Compact = {"svc": "shop/cart", "ips": ["10.9.9.9", "2001:db8:0:0::10"]}
    assert who(service, ip="2001:db8::10") == TheService(CART)
    assert who({"pod": "shop/a", "ip": "2001:DB8::0:1"}, ip="2001:db8::1") == ThePod(
        key("a"), "2001:db8::1"
    )


def test_two_services_with_one_address_contradict_each_other() -> None:
    found = who({"svc": "shop/a", "ip": IP}, {"svc": "pay/b", "ip": IP})
    assert conflict(found) == f"found 2 services with conflicting cluster IP {IP}"


def test_a_pod_has_every_address_it_says() -> None:
    dual = {"pod": "shop/a", "ips": [IP, "2001:db8::a"]}
    assert who(dual, ip="2001:db8::a") == ThePod(key("a"), "2001:db8::a")


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        ([pod("a")], ThePod(key("a"), IP)),
        ([pod("a", phase="Pending")], Nobody(IP)),
        ([pod("a", phase="Succeeded")], Nobody(IP)),
        ([pod("a", deleting=True)], ThePod(key("a"), IP)),
        ([pod("a", deleting=True, phase="Pending")], Nobody(IP)),
        ([pod("a", deleting=True), pod("b")], ThePod(key("b"), IP)),
        ([pod("a", deleting=True), pod("b", phase="Pending")], Nobody(IP)),
        ([pod("a", deleting=True), pod("b", deleting=True)], ThePod(key("b"), IP)),
        ([pod("a", phase="Failed"), pod("b"), pod("c", phase="Succeeded")], ThePod(key("b"), IP)),
        ([pod("a", hostNetwork=True)], Nobody(IP)),
        ([pod("a", hostNetwork=True), pod("b")], ThePod(key("b"), IP)),
    ],
)
def test_which_pod_has_an_address(pods: list[Compact], found: Subject) -> None:
    assert who(*pods) == found


def test_two_live_pods_with_one_address_contradict_each_other() -> None:
    text = f"found 2 pods with a conflicting pod network IP {IP}"
    assert conflict(who(pod("a"), pod("b"))) == text
    assert conflict(who(pod("a"), pod("b", phase="Pending"), pod("c", deleting=True))) == text


HOST = "172.16.0.9"


def hosted(name: str, **said: object) -> Compact:
    ports = [{"port": 80, "host": 8080}]
    return {"pod": f"shop/{name}", "ip": "10.1.0.5", "hostIP": HOST, "ports": ports, **said}


def test_a_port_of_a_host_leads_to_the_pod_behind_it() -> None:
    assert who(hosted("a"), ip=HOST) == ThePod(key("a"), HOST)
    assert who(hosted("a"), ip=HOST, port=80) == Nobody(HOST)
    init = hosted("a", ports=[{"port": 80, "host": 8080, "init": True}])
    assert who(init, ip=HOST) == ThePod(key("a"), HOST)
    network = hosted("a", hostNetwork=True, ip=HOST)
    assert who(network, ip=HOST) == ThePod(key("a"), HOST)
    assert who(hosted("a", deleting=True), hosted("b"), ip=HOST) == ThePod(key("b"), HOST)


def test_two_live_pods_behind_one_port_of_a_host_contradict_each_other() -> None:
    text = f"found 2 pods with a conflicting host network endpoint {HOST}:8080"
    assert conflict(who(hosted("a"), hosted("b"), ip=HOST)) == text


def workload(name: str, port: int = 8080) -> Compact:
    return {"ew": f"shop/{name}", "ips": [IP], "ports": [{"port": port}]}


def test_a_workload_has_its_address_at_its_ports() -> None:
    assert who(workload("vm")) == TheWorkload(key("vm"), IP)
    assert who(workload("vm"), port=80) == Nobody(IP)
    assert who(workload("vm"), pod("a")) == ThePod(key("a"), IP)
    assert who(workload("vm"), workload("vn", 80)) == TheWorkload(key("vm"), IP)
    text = f"found 2 externalworkloads with a conflicting ip {IP}:8080"
    assert conflict(who(workload("vm"), workload("vn"))) == text


def test_an_address_in_a_text_has_brackets_where_it_needs_them() -> None:
    six = [{"ew": f"shop/{n}", "ips": ["2001:db8::1"], "ports": [{"port": 1}]} for n in "ab"]
    assert conflict(who(*six, ip="2001:db8::1", port=1)).endswith("ip [2001:db8::1]:1")


# ------------------------------------------------------------------------------ instances


def instance(*objects: Compact) -> Subject:
    return World(*objects).db.read(instance_of, CART, "a-0")


def part(*eps: Compact, name: str = "cart-1") -> Compact:
    return {"slice": f"shop/{name}", "svc": "cart", "ports": [80], "eps": eps}


def test_an_instance_is_the_pod_with_that_host_name_at_its_first_address() -> None:
    named = {"ip": "2001:db8::a", "pod": "a", "host": "a-0", "ready": False}
    dual = {"pod": "shop/a", "ips": [IP, "2001:db8::a"]}
    assert instance(part(named), dual) == ThePod(key("a"), IP)
    assert instance(part(named), {**dual, "phase": "Pending"}) == Nobody(IP)
    assert instance(part(named)) == Nobody("2001:db8::a")


def test_an_instance_that_is_no_pod_is_its_address() -> None:
    assert instance(part({"ip": "192.0.2.1", "host": "a-0"})) == Nobody("192.0.2.1")
    vm = part({"ip": "198.51.100.1", "ew": "vm", "host": "a-0"})
    assert instance(vm) == TheWorkload(key("vm"), "198.51.100.1")


def test_of_several_the_first_slice_counts() -> None:
    one, two = ({"ip": f"192.0.2.{at}", "host": "a-0"} for at in (1, 2))
    assert instance(part(two, name="b"), part({"ip": "192.0.2.9"}, one, name="a")) == Nobody(
        "192.0.2.1"
    )


def test_an_instance_of_nobody_is_refused() -> None:
    text = "no pod found in EndpointSlices of Service shop/cart for hostname a-0"
    assert instance() == Nobody("", Refused(Why.MISSING, text))
    assert instance(part({"ip": IP, "host": "a"})) == Nobody("", Refused(Why.MISSING, text))


def test_subjects_and_why_they_are_refused() -> None:
    world = World({"svc": "shop/cart", "ip": "10.9.9.9", "ports": [80]}, pod("a"), pod("b"))

    def refused(host: ServiceHost | InstanceHost | AddressHost) -> Why | None:
        found = world.db.read(subject_refusal, host, 80)
        return found.why if found is not None else None

    assert world.db.read(subject, ServiceHost(CART), 80) == TheService(CART)
    assert refused(ServiceHost(CART)) is None
    assert refused(AddressHost(LOCAL, "10.9.9.9")) is None
    assert refused(AddressHost(LOCAL, "192.0.2.1")) is None
    assert refused(AddressHost(LOCAL, IP)) is Why.CONFLICT
    assert refused(InstanceHost(CART, "a-0")) is Why.MISSING
    assert refused(ServiceHost(key("till"))) is Why.MISSING
    world.delete("pod shop/b")
    assert refused(AddressHost(LOCAL, IP)) is None
    world.apply({"svc": "shop/cart", "type": "ExternalName"})
    assert refused(ServiceHost(CART)) is Why.EXTERNAL_NAME
