from __future__ import annotations

import pytest

from isthmus.model import names


@pytest.mark.parametrize("text", ["a", "a-b", "1", "x" * 63])
def test_labels(text: str) -> None:
    assert names.label_problems(text) == ()


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a.b", "x" * 64, "a\n", "ä", "a b", "a\x00"])
def test_what_is_no_label(text: str) -> None:
    assert names.label_problems(text)


def test_messages_are_those_of_kubernetes() -> None:
    (problem,) = names.label_problems("A_b")
    assert problem == (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
        " must start and end with an alphanumeric character (e.g. 'my-name' or '123-abc', regex"
        " used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )
    length, problem = names.subdomain_problems("A" * 254)
    assert length == "must be no more than 253 bytes"
    assert problem == (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
        " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex"
        " used for validation is"
        " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )


@pytest.mark.parametrize(
    ("text", "fine"), [("a.b", True), ("a..b", False), (".a", False), ("a.", False)]
)
def test_subdomains(text: str, fine: bool) -> None:
    assert (names.subdomain_problems(text) == ()) is fine


@pytest.mark.parametrize(("text", "fine"), [("svc-1", True), ("1svc", False), ("x" * 64, False)])
def test_service_names(text: str, fine: bool) -> None:
    assert (names.label_1035_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("app", True), ("app.kubernetes.io/name", True), ("A_b.c", True),
        ("linkerd.io/inject", True),
        ("", False), ("/a", False), ("a/", False), ("a/b/c", False), ("UP.io/a", False),
        ("-a", False), ("x" * 64, False), ("a b", False), ("x" * 254 + "/a", False),
    ],
)  # fmt: skip
def test_qualified_names(text: str, fine: bool) -> None:
    assert (names.qualified_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"), [("", True), ("V1_.x", True), ("-", False), ("x" * 64, False)]
)
def test_label_values(text: str, fine: bool) -> None:
    assert (names.label_value_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [("ca.crt", True), ("KEY_1", True), ("", False), ("a/b", False), (".", False), ("..", False),
     ("..a", False), (".a", True), ("x" * 254, False)],
)  # fmt: skip
def test_keys_of_config_maps(text: str, fine: bool) -> None:
    assert (names.config_key_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [("http", True), ("8080-a", True), ("80", False), ("", False), ("a--b", False), ("-a", False),
     ("a" * 16, False), ("Http", False), ("a_b", False)],
)  # fmt: skip
def test_port_names(text: str, fine: bool) -> None:
    assert (names.port_name_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [("system:masters", True), ("..", False), ("a/b", False), ("a%b", False), ("a\x01", False),
     ("x" * 254, False)],
)  # fmt: skip
def test_path_segments(text: str, fine: bool) -> None:
    assert (names.path_segment_problems(text) == ()) is fine


@pytest.mark.parametrize(("port", "fine"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_ports(port: int, fine: bool) -> None:
    assert (names.port_problems(port) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"), [("PATH", True), ("a.b-c", True), ("a=b", False), ("", False)]
)
def test_names_of_variables(text: str, fine: bool) -> None:
    assert (names.env_name_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [("10.0.0.1", True), ("fd00::1", True), ("10.0.0.01", False), ("10.0.0", False), ("", False),
     ("fe80::1%eth0", False), ("10.0.0.1:80", False), ("\u0661.0.0.1", False),
     ("::ffff:1.2.3.4", True)],
)  # fmt: skip
def test_addresses(text: str, fine: bool) -> None:
    assert (names.ip_problems(text) == ()) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [("10.0.0.0/8", True), ("fd00::/8", True), ("10.1.2.3/8", True), ("10.0.0.0", False),
     ("10.0.0.0/33", False), ("10.0.0.0/08", False), ("10.0.0.0/+8", False),
     ("10.0.0.0/255.0.0.0", False),
     ("10.0.0.0/1000", False), ("x/8", False)],
)  # fmt: skip
def test_networks(text: str, fine: bool) -> None:
    assert (names.cidr_problems(text) == ()) is fine


def test_control_characters() -> None:
    assert names.control_characters("a\x85")
    assert names.control_characters("\x7f")
    assert not names.control_characters("a b ä")
