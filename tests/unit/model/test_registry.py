from __future__ import annotations

import msgspec
import pytest

from isthmus.model import registry
from isthmus.model.core import SERVICE
from isthmus.model.key import Key
from isthmus.model.kind import Kind
from isthmus.model.registry import KINDS, Registry, split_api_version, version_rank


def test_a_kind_is_found_by_each_of_its_names() -> None:
    deployment = registry.by_kind("apps", "Deployment")
    assert deployment is not None
    assert registry.by_resource("apps", "deployments") is deployment
    assert registry.by_key_resource("deployments.apps") is deployment
    assert registry.by_api_version("apps/v1", "Deployment") is deployment
    assert registry.by_api_version("v1", "Service") is SERVICE
    assert SERVICE.key("faces", "face") == Key("services", "faces", "face")


def test_what_is_not_served_is_not_found() -> None:
    assert registry.by_api_version("apps/v1beta1", "Deployment") is None
    assert registry.by_api_version("v1", "Deployment") is None
    assert registry.by_resource("", "elephants") is None
    assert registry.by_key_resource("services.example.org") is None


def test_the_core_group_is_discovered_first() -> None:
    assert registry.groups()[0] == ""
    assert len(set(registry.groups())) == len(registry.groups())
    assert SERVICE in registry.of_version("", "v1")
    assert registry.of_version("", "v2") == ()


def test_versions_are_ordered_as_kubernetes_orders_them() -> None:
    names = ["v1", "v2", "v1beta1", "v1beta2", "v1alpha1", "foo", "v10", "valpha1", "v"]
    ordered = sorted(names, key=version_rank, reverse=True)
    assert ordered[:6] == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1"]
    assert set(ordered[6:]) == {"foo", "valpha1", "v"}


def test_api_versions_are_split() -> None:
    assert split_api_version("v1") == ("", "v1")
    assert split_api_version("apps/v1") == ("apps", "v1")


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="two kinds are called services"):
        registry.BUILT_IN.extended([SERVICE])
    other = msgspec.structs.replace(SERVICE, plural="servants")
    with pytest.raises(ValueError, match="two kinds are called Service in group ''"):
        Registry([SERVICE, other])
    assert len(Registry([SERVICE]).extended([]).kinds) == 1


def test_versions_of_a_group() -> None:
    assert registry.versions("") == ("v1",)
    assert registry.versions("policy.linkerd.io")[0] == "v1beta3"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
def test_every_record_holds_together(kind: Kind) -> None:
    stored = kind.version(kind.stored)
    assert stored is not None, "the stored version is served"
    assert kind.plural == kind.plural.lower()
    for version in kind.versions:
        fields = version.schema.fields
        assert {"apiVersion", "kind", "metadata"} <= set(fields)
        if kind.status:
            assert "status" in fields
        names = [column.name for column in version.columns]
        assert len(set(names)) == len(names)
    if kind.scale is not None:
        assert "spec" in stored.schema.fields


def test_iteration_is_in_discovery_order() -> None:
    assert tuple(registry.BUILT_IN) == KINDS
