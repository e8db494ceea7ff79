from __future__ import annotations

import json

import msgspec
import pytest

from isthmus.store.kubernetes import objects
from isthmus.store.kubernetes.resources import BY_NAME, Resource
from tests.support.compact import Document

SLICES = BY_NAME["endpointslices.discovery.k8s.io"]
ENDPOINTS = BY_NAME["endpoints"]
OURSELVES = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0", "::",
             "224.0.0.1", "255.255.255.255", "localhost", "127.1", 7]  # fmt: skip


def read(resource: Resource, document: Document) -> Document:
    raw = {"metadata": {"name": "x", "namespace": "shop"}, **document}
    found = objects.item(msgspec.Raw(json.dumps(raw).encode()), resource, resource.versions[0])
    assert found is not None
    read: Document = json.loads(found[1])
    return read


@pytest.mark.parametrize("ip", OURSELVES)
def test_a_slice_of_another_cluster_leads_nobody_to_themselves(ip: object) -> None:
    said = {"endpoints": [{"addresses": [ip]}, {"addresses": ["10.1.0.1", ip], "zone": "z"}]}
    assert read(SLICES, said)["endpoints"] == [{"addresses": ["10.1.0.1"], "zone": "z"}]


@pytest.mark.parametrize("ip", OURSELVES)
def test_nor_do_endpoints(ip: object) -> None:
    said = {"subsets": [{"addresses": [{"ip": ip}, {"ip": "10.1.0.1"}], "ports": [{"port": 1}],
                         "notReadyAddresses": [{"ip": ip}]}]}  # fmt: skip
    held = {"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 1}], "notReadyAddresses": []}
    assert read(ENDPOINTS, said)["subsets"] == [held]


@pytest.mark.parametrize("ip", ["10.1.0.1", "fd00::1", "2001:db8::1", "::ffff:10.1.0.1"])
def test_addresses_of_others_stay(ip: str) -> None:
    said = {"endpoints": [{"addresses": [ip]}]}
    assert read(SLICES, said)["endpoints"] == said["endpoints"]


@pytest.mark.parametrize("junk", [None, 7, "x", [7], [{"addresses": 7}], [[]]])
def test_what_is_no_endpoint_is_left_to_who_reads_it(junk: object) -> None:
    assert read(SLICES, {"endpoints": junk})["endpoints"] == junk
    assert read(ENDPOINTS, {"subsets": junk})["subsets"] == junk
