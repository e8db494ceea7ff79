from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from isthmus.errors import BadRequest
from isthmus.model.core import CONFIG_MAP, SECRET, SERVICE_ACCOUNT, Secret
from isthmus.model.core.config import MAX_DATA
from isthmus.model.intake import view
from tests.unit.model.objects import made, paths, row, told, written


def test_a_config_map() -> None:
    document = made(CONFIG_MAP, data={"a.b": "x", "C_d": ""}, binaryData={"e": "AA=="})
    assert told(CONFIG_MAP, document) == []
    assert row(CONFIG_MAP, document) == {"Data": 3, "Age": "5m"}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"data": {"a/b": ""}}, ["data[a/b]"]),
        ({"binaryData": {"..": ""}}, ["binaryData[..]"]),
        ({"data": {"a": ""}, "binaryData": {"a": ""}}, ["data[a]"]),
        ({"data": {"a": "x" * (MAX_DATA + 1)}}, [""]),
    ],
)
def test_faults_of_config_maps(fields: dict[str, Any], found: list[str]) -> None:
    assert paths(CONFIG_MAP, made(CONFIG_MAP, **fields)) == found


def test_what_is_immutable_stays() -> None:
    old = made(CONFIG_MAP, data={"a": "b"}, immutable=True)
    assert told(CONFIG_MAP, old, old) == []
    new = made(CONFIG_MAP, data={"a": "c"}, immutable=False)
    found = told(CONFIG_MAP, new, old)
    assert [cause.path for cause in found] == ["immutable", "data"]
    assert found[0].message == "Forbidden: field is immutable when `immutable` is set"


def test_plain_text_of_a_secret_is_folded_into_its_data() -> None:
    document = made(SECRET, data={"a": "b2xk", "k": "a2VwdA=="}, stringData={"a": "new"})
    got = written(SECRET, document)
    assert got["data"] == {"a": "bmV3", "k": "a2VwdA=="}
    assert "stringData" not in got
    assert got["type"] == "Opaque"
    assert row(SECRET, got) == {"Type": "Opaque", "Data": 2, "Age": "5m"}
    seen = view(SECRET, msgspec.json.encode(got))
    assert isinstance(seen, Secret)
    assert seen.data["a"] == "bmV3"


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("kubernetes.io/tls", ["data[tls.crt]", "data[tls.key]"]),
        ("kubernetes.io/dockerconfigjson", ["data[.dockerconfigjson]"]),
        ("kubernetes.io/basic-auth", ["data[username]", "data[password]"]),
        (
            "kubernetes.io/service-account-token",
            ["metadata.annotations[kubernetes.io/service-account.name]"],
        ),
        ("example.org/own", []),
    ],
)
def test_secrets_of_a_type_hold_what_it_needs(kind: str, found: list[str]) -> None:
    assert paths(SECRET, made(SECRET, type=kind)) == found


def test_faults_of_secrets() -> None:
    old = written(SECRET, made(SECRET, immutable=True, data={"a": ""}))
    new = deepcopy(old) | {"type": "other", "data": {"a": "YQ=="}}
    assert paths(SECRET, new, old) == ["type", "data"]
    assert paths(SECRET, made(SECRET, data={"a b": ""})) == ["data[a b]"]
    assert paths(SECRET, made(SECRET, data={"a": "A" * (MAX_DATA // 3 * 4 + 8)})) == ["data"]


def test_a_fault_does_not_tell_the_secret() -> None:
    for fields in ({"data": {"a": "hunter2!"}}, {"stringData": {"a": 12345}}):
        with pytest.raises(BadRequest) as caught:
            written(SECRET, made(SECRET, **fields))
        assert "hunter2" not in caught.value.message
        assert "12345" not in caught.value.message


def test_a_service_account() -> None:
    document = made(SERVICE_ACCOUNT, secrets=[{"name": "a"}])
    assert told(SERVICE_ACCOUNT, document) == []
    assert row(SERVICE_ACCOUNT, document) == {"Secrets": 1, "Age": "5m"}
