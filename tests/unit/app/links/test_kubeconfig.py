from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from isthmus.app.links.kubeconfig import Unusable, access_of, kubeconfig_of
from isthmus.store.kubernetes import Access

JSON = Any
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()


def config(**changes: JSON) -> dict[str, Any]:
    cluster = {"server": "https://10.0.0.1:6443", "certificate-authority-data": PEM}
    user = {"token": "t"}
    cluster.update(changes.pop("cluster", {}))
    user.update(changes.pop("user", {}))
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "other", "cluster": {}}, {"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        **changes,
    }


def read(document: object) -> Access:
    return access_of(json.dumps(document).encode())


def test_the_current_context_counts() -> None:
    found = read(config(cluster={"tls-server-name": "kubernetes"}))
    assert found.server == "https://10.0.0.1:6443"
    assert found.token == "t"
    assert found.authority.startswith("-----BEGIN CERTIFICATE")
    assert found.server_name == "kubernetes"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("text", "not a YAML mapping"),
        ({}, "no current-context"),
        (config(contexts=[]), "there is no context 'it'"),
        (config(contexts=[{"name": "it", "context": {"user": "u"}}]), "no cluster of its current"),
        (config(clusters=7), "there is no cluster 'c'"),
        (config(users=[{"name": "u"}]), "there is no user 'u'"),
        (config(cluster={"server": "http://10.0.0.1"}), "server must be https"),
        (config(cluster={"server": "https://a:b@10.0.0.1"}), "server must be https"),
        (config(cluster={"server": "https://10.0.0.1?x=1"}), "server must be https"),
        (config(cluster={"server": "https://[::"}), "server must be https"),
        (config(cluster={"server": ["https://10.0.0.1"]}), "server must be https"),
        (config(cluster={"certificate-authority": "/etc/x"}), "names a file"),
        (config(cluster={"insecure-skip-tls-verify": True}), "whoever answers"),
        (config(cluster={"proxy-url": "http://p"}), "proxy-url is not taken"),
        (config(cluster={"certificate-authority-data": "%"}), "is not base64"),
        (config(cluster={"certificate-authority-data": "eA=="}), "is not PEM"),
        (config(user={"tokenFile": "/var/run/token"}), "names a file"),
        (config(user={"exec": {"command": "rm"}}), "exec is not taken"),
        (config(user={"username": "me"}), "username is not taken"),
        (config(user={"token": "a\nb"}), "the token is none"),
        (config(user={"token": "x" * 20_000}), "the token is none"),
        (config(user={"token": ""}), "neither a token nor a certificate"),
        (config(user={"token": "", "client-certificate-data": PEM}), "neither a token nor"),
    ],
)
def test_what_cannot_be_used_says_why(document: object, why: str) -> None:
    with pytest.raises(Unusable, match=why) as caught:
        read(document)
    assert caught.value.word == "BadKubeconfig"


@pytest.mark.parametrize("text", [b"\x00", b"a: [", b"a: &x b", b"{" * 5000, b"\xff\xfe"])
def test_junk_is_no_kubeconfig(text: bytes) -> None:
    with pytest.raises(Unusable) as caught:
        access_of(text)
    assert caught.value.word == "BadKubeconfig"


@pytest.mark.parametrize(
    ("secret", "word"),
    [
        (b"{}", "NoKubeconfig"),
        (b'{"data": {"other": "eA=="}}', "NoKubeconfig"),
        (b'{"data": {"kubeconfig": "IA=="}}', "NoKubeconfig"),
        (b'{"data": {"kubeconfig": "%"}}', "BadSecret"),
        (b'{"data": {"kubeconfig": 7}}', "BadSecret"),
        (b'{"data": 7}', "BadSecret"),
    ],
)
def test_a_secret_without_one_says_so(secret: bytes, word: str) -> None:
    with pytest.raises(Unusable) as caught:
        kubeconfig_of(secret)
    assert caught.value.word == word
