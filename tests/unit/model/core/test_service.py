from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from isthmus.model.core import SERVICE, Service
from isthmus.model.intake import faults, view
from tests.unit.model.objects import made, paths, row, told, written


def service(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a spec
    return made(SERVICE, spec={"ports": [{"port": 80}], **spec})


def test_defaults_of_a_cluster_ip() -> None:
    assert written(SERVICE, service())["spec"] == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilyPolicy": "SingleStack",
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_defaults_follow_what_was_said() -> None:
    ports = [{"port": 80, "targetPort": 0}, {"name": "b", "port": 81, "targetPort": "http"}]
    spec = written(SERVICE, service(type="LoadBalancer", ports=ports))["spec"]
    assert [port["targetPort"] for port in spec["ports"]] == [80, "http"]
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert spec["allocateLoadBalancerNodePorts"] is True
    spec = written(SERVICE, service(sessionAffinity="ClientIP"))["spec"]
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    spec = written(SERVICE, service(clusterIP="fd00::1"))["spec"]
    assert (spec["clusterIPs"], spec["ipFamilies"]) == (["fd00::1"], ["IPv6"])
    spec = written(SERVICE, service(clusterIPs=["None"]))["spec"]
    assert spec["clusterIP"] == "None"
    both = {"clusterIPs": ["10.0.0.1", "fd00::1"], "ipFamilyPolicy": "PreferDualStack"}
    assert written(SERVICE, service(**both))["spec"]["ipFamilies"] == ["IPv4", "IPv6"]


def test_an_external_name_has_no_cluster_defaults() -> None:
    document = made(SERVICE, spec={"type": "ExternalName", "externalName": "color.example.org"})
    assert written(SERVICE, document)["spec"] == {
        "type": "ExternalName",
        "externalName": "color.example.org",
        "sessionAffinity": "None",
    }
    assert told(SERVICE, document) == []


def test_status_is_not_for_creators() -> None:
    document = service() | {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    assert "status" not in written(SERVICE, document)


ALLOTTED = {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"]}


def stored(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a spec
    return written(SERVICE, service(**{**ALLOTTED, **spec}))


def test_an_address_is_kept_when_a_replacement_leaves_it_out() -> None:
    new = written(SERVICE, service(), stored())
    assert new["spec"]["clusterIP"] == "10.96.0.7"
    assert told(SERVICE, service(), stored()) == []


def test_an_address_taken_over_brings_its_list_and_family() -> None:
    """An unknown policy, a fault told elsewhere, must not hide the address from the lists."""
    old = service(clusterIP="fd00::7", ipFamilyPolicy="Odd")
    new = service(ipFamilyPolicy="Odd")
    for carry in SERVICE.carry:
        carry(new, old)
    assert new["spec"]["clusterIPs"] == ["fd00::7"]
    assert new["spec"]["ipFamilies"] == ["IPv6"]


def test_an_address_may_not_change() -> None:
    other = {"clusterIP": "10.96.0.8", "clusterIPs": ["10.96.0.8"]}
    (cause,) = told(SERVICE, service(**other), stored())
    assert cause.path == "spec.clusterIPs[0]"
    assert cause.message == 'Invalid value: ["10.96.0.8"]: may not change once set'
    six = {"ipFamilies": ["IPv6"], "clusterIP": "fd00::1", "clusterIPs": ["fd00::1"]}
    assert paths(SERVICE, service(**six), stored()) == ["spec.clusterIPs[0]", "spec.ipFamilies[0]"]


def test_becoming_an_external_name_gives_the_address_back() -> None:
    new = deepcopy(stored())
    new["spec"] |= {"type": "ExternalName", "externalName": "x.example.org"}
    after = written(SERVICE, new, stored())
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & set(
        after["spec"]
    )
    assert told(SERVICE, new, stored()) == []
    back = deepcopy(after)
    back["spec"] |= {"type": "ClusterIP"}
    assert told(SERVICE, back, after) == []


def test_node_ports_stay_and_go_with_the_type() -> None:
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
    old = stored(type="NodePort", ports=ports)
    kept = written(SERVICE, service(type="NodePort"), old)["spec"]
    assert kept["ports"][0]["nodePort"] == 30080
    changed = deepcopy(old)
    changed["spec"]["type"] = "ClusterIP"
    gone = written(SERVICE, changed, old)["spec"]
    assert "nodePort" not in gone["ports"][0]
    assert "externalTrafficPolicy" not in gone
    assert told(SERVICE, changed, old) == []


def test_faults_of_ports() -> None:
    ports = [
        {"port": 0, "protocol": "ICMP", "targetPort": "UPPER_CASE_AND_LONG"},
        {"port": 80, "name": "Bad", "appProtocol": "a b", "nodePort": 30000, "targetPort": 70000},
        {"port": 80, "name": "Bad"},
    ]
    found = [(cause.path, cause.reason) for cause in told(SERVICE, service(ports=ports))]
    assert found == [
        ("spec.ports[0].name", "FieldValueRequired"),
        ("spec.ports[0].port", "FieldValueInvalid"),
        ("spec.ports[0].protocol", "FieldValueNotSupported"),
        ("spec.ports[0].targetPort", "FieldValueInvalid"),
        ("spec.ports[0].targetPort", "FieldValueInvalid"),
        ("spec.ports[1].name", "FieldValueInvalid"),
        ("spec.ports[1].targetPort", "FieldValueInvalid"),
        ("spec.ports[1].appProtocol", "FieldValueInvalid"),
        ("spec.ports[1].nodePort", "FieldValueForbidden"),
        ("spec.ports[2].name", "FieldValueDuplicate"),
        ("spec.ports[2]", "FieldValueDuplicate"),
        ("spec.ports[2].name", "FieldValueInvalid"),
    ]


def test_an_address_can_not_be_dropped() -> None:
    new = written(SERVICE, service(), stored())
    new["spec"] |= {"clusterIP": "", "clusterIPs": []}
    assert "spec.clusterIPs[0]" in [cause.path for cause in faults(SERVICE, new, stored())]


def test_ports_are_needed_except_where_they_are_not() -> None:
    assert paths(SERVICE, service(ports=[])) == ["spec.ports"]
    assert told(SERVICE, service(ports=[]))[0].message == "Required value"
    assert paths(SERVICE, service(ports=[], clusterIP="None")) == []


def test_one_port_number_in_two_protocols_is_fine() -> None:
    ports = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]
    assert told(SERVICE, service(ports=ports)) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"type": "Sometimes"}, "spec.type"),
        ({"sessionAffinity": "x"}, "spec.sessionAffinity"),
        ({"internalTrafficPolicy": "x"}, "spec.internalTrafficPolicy"),
        ({"externalTrafficPolicy": "x"}, "spec.externalTrafficPolicy"),
        ({"trafficDistribution": "x"}, "spec.trafficDistribution"),
        ({"ipFamilyPolicy": "x"}, "spec.ipFamilyPolicy"),
        ({"selector": {"a b": "c"}}, "spec.selector"),
        ({"externalIPs": ["x"]}, "spec.externalIPs[0]"),
        ({"loadBalancerSourceRanges": ["10.0.0.0"]}, "spec.loadBalancerSourceRanges[0]"),
        ({"clusterIP": "x"}, "spec.clusterIPs[0]"),
        ({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]}, "spec.clusterIPs"),
        ({"clusterIPs": ["10.0.0.1", "fd00::1", "10.0.0.3"]}, "spec.clusterIPs"),
        ({"clusterIP": "10.0.0.1", "ipFamilies": ["IPv6"]}, "spec.clusterIPs[0]"),
        ({"ipFamilies": ["IPv5"]}, "spec.ipFamilies[0]"),
        ({"ipFamilies": ["IPv4", "IPv4"]}, "spec.ipFamilies[1]"),
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]"),
        ({"type": "ExternalName"}, "spec.externalName"),
        ({"type": "ExternalName", "externalName": "a_b"}, "spec.externalName"),
        ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 99999}]}, "spec.ports[0].nodePort"),
        (
            {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 99999}},
            },
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        ),
    ],
)
def test_faults(spec: dict[str, Any], path: str) -> None:
    assert paths(SERVICE, service(**spec)) == [path]


def test_an_external_name_has_no_address() -> None:
    spec = {"type": "ExternalName", "externalName": "x.y.", "clusterIP": "10.0.0.1"}
    assert paths(SERVICE, service(**spec)) == ["spec.clusterIPs"]


def test_columns() -> None:
    assert row(SERVICE, stored(ports=[{"port": 80}, {"name": "b", "port": 443}]), wide=True) == {
        "Type": "ClusterIP",
        "Cluster-IP": "10.96.0.7",
        "External-IP": "<none>",
        "Port(s)": "80/TCP,443/TCP",
        "Age": "5m",
        "Selector": "<none>",
    }
    ports = [{"port": 80, "nodePort": 30080}]
    shown = row(
        SERVICE, stored(type="NodePort", ports=ports, selector={"b": "2", "a": "1"}), wide=True
    )
    assert (shown["Port(s)"], shown["Selector"]) == ("80:30080/TCP", "a=1,b=2")
    assert row(SERVICE, stored(externalIPs=["1.2.3.4"]))["External-IP"] == "1.2.3.4"


def test_columns_of_other_types() -> None:
    balanced = stored(type="LoadBalancer", externalIPs=["9.9.9.9"])
    assert row(SERVICE, stored(type="LoadBalancer"))["External-IP"] == "<pending>"
    balanced["status"] = {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "a.b"}]}}
    assert row(SERVICE, balanced)["External-IP"] == "2.2.2.2,a.b,9.9.9.9"
    name = made(SERVICE, spec={"type": "ExternalName", "externalName": "x.y"})
    shown = row(SERVICE, name)
    assert (shown["Cluster-IP"], shown["External-IP"], shown["Port(s)"]) == (
        "<none>",
        "x.y",
        "<none>",
    )


def test_the_view_has_the_facts() -> None:
    document = stored(ports=[{"port": 80, "targetPort": "web", "appProtocol": "http"}])
    seen = view(SERVICE, msgspec.json.encode(document))
    assert isinstance(seen, Service)
    assert seen.spec.cluster_ips == ("10.96.0.7",)
    assert seen.spec.ports[0].target_port == "web"
    assert seen.spec.ports[0].app_protocol == "http"
    assert seen.spec.internal_traffic_policy == "Cluster"
