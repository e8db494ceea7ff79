"""The command line itself: words, flags at every level, exit codes, one line for every error."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from isthmus import __version__
from isthmus.cli import entry, failure
from isthmus.cli.commands.diagnostics_options import hidden_place_options, place_options
from isthmus.cli.entry import run
from isthmus.cli.options import Globals, GoBool, GoCommand, global_options
from isthmus.cli.output import table
from isthmus.errors import Cause, Invalid, UserFault

Capture = pytest.CaptureFixture[str]


def isthmus(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "isthmus", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from isthmus.cli.entry import run; run(['--help']);"
        "print([m for m in ('aiohttp', 'asyncio', 'cryptography', 'yaml', 'isthmus.app')"
        " if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"
    assert "server" in done.stdout


def test_the_module_is_the_program() -> None:
    done = isthmus("version", "-o", "short")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


def test_the_version_is_an_answer() -> None:
    done = isthmus("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"isthmus {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["-h"], ["server", "-h"], ["version", "--help"]])
def test_help_is_an_answer(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 0
    assert "Usage: isthmus" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["server"], ["version"], ["lab"], ["agent"]])
def test_examples_stand_on_lines_of_their_own(
    arguments: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*arguments, "--help"]) == 0
    out = capsys.readouterr().out
    words = " ".join(["isthmus", *arguments])
    assert any(line.strip().startswith(words) for line in out.splitlines()[1:])
    assert "\\b" not in out
    assert "\b" not in out


def test_nothing_is_wrong_usage_and_shows_the_help(capsys: Capture) -> None:
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sevrer"], "there is no command 'sevrer'; did you mean `isthmus server`?"),
        (["zzz"], "there is no command 'zzz'\n"),
        (["--frob"], "no such option '--frob'"),
        (["version", "-o", "xml"], "'xml' is not one of"),
        (["version", "extra"], "unexpected extra argument"),
        (["version", "-n"], "requires an argument"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str, capsys: Capture) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.err.startswith("isthmus: error: ")
    assert says in told.err
    assert "--help`." in told.err
    assert told.out == ""


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_version_for_programs(form: str, capsys: Capture) -> None:
    assert run(["version", "-o", form]) == 0
    out = capsys.readouterr().out
    read = json.loads(out) if form == "json" else yaml.safe_load(out)  # noqa: TID251
    assert read["version"] == __version__


def test_version_for_people(capsys: Capture) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["VERSION", "PYTHON", "PLATFORM"]


# ------------------------------------------------------------------------------- flags


@click.group()
@global_options
def outer() -> None:
    pass


@outer.group()
@global_options
def middle() -> None:
    pass


@middle.command()
@global_options
@click.pass_context
def inner(context: click.Context) -> None:
    said = context.find_root().ensure_object(Globals)
    click.echo(f"{said.context} {said.kubeconfig} {said.namespace}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--context=a middle inner", "a None None"),
        ("middle --context a -n x inner", "a None x"),
        ("middle inner --context a --kubeconfig f", "a f None"),
        ("--context a -n x middle --context b inner --namespace=y", "b None y"),
        ("middle inner", "None None None"),
    ],
)
def test_global_flags_stand_at_every_level(arguments: str, says: str) -> None:
    assert CliRunner().invoke(outer, arguments.split()).output.strip() == says


@click.command()
@place_options
@click.pass_context
def place(context: click.Context) -> None:
    click.echo(context.find_root().ensure_object(Globals).linkerd_namespace)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("-L mesh place", "mesh"),
        ("-L mesh place -L inner", "inner"),
        ("place", "said"),
        ("place -L inner", "inner"),
    ],
)
def test_the_control_plane_s_namespace_at_every_level(arguments: str, says: str) -> None:
    @click.group()
    @hidden_place_options
    def top() -> None:
        pass

    top.add_command(place)
    done = CliRunner().invoke(top, arguments.split(), env={"LINKERD_NAMESPACE": "said"})
    assert done.output.strip() == says


def test_the_kubeconfig_falls_back_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/from/env")
    said = Globals()
    assert said.kubeconfig_path == "/from/env"
    said.kubeconfig = "/from/flag"
    assert said.kubeconfig_path == "/from/flag"


@click.command(cls=GoCommand)
@click.option("--gateway", cls=GoBool)
@click.argument("words", nargs=-1)
def go(gateway: bool | None, words: Sequence[str]) -> None:
    click.echo(f"{gateway} {' '.join(words)}".strip())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "None"),
        (["--gateway"], "True"),
        (["--gateway=true"], "True"),
        (["--gateway=false"], "False"),
        (["--gateway=0"], "False"),
        (["--gateway", "east"], "True east"),
        (["east", "--gateway"], "True east"),
        (["--", "--gateway"], "None --gateway"),
        (["--gateway=false", "--", "--gateway"], "False --gateway"),
    ],
)
def test_booleans_read_as_gos_do(arguments: list[str], says: str) -> None:
    assert CliRunner().invoke(go, arguments).output.strip() == says


def test_a_boolean_that_is_none_is_wrong_usage() -> None:
    result = CliRunner().invoke(go, ["--gateway=maybe"])
    assert result.exit_code == 2
    assert "maybe" in result.output


def test_a_table_pads_all_but_the_last_column() -> None:
    text = table(["A", "LONG", "C"], [["aaa", "b", "c"], ["a", "b", ""]])
    assert text == "A     LONG   C\naaa   b      c\na     b\n"


# ------------------------------------------------------------------------------- errors


def failing(fault: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `isthmus version` fail."""

    def fail(*_: object, **__: object) -> str:
        raise fault

    monkeypatch.setattr("isthmus.cli.commands.version.table", fail)


def test_a_fault_is_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(UserFault("no such place; name another one"), monkeypatch)
    assert run(["version"]) == 1
    assert capsys.readouterr().err == "isthmus: error: no such place; name another one\n"


def test_all_causes_are_told_up_to_a_bound(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(
        Invalid("it is invalid", causes=[Cause(f"a[{n}]", "bad") for n in range(12)]), monkeypatch
    )
    assert run(["version"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "  * a[0]: bad"
    assert lines[-1] == "  ... and 2 more"


def test_a_group_of_our_errors_is_the_first_of_them(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = ExceptionGroup("g", [ExceptionGroup("h", [UserFault("the port is taken")])])
    failing(group, monkeypatch)
    assert run(["version"]) == 1
    assert capsys.readouterr().err == "isthmus: error: the port is taken\n"


@pytest.mark.parametrize("grouped", [False, True])
def test_a_full_disk_is_no_bug(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, *, grouped: bool
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/data/x")
    failing(ExceptionGroup("g", [full, UserFault("more")]) if grouped else full, monkeypatch)
    assert run(["version"]) == 1
    told = capsys.readouterr().err
    assert told == "isthmus: error: this machine cannot: No space left on device (/data/x)\n"


def test_a_bug_is_an_id_and_a_private_file(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    failing(ExceptionGroup("g", [UserFault("known"), ZeroDivisionError("oops")]), monkeypatch)
    assert run(["version"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "internal error" in told
    [report] = (tmp_path / "isthmus").iterdir()
    assert str(report) in told
    assert report.stat().st_mode & 0o777 == 0o600
    assert "ZeroDivisionError: oops" in report.read_text()


def test_a_bug_without_a_home_still_leaves_its_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "isthmus").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert failure.bug(ZeroDivisionError("oops")) == 1
    [report] = tmp_path.glob("isthmus-bug-*.log")
    assert str(report) in capsys.readouterr().err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(KeyboardInterrupt(), monkeypatch)
    assert run(["version"]) == 130


def test_a_reader_that_leaves_is_no_failure() -> None:
    code = f"{sys.executable} -m isthmus version -o json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


IN_A_TASK = """
import asyncio, sys
from isthmus.cli import entry

async def tell(stream):
    while True:
        print("x" * 10_000, file=stream, flush=True)

async def both(stream):
    async with asyncio.TaskGroup() as group:
        group.create_task(tell(stream))

entry.root.main = lambda **_: asyncio.run(both(getattr(sys, sys.argv[1])))
entry.main()
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_may_also_leave_a_command_of_many_tasks(stream: str, tmp_path: Path) -> None:
    code = f"{sys.executable} -c '{IN_A_TASK}' {stream} 2>&1 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


def test_a_broken_connection_is_no_reader_that_left(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    failing(ExceptionGroup("g", [BrokenPipeError(errno.EPIPE, "Broken pipe")]), monkeypatch)
    assert run(["version"]) == 1
    assert "internal error" in capsys.readouterr().err


def test_every_command_can_be_imported_and_has_help() -> None:
    context = click.Context(entry.root)
    for name in entry.root.list_commands(context):
        command = entry.root.get_command(context, name)
        assert command is not None
        assert command.help
