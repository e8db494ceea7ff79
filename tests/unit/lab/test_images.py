"""Image names and what they mean here."""

from __future__ import annotations

import pytest

from isthmus.lab.images import Images, argv, expand, substitute

OWN = {
    "example.org/*:*": ["any"],
    "example.org/echo:*": ["echo"],
    "example.org/echo:2": ["second", "$PORT", "${NAME}!"],
    "bare": ["bare"],
}


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("example.org/echo:2", ("second", "$PORT", "${NAME}!")),
        ("example.org/echo:1", ("echo",)),
        ("example.org/echo", ("echo",)),
        ("example.org/other:1", ("any",)),
        ("bare", ("bare",)),
        ("elsewhere.org/echo:1", None),
        ("bare:1", None),
    ],
)
def test_the_most_exact_pattern_counts(image: str, command: tuple[str, ...] | None) -> None:
    assert Images(OWN).command(image) == command


def test_the_workshops_images_are_built_in_and_can_be_replaced() -> None:
    image = "ghcr.io/buoyantio/faces-color:2.0.0-rc.2"
    found = Images({}).command(image)
    assert found is not None
    assert found[1:3] == ("-m", "isthmus.lab.faces")
    assert Images({"*": ["mine"]}).command(image) == ("mine",)


def test_variables_of_a_command() -> None:
    env = {"PORT": "80", "NAME": "x"}
    assert substitute(["$PORT", "${NAME}!", "a$PORT-$NONE"], env) == ("80", "x!", "a80-")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)-$(B)", "one-$(B)"),
        ("$$(A)", "$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_filled_in_as_kubernetes_does(text: str, value: str) -> None:
    assert expand(text, {"A": "one"}) == value


def test_a_containers_command_replaces_the_images_and_args_follow() -> None:
    images, env = Images(OWN), {"PORT": "80"}
    assert argv("bare", [], ["$(PORT)"], env, images) == ("bare", "80")
    assert argv("unknown", ["run"], ["x"], env, images) == ("run", "x")
    assert argv("unknown", [], ["x"], env, images) is None
