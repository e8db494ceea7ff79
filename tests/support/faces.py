"""The Faces application as real processes on loopback."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

PATIENCE = 60.0
HERE = "127.0.0.1"


class FacesProcess:
    """One service, which listens. `env` is its environment, as a container's."""

    def __init__(self, name: str, /, **env: str) -> None:
        self.name = name
        told = {"PORT": "0", "LISTEN_HOST": HERE, "HOSTNAME": f"{name}-pod", **env}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "isthmus.lab.faces", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **told},
            text=True,
        )
        line = self.line()
        if " listens on port " not in line:
            self.process.kill()
            raise AssertionError(f"{name} said {line!r} and {self.process.communicate()[1]}")
        self.port = int(line.rpartition(" ")[2])

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, f"{self.name} said nothing for {PATIENCE} s"
        return self.process.stdout.readline()

    @property
    def at(self) -> str:
        return f"{HERE}:{self.port}"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of a GET."""
        connection = http.client.HTTPConnection(HERE, self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, path: str, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401  # JSON
        """What a GET says, be its status what it may."""
        return json.loads(self.get(path, headers)[1])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


class Faces:
    """All four, wired. `with Faces(smiley={"ERROR_FRACTION": "100"}) as faces:`."""

    def __init__(self, **env: Mapping[str, str]) -> None:
        self._env = env
        self._started: list[FacesProcess] = []

    def __enter__(self) -> Self:
        try:
            self.smiley = self._start("smiley")
            self.color = self._start("color")
            backends = {"SMILEY_SERVICE": self.smiley.at, "COLOR_SERVICE": self.color.at}
            self.face = self._start("face", **backends)
            self.gui = self._start("gui", FACE_SERVICE=self.face.at)
        except BaseException:
            self._end()
            raise
        return self

    def _start(self, name: str, **wiring: str) -> FacesProcess:
        made = FacesProcess(name, **{"FACES_SEED": "7", **wiring, **self._env.get(name, {})})
        self._started.append(made)
        return made

    def _end(self) -> dict[str, int]:
        running = [each for each in self._started if each.process.returncode is None]
        return {each.name: each.stop() for each in reversed(running)}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        codes = self._end()
        assert set(codes.values()) <= {0}, codes

    @property
    def url(self) -> str:
        return f"http://{self.gui.at}/"
