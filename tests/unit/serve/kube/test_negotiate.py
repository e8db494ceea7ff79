from __future__ import annotations

import pytest

from isthmus.errors import UnsupportedMediaType
from isthmus.serve.kube import negotiate
from isthmus.serve.kube.negotiate import Form, MediaType, accept, body, clauses

KUBECTL_GET = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
KUBECTL_DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)


@pytest.mark.parametrize(
    ("header", "form"),
    [
        (None, Form.JSON),
        ("", Form.JSON),
        ("application/json", Form.JSON),
        ("application/json, */*", Form.JSON),
        (KUBECTL_GET, Form.TABLE),
        ("application/vnd.kubernetes.protobuf,application/json", Form.JSON),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", Form.JSON),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form.JSON),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form.METADATA),
        ("APPLICATION/JSON; As=PartialObjectMetadataList; G=meta.k8s.io; V=v1", Form.METADATA_LIST),
        ('application/json; as="Table"; v=v1; g=meta.k8s.io', Form.TABLE),
        # Weights decide; equal weights leave the written order; 0 means never.
        ("application/json;q=0.4," + KUBECTL_GET, Form.TABLE),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5,application/json", Form.JSON),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0,text/html", Form.JSON),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=nonsense", Form.TABLE),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=7", Form.TABLE),
        ("text/html, garbage, ;;;, application/xml", Form.JSON),
        (KUBECTL_DISCOVERY, Form.JSON),  # an object cannot be shown as discovery
    ],
)
def test_an_object_is_shown_as_asked_or_as_json(header: str | None, form: Form) -> None:
    assert accept(header) is form


def test_discovery_is_aggregated_when_asked_and_never_a_table() -> None:
    assert accept(KUBECTL_DISCOVERY, negotiate.DISCOVERIES) is Form.DISCOVERY
    assert accept(KUBECTL_GET, negotiate.DISCOVERIES) is Form.JSON
    old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    assert accept(old, negotiate.DISCOVERIES) is Form.JSON


def test_only_discovery_names_itself_in_its_content_type() -> None:
    kubectl_wants = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert Form.DISCOVERY.content_type == kubectl_wants
    others = {form.content_type for form in Form if form is not Form.DISCOVERY}
    assert others == {"application/json"}


def test_a_long_accept_header_is_read_only_so_far() -> None:
    header = "text/x," * 100_000 + KUBECTL_GET
    assert accept(header) is Form.JSON
    assert len(clauses("a/b," * 1000)) == negotiate.MAX_CLAUSES


def test_protobuf_is_asked_for_by_name() -> None:
    v2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert negotiate.wants_protobuf(f"{v2}, application/json", v2.upper())
    assert not negotiate.wants_protobuf("application/json", v2)
    assert not negotiate.wants_protobuf(None, v2)


@pytest.mark.parametrize(
    ("header", "media"),
    [
        (None, MediaType.JSON),
        ("", MediaType.JSON),
        ("application/json; charset=utf-8", MediaType.JSON),
        ("Application/YAML", MediaType.YAML),
        ("application/vnd.kubernetes.protobuf", MediaType.PROTOBUF),
    ],
)
def test_a_body_has_one_of_the_types_taken(header: str | None, media: MediaType) -> None:
    assert body(header, negotiate.OBJECT_BODIES) is media


@pytest.mark.parametrize(
    "header", ["text/plain", "application/cbor", "application/json-patch+json"]
)
def test_another_body_type_is_refused_naming_those_taken(header: str) -> None:
    with pytest.raises(
        UnsupportedMediaType, match=r"accepted media types include: application/json, "
    ):
        body(header, negotiate.OBJECT_BODIES)


def test_a_patch_must_say_its_type() -> None:
    with pytest.raises(UnsupportedMediaType):
        body(None, negotiate.PATCH_BODIES)


def test_custom_resources_take_no_strategic_merge_patch() -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        body("application/strategic-merge-patch+json", negotiate.CUSTOM_PATCH_BODIES)
    assert refused.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
