"""Faces as its processes: what each says, how each fails, how each ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import grpc
import pytest

from isthmus.lab.faces.words import COLORS, SMILEYS, entity
from isthmus.proto.faces import color_pb2 as pb
from tests.support.faces import HERE, PATIENCE, Faces, FacesProcess

GRINNING, CURSING, SLEEPING, KABOOM = (
    entity(SMILEYS[name]) for name in ("Grinning", "Cursing", "Sleeping", "Kaboom")
)
ALWAYS = {"ERROR_FRACTION": "100"}


@pytest.fixture(scope="module")
def faces() -> Iterator[Faces]:
    with Faces(smiley={"FACES_CLUSTER": "east"}) as made:
        yield made


# ------------------------------------------------------------------------------- each of them


def test_a_smiley(faces: Faces) -> None:
    status, body = faces.smiley.get("/center/?row=1&col=2", {"X-Faces-User": "Ada"})
    said = json.loads(body)
    assert status == said["status"] == 200
    assert (said["smiley"], said["rate"], said["errors"]) == (GRINNING, "N/A", [])
    assert (said["path"], said["method"], said["client_address"]) == ("/center/", "GET", HERE)
    assert said["headers"]["x-faces-user"] == ["Ada"]


def request(at: FacesProcess, method: str, path: str, body: str = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HERE, at.port, timeout=PATIENCE)
    connection.request(method, path, body, {"X-Faces-User": "Ada", "User-Agent": "test"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_who_answers_and_who_asked_is_in_the_headers(faces: Faces) -> None:
    for each in (faces.smiley, faces.face):
        answer = request(each, "GET", "/edge/")
        assert answer.headers["X-Faces-Pod"] == f"{each.name}-pod"
        assert (answer.headers["X-Faces-User"], answer.headers["User-Agent"]) == ("Ada", "test")
    assert request(faces.smiley, "GET", "/").headers["X-Faces-Cluster"] == "east"


def test_methods_and_probes(faces: Faces) -> None:
    assert request(faces.smiley, "HEAD", "/").status == 200
    assert request(faces.face, "DELETE", "/").status == 405
    assert request(faces.gui, "POST", "/").status == 405
    assert faces.smiley.json("/ready") == {"ready": True}
    assert faces.face.json("/rl") == {"rl": "N/A"}
    assert faces.gui.get("/ready") == (200, b"Ready and waiting!")
    assert faces.gui.get("/../pyproject.toml")[0] == 404


def test_a_smiley_is_changed_while_it_runs() -> None:
    smiley = FacesProcess("smiley", SMILEY="HeartEyes")
    try:
        wanted = {"which": "center", "smiley": "Screaming"}
        assert request(smiley, "PUT", "/", json.dumps(wanted)).status == 200
        assert smiley.json("/center/")["smiley"] == entity(SMILEYS["Screaming"])
        assert smiley.json("/edge/")["smiley"] == entity(SMILEYS["HeartEyes"])
        for bad in ("", "[]", "{}", '{"which": "top", "smiley": "Neutral"}'):
            assert request(smiley, "PUT", "/", bad).status == 400
    finally:
        assert smiley.stop() == 0


def ask(at: FacesProcess, method: str, raw: bytes) -> bytes:
    with grpc.insecure_channel(at.at) as channel:
        call: Callable[..., bytes] = channel.unary_unary(f"/ColorService/{method}")
        return call(raw, timeout=PATIENCE)


def test_a_color_is_changed_while_it_runs() -> None:
    color = FacesProcess("color", COLOR="green")
    try:
        raw = pb.ColorRequest(row=1, column=2).SerializeToString()
        update = pb.ColorUpdate(which="edge", color="red").SerializeToString()
        assert pb.ColorUpdateResponse.FromString(ask(color, "UpdateColor", update)).which == "edge"
        found = [
            pb.ColorResponse.FromString(ask(color, each, raw)).color for each in ("Center", "Edge")
        ]
        assert found == [COLORS["green"], COLORS["red"]]
        for bad in (b"\xff", pb.ColorUpdate(which="top").SerializeToString()):
            with pytest.raises(grpc.RpcError) as caught:
                ask(color, "UpdateColor", bad)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    finally:
        assert color.stop() == 0


# --------------------------------------------------------------------------------- together


def test_a_face(faces: Faces) -> None:
    said = faces.face.json("/center/?row=0&col=3", {"X-Faces-User": "Ada"})
    assert (said["smiley"], said["color"], said["errors"]) == (GRINNING, COLORS["blue"], [])
    assert said["answered"]["smiley"] | {"ms": 0} == {
        "pod": "smiley-pod", "cluster": "east", "status": 200, "ms": 0,
    }  # fmt: skip
    assert said["answered"]["color"]["pod"] == "color-pod"
    assert said["latency"] >= 0


def test_the_gui_passes_it_on(faces: Faces) -> None:
    answer = request(faces.gui, "GET", "/face/edge/?row=1")
    assert answer.status == 200
    assert answer.headers["X-Faces-Pod"] == "face-pod"
    assert answer.headers["X-Faces-User-Agent"] == "test"
    assert int(answer.headers["X-Faces-Latency"]) >= 0
    said = faces.gui.json("/face/edge/?row=1", {"X-Faces-User": "Ada"})
    assert said["headers"]["x-faces-user"] == ["Ada"]


def test_the_state_is_what_the_page_would_show(faces: Faces) -> None:
    state = faces.gui.json("/state/")
    assert state["counts"] == {"fine": 16}
    parts = [cell["part"] for cell in state["cells"]]
    assert parts == ["edge"] * 5 + ["center"] * 2 + ["edge"] * 2 + ["center"] * 2 + ["edge"] * 5


TROUBLE: list[tuple[str, dict[str, dict[str, str]], str, str, list[str]]] = [
    ("smiley fails", {"smiley": ALWAYS}, CURSING, "blue", ["smiley: error from"]),
    (
        "smiley is gone",
        {"face": {"SMILEY_SERVICE": "127.0.0.1:1"}},
        CURSING, "blue", ["smiley: cannot reach"],
    ),
    (
        "smiley is slow",
        {"smiley": {"DELAY_BUCKETS": "60000"}, "face": {"BACKEND_TIMEOUT_MS": "300"}},
        SLEEPING, "blue", ["smiley: no answer from"],
    ),
    ("color fails", {"color": ALWAYS}, GRINNING, "grey", ["color: error from"]),
    (
        "color is gone",
        {"face": {"COLOR_SERVICE": "127.0.0.1:1"}},
        GRINNING, "grey", ["color: error from"],
    ),
    (
        "color is slow",
        {"color": {"DELAY_BUCKETS": "60000"}, "face": {"BACKEND_TIMEOUT_MS": "300"}},
        GRINNING, "red", ["color: error from"],
    ),
    ("both fail", {"smiley": ALWAYS, "color": ALWAYS}, CURSING, "grey", ["smiley: ", "color: "]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("env", "smiley", "color", "errors"),
    [row[1:] for row in TROUBLE],
    ids=[row[0] for row in TROUBLE],
)
def test_what_stands_for_an_answer(
    env: dict[str, dict[str, str]], smiley: str, color: str, errors: list[str]
) -> None:
    with Faces(**env) as made:
        said = made.face.json("/edge/")
    assert (said["smiley"], said["color"]) == (smiley, COLORS[color])
    assert len(said["errors"]) == len(errors)
    for error, begins in zip(said["errors"], errors, strict=True):
        assert error.startswith(begins)


class Odd(BaseHTTPRequestHandler):
    """Answers 200 with something else, or with nothing that can be read."""

    bodies: ClassVar[list[bytes]] = [b"{}", b"[]", b"hello", b'{"smiley": 7}']

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.bodies.pop())

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_an_answer_that_is_no_smiley(faces: Faces) -> None:
    with ThreadingHTTPServer((HERE, 0), Odd) as odd:
        threading.Thread(target=odd.serve_forever).start()
        at = f"{HERE}:{odd.server_address[1]}"
        face = FacesProcess("face", SMILEY_SERVICE=at, COLOR_SERVICE=faces.color.at)
        try:
            while Odd.bodies:
                said = face.json("/edge/")
                assert (said["smiley"], said["color"]) == (CURSING, COLORS["blue"])
                assert said["errors"] == [f"smiley: {at} sent no smiley"]
        finally:
            assert face.stop() == 0
            odd.shutdown()


def test_rates_are_limited() -> None:
    slow = {"MAX_RATE": "0.1"}
    with Faces(smiley=slow, color=slow) as made:
        first, second = made.face.json("/edge/"), made.face.json("/edge/")
    assert (first["smiley"], first["color"]) == (GRINNING, COLORS["blue"])
    assert (second["smiley"], second["color"]) == (KABOOM, COLORS["yellow"])
    with Faces(face=slow) as made:
        made.face.get("/edge/")
        status, body = made.face.get("/edge/")
    said = json.loads(body)
    assert (status, said["smiley"], said["color"]) == (200, KABOOM, COLORS["yellow"])
    assert said["errors"][0].startswith("Rate limited (")


def test_a_face_that_fails_and_one_that_is_stuck() -> None:
    with Faces(face=ALWAYS) as made:
        assert made.gui.get("/face/edge/")[0] == 500
        assert made.gui.json("/state")["counts"] == {"face": 16}
    with Faces(face={**ALWAYS, "LATCH_FRACTION": "100"}) as made:
        assert made.gui.get("/face/edge/")[0] == 599
        assert made.gui.json("/state")["counts"] == {"stuck": 16}


def test_each_call_of_color_is_a_connection_of_its_own(faces: Faces) -> None:
    """So that a new endpoint, or a new policy, shows at once."""
    with socket.create_server((HERE, 0)) as counting:
        face = FacesProcess(
            "face",
            SMILEY_SERVICE=faces.smiley.at,
            COLOR_SERVICE=f"{HERE}:{counting.getsockname()[1]}",
            BACKEND_TIMEOUT_MS="2000",
        )
        try:
            counting.settimeout(PATIENCE)
            for _ in range(2):
                asking = threading.Thread(target=face.get, args=("/edge/",))
                asking.start()
                accepted, _ = counting.accept()
                accepted.close()
                asking.join()
        finally:
            assert face.stop() == 0


# ------------------------------------------------------------------------------- life and death


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", ["gui", "face", "smiley", "color"])
def test_they_end_when_told_to(name: str, number: int) -> None:
    assert FacesProcess(name).stop(number) == 0


def fails(*words: str, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env={"PATH": "", **env}, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", ["smiley", "color"])
def test_a_taken_port(name: str) -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = str(taken.getsockname()[1])
        code, told = fails(f"isthmus.lab.faces.{name}", LISTEN_HOST=HERE, PORT=port)
    assert code == 1
    assert f"faces: {name} cannot listen on port {port}: " in told


def test_the_service_may_be_named_by_the_environment() -> None:
    code, told = fails("isthmus.lab.faces", "workload")
    assert code == 2
    assert told.startswith("faces: no service ''; name one of gui, face,")
    assert (
        fails("isthmus.lab.faces", FACES_SERVICE="smiley4", LISTEN_HOST="nowhere.invalid")[0] == 1
    )


def test_what_many_run_of_stays_small() -> None:
    """Smileys and guis import neither gRPC nor what the control plane is made of."""
    for name in ("smiley", "gui", "load"):
        program = f"import sys, isthmus.lab.faces.{name}; print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        loaded = set(done.stdout.split())
        assert not loaded & {
            "grpc",
            "aiohttp",
            "msgspec",
            "cryptography",
            "google.protobuf",
            "yaml",
        }


def test_load_counts_what_it_gets(faces: Faces) -> None:
    load = FacesProcess("load", LOAD_TARGET=faces.smiley.at, LOAD_RPS="50", LOAD_DEBUG="true")
    assert load.line() == f"faces: load got 200 from {faces.smiley.at}\n"
    load.process.send_signal(signal.SIGTERM)
    assert load.process.stdout is not None
    last = load.process.stdout.read().splitlines()[-1]
    assert last.startswith(f"faces: load of {faces.smiley.at}: ")
    assert load.stop() == 0
