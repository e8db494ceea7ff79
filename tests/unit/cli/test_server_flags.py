"""`isthmus server`: every setting is a flag, flags beat environment beat file."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.cli.commands.server import server
from isthmus.cli.entry import run
from isthmus.config import SETTINGS, ServerConfig

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServerConfig]:
    """The settings that servers would have run with."""
    settings: list[ServerConfig] = []

    def serve(config: ServerConfig) -> int:
        settings.append(config)
        return 0

    monkeypatch.setattr("isthmus.app.serve", serve)
    monkeypatch.setenv("HOME", "/home/ann")
    return settings


def test_every_setting_has_a_flag_and_says_its_default_and_variable(capsys: Capture) -> None:
    assert run(["server", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS:
        assert setting.flag in told
        assert f"env: {setting.variable}]" in told
        if setting.default and "," not in setting.default:
            assert f"default: {setting.default}; env: {setting.variable}" in told
    assert "Examples:" in told


def test_no_flag_is_without_a_setting() -> None:
    flags = {option for parameter in server.params for option in parameter.opts}
    extra = flags - {setting.flag for setting in SETTINGS}
    assert extra == {"--config", "--context", "--kubeconfig", "-n", "--namespace"}


def test_without_flags_the_defaults_hold(served: list[ServerConfig]) -> None:
    assert run(["server"]) == 0
    [config] = served
    assert config.cluster == config.context_name == "default"
    assert config.data_dir == Path("/home/ann/.local/share/isthmus/default")
    assert config.h2_upgrade
    assert not config.ipv6


def test_flags_beat_environment_beat_file(
    served: list[ServerConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text("cluster = 'file'\ntrust-domain = 'file.example'\ncluster-domain = 'f.x'\n")
    monkeypatch.setenv("ISTHMUS_CLUSTER", "env")
    monkeypatch.setenv("ISTHMUS_TRUST_DOMAIN", "env.example")
    assert run(["server", "--config", str(file), "--cluster", "flag"]) == 0
    [config] = served
    assert (config.cluster, config.trust_domain, config.cluster_domain) == (
        "flag",
        "env.example",
        "f.x",
    )


@pytest.mark.parametrize(
    ("flag", "upgrade"),
    [("--h2-upgrade", True), ("--h2-upgrade=true", True), ("--h2-upgrade=false", False)],
)
def test_switches(served: list[ServerConfig], flag: str, upgrade: bool) -> None:
    assert run(["server", flag]) == 0
    assert served[0].h2_upgrade is upgrade


def test_lists_by_comma_or_by_repeating(served: list[ServerConfig]) -> None:
    flags = ["--default-opaque-ports", "1,2", "--default-opaque-ports", "3-4"]
    assert run(["server", *flags, "--listen", "kube=127.0.0.1:0,xds=off"]) == 0
    [config] = served
    assert [tuple(ports) for ports in config.default_opaque_ports] == [(1, 1), (2, 2), (3, 4)]
    assert config.listener("xds") is None
    assert config.listener("kube") == ("127.0.0.1", 0)


def test_global_flags_are_taken_and_mean_nothing(served: list[ServerConfig]) -> None:
    assert run(["--kubeconfig", "f", "server", "-n", "x"]) == 0
    assert len(served) == 1


@pytest.mark.parametrize(
    "words", [["--context", "east", "server"], ["server", "--context", "east"]]
)
def test_a_server_has_no_context(
    served: list[ServerConfig], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert served == []
    told = capsys.readouterr().err.splitlines()
    assert told[0] == (
        "isthmus: error: --context has no meaning here: a server is named with --cluster"
    )
    assert told[1:] == ["Try `isthmus server --help`."]
