"""However a lab ends, nothing of it is left: no process, no namespace, no link, no file."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces, links, loopback

TOPOLOGY = {
    "clusters": [t.cluster(1, "east", "flat", "apps")],
    "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
}
APPS = [t.deployment("echo", 2, t.container()), t.service("echo", type="LoadBalancer")]


FLEE = (
    "setsid sleep 300 >/dev/null 2>&1 &"
    " until [ \"$(cut -d' ' -f6 /proc/$!/stat)\" = $! ]; do :; done"
)
"""Leaves a process behind that is in no session of the lab."""


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    return t.write(tmp_path, TOPOLOGY, apps=APPS)


def busy(lab: LabProcess) -> Traces:
    """What the kernel knows of a lab whose pods run, one of them with a child that has fled."""
    lab.kubectl("rollout", "status", "deploy/echo", "--timeout=30s")
    lab.kubectl("exec", "deploy/echo", "--", "sh", "-c", FLEE)
    traces = Traces(lab)
    assert traces.processes >= 6
    assert traces.networks >= 4
    return traces


def gone(traces: Traces) -> None:
    """The kernel takes its time with the last ones: wait for each process's end, not for a time."""
    for pid in traces.pids():
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([handle], [], [], 10)
        os.close(handle)
    assert traces.left() == []


def test_ctrl_c(tmp_path: Path, topology: Path) -> None:
    before = links()
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        traces = busy(lab)
        code, _ = lab.stop(signal.SIGINT)
        assert code == 0
        gone(traces)
    assert not state.exists()
    assert links() == before


def test_down(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        traces = busy(lab)
        done = lab.cli("down")
        assert (done.returncode, done.stdout) == (0, b"")
        assert lab.process.wait(10) == 0
        gone(traces)
        again = lab.cli("down")
        assert again.returncode == 1
        assert b"no lab runs in" in again.stderr
    assert not state.exists()


def test_a_killed_lab_takes_everything_with_it_and_the_next_one_removes_its_files(
    tmp_path: Path, topology: Path
) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        traces = busy(lab)
        lab.process.kill()
        lab.process.wait(10)
        gone(traces)
    assert (state / "lab.json").exists()
    assert any((state / "pods").rglob("*.log"))
    with LabProcess(state, topology) as lab:
        lab.kubectl("rollout", "status", "deploy/echo", "--timeout=30s")
        code, errors = lab.stop()
    assert code == 0
    assert "removed what an earlier lab left behind" in errors
    assert not state.exists()


def test_down_after_a_crash_removes_the_files(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        lab.process.kill()
        lab.process.wait(10)
        assert state.exists()
        assert lab.cli("status").returncode == 1
        assert lab.cli("down").returncode == 0
    assert not state.exists()


def test_a_lab_whose_inside_dies_is_told_and_cleaned(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        traces = busy(lab)
        os.kill(max(traces.pids("isthmus.lab ")), signal.SIGKILL)
        _, errors = lab.process.communicate(timeout=20)
        assert lab.process.returncode == 1
        assert b"ended unexpectedly" in errors
        gone(traces)
    assert not state.exists()


def test_detached(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    lab = LabProcess(state, topology, "--detach")
    try:
        out, _ = lab.process.communicate(timeout=60)
        assert out.endswith(b" ready\n")
        assert lab.process.returncode == 0
        traces = busy(lab)
        assert lab.cli("down").returncode == 0
        gone(traces)
    finally:
        lab.cli("down")
    assert not state.exists()


def test_files_of_others_in_the_folder_are_left_alone(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "mine.txt").write_text("mine")
    with LabProcess(state, topology) as lab:
        assert lab.stop()[0] == 0
    assert [each.name for each in state.iterdir()] == ["mine.txt"]


# ----------------------------------------------------------------------------------- what cannot be


def refused(*words: str, prefix: tuple[str, ...] = ()) -> str:
    command = [*prefix, sys.executable, "-m", "isthmus", "lab", "up", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_two_labs_in_one_folder(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology) as lab:
        told = refused(str(topology), "--state-dir", str(state))
        assert f"a lab runs already in {state} (pid {lab.process.pid})" in told
        lab.kubectl("get", "nodes")


def test_an_address_that_is_taken(tmp_path: Path, topology: Path) -> None:
    with LabProcess(tmp_path / "state", topology) as lab:
        other = tmp_path / "other"
        told = refused(str(topology), "--state-dir", str(other), "--loopback", lab.loopback)
        address = lab.status["clusters"][0]["api"].removeprefix("https://").rpartition(":")[0]
        assert f"the address {address}:" in told
        assert "cannot be had: Address already in use" in told
        assert not other.exists()


def test_faults_of_a_topology_are_all_told(tmp_path: Path) -> None:
    path = t.write(tmp_path, {"clusters": [{"name": "A b", "podCIDR": "x", "network": "none"}]})
    told = refused(str(path), "--state-dir", str(tmp_path / "state"))
    for where in ("clusters[0].name", "clusters[0].podCIDR", "clusters[0].serviceCIDR"):
        assert where in told
    assert not (tmp_path / "state").exists()


def test_a_manifest_that_the_server_refuses(tmp_path: Path) -> None:
    wrong = t.service("bad") | {"spec": {"ports": [{"port": 700_000}]}}
    path = t.write(tmp_path, TOPOLOGY, apps=[wrong])
    state, elsewhere = str(tmp_path / "state"), loopback()
    told = refused(str(path), "--state-dir", state, "--loopback", elsewhere)
    assert "apps.yaml: Service bad: " in told
    assert "spec.ports[0].port" in told


WITHOUT = (
    "import ctypes, os, sys\n"
    "u, g = os.getuid(), os.getgid()\n"
    "assert ctypes.CDLL(None).unshare(0x10000000) == 0\n"
    "open('/proc/self/setgroups', 'w').write('deny')\n"
    "open('/proc/self/uid_map', 'w').write(f'0 {u} 1')\n"
    "open('/proc/self/gid_map', 'w').write(f'0 {g} 1')\n"
    "open('/proc/sys/user/max_net_namespaces', 'w').write('0')\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Runs the rest where no network namespace can be made."""


def test_where_nobody_may_make_namespaces_one_line_says_so(tmp_path: Path, topology: Path) -> None:
    prefix = (sys.executable, "-c", WITHOUT)
    told = refused(str(topology), "--state-dir", str(tmp_path / "state"), prefix=prefix)
    assert told.splitlines()[-1].startswith(
        "isthmus: error: this machine does not let a lab have namespaces of its own"
    )


# ------------------------------------------------------------------------------------- without root


POWERLESS = (
    "import ctypes, os, sys\n"
    "for number in set(range(64)) - {31}:\n"
    "    ctypes.CDLL(None).prctl(24, number, 0, 0, 0)\n"  # PR_CAPBSET_DROP
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Runs the rest as root without root's powers. Of them only CAP_SETFCAP is kept: who is root may
have a user namespace with a root in it only so, and who is not needs nothing at all."""


def test_without_powers_everything_is_the_same(tmp_path: Path, topology: Path) -> None:
    state = tmp_path / "state"
    with LabProcess(state, topology, prefix=(sys.executable, "-c", POWERLESS)) as lab:
        traces = busy(lab)
        spaces = {Path(f"/proc/{pid}/ns/user").readlink() for pid in traces.pids("isthmus server")}
        assert Path("/proc/self/ns/user").readlink() not in spaces
        assert lab.kubectl("exec", "deploy/echo", "--", "id", "-u") == "0\n"
        assert "GET /" in lab.kubectl("logs", "deploy/echo")
        assert lab.stop()[0] == 0
        gone(traces)
    assert not state.exists()
