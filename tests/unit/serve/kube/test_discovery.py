from __future__ import annotations

from typing import Any

import msgspec

from isthmus.model.registry import Registry
from isthmus.serve.kube.blob import Blob
from isthmus.serve.kube.discovery import Discovery, Subresource
from isthmus.serve.kube.negotiate import Form
from tests.unit.serve.kube.kinds import REVIEW, THING, WIDGET

EXTRAS = {"things": (Subresource("token", ("create",), "auth.io", "v1", "Token"),
                     Subresource("log", ("get",)))}  # fmt: skip
DISCOVERY = Discovery(Registry([THING, WIDGET, REVIEW]), EXTRAS)


def read(blob: Blob | None) -> dict[str, Any]:
    assert blob is not None
    return dict(msgspec.json.decode(blob.body))


def test_aggregated_discovery_has_its_own_content_type() -> None:
    assert DISCOVERY.apis(Form.DISCOVERY).content_type == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    assert DISCOVERY.apis().content_type == "application/json"


def test_api_is_the_core_group() -> None:
    told = read(DISCOVERY.api(Form.DISCOVERY))
    assert (told["kind"], told["apiVersion"]) == (
        "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2",
    )  # fmt: skip
    (core,) = told["items"]
    assert core["metadata"]["name"] == ""
    (version,) = core["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    (thing,) = version["resources"]
    assert thing == {
        "resource": "things",
        "responseKind": {"group": "", "version": "v1", "kind": "Thing"},
        "scope": "Cluster",
        "singularResource": "thing",
        "verbs": list(THING.verbs),
        "subresources": [
            {
                "subresource": "log",
                "responseKind": {"group": "", "version": "v1", "kind": "Thing"},
                "verbs": ["get"],
            },
            {
                "subresource": "token",
                "responseKind": {"group": "auth.io", "version": "v1", "kind": "Token"},
                "verbs": ["create"],
            },
        ],
    }


def test_apis_is_the_rest_the_preferred_version_first() -> None:
    (group,) = read(DISCOVERY.apis(Form.DISCOVERY))["items"]
    assert group["metadata"]["name"] == "example.io"
    assert [version["version"] for version in group["versions"]] == ["v1", "v1alpha1"]
    widget, review = group["versions"][0]["resources"]
    assert widget["scope"] == "Namespaced"
    assert widget["shortNames"] == ["wd"]
    assert widget["categories"] == ["all"]
    assert widget["subresources"] == [
        {
            "subresource": "scale",
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"],
        },
        {
            "subresource": "status",
            "responseKind": {"group": "example.io", "version": "v1", "kind": "Widget"},
            "verbs": ["get", "patch", "update"],
        },
    ]
    assert review["verbs"] == ["create"]
    assert "subresources" not in review
    assert [r["resource"] for r in group["versions"][1]["resources"]] == ["widgets"]


def test_legacy_roots() -> None:
    assert read(DISCOVERY.api()) == {
        "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
    }  # fmt: skip
    group = {
        "name": "example.io",
        "versions": [
            {"groupVersion": "example.io/v1", "version": "v1"},
            {"groupVersion": "example.io/v1alpha1", "version": "v1alpha1"},
        ],
        "preferredVersion": {"groupVersion": "example.io/v1", "version": "v1"},
    }
    assert read(DISCOVERY.apis()) == {
        "kind": "APIGroupList", "apiVersion": "v1", "groups": [group],
    }  # fmt: skip
    assert read(DISCOVERY.group("example.io")) == {"kind": "APIGroup", "apiVersion": "v1"} | group


def test_legacy_resources() -> None:
    core = read(DISCOVERY.version("", "v1"))
    assert core["groupVersion"] == "v1"
    assert [row["name"] for row in core["resources"]] == ["things", "things/log", "things/token"]
    named = read(DISCOVERY.version("example.io", "v1"))
    assert (named["kind"], named["groupVersion"]) == ("APIResourceList", "example.io/v1")
    assert named["resources"][:3] == [
        {
            "name": "widgets",
            "singularName": "widget",
            "namespaced": True,
            "kind": "Widget",
            "verbs": list(WIDGET.verbs),
            "shortNames": ["wd"],
            "categories": ["all"],
        },
        {
            "name": "widgets/scale",
            "singularName": "",
            "namespaced": True,
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
            "group": "autoscaling",
            "version": "v1",
        },
        {
            "name": "widgets/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Widget",
            "verbs": ["get", "patch", "update"],
        },
    ]


def test_what_is_not_served_is_not_there() -> None:
    assert DISCOVERY.group("") is None
    assert DISCOVERY.group("other.io") is None
    assert DISCOVERY.version("other.io", "v1") is None
    assert DISCOVERY.version("example.io", "v0") is None
    assert DISCOVERY.version("", "v2") is None


def test_each_document_is_made_once_and_another_set_of_kinds_has_another_etag() -> None:
    assert DISCOVERY.version("", "v1") is DISCOVERY.version("", "v1")
    assert DISCOVERY.group("example.io") is DISCOVERY.group("example.io")
    assert DISCOVERY.api() is DISCOVERY.api()
    fewer = Discovery(Registry([THING, WIDGET]))
    for form in (Form.JSON, Form.DISCOVERY):
        assert DISCOVERY.apis(form) is DISCOVERY.apis(form)
    assert fewer.apis(Form.DISCOVERY).etag != DISCOVERY.apis(Form.DISCOVERY).etag
