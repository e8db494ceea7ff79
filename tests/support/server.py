"""A real `isthmus server`, started as a user would start it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

PATIENCE = 60.0
"""Seconds that a start or an answer may take on a busy machine."""

SURFACES = ("kube", "destination", "policy", "identity", "xds", "dns", "admin")
ANYWHERE = tuple(word for name in SURFACES for word in ("--listen", f"{name}=127.0.0.1:0"))


class ServerProcess:
    """`with ServerProcess(home) as server:` has one that is ready; leaving the block ends it.

    `home` is the data directory; a second one with the same `home` finds what the first wrote.
    """

    def __init__(self, home: Path, *flags: str, **environment: str) -> None:
        self.home = home
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        command = [sys.executable, "-m", "isthmus", "server", "--data-dir", str(home)]
        self.process = subprocess.Popen(
            [*command, *ANYWHERE, *flags],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment},
        )

    def __enter__(self) -> Self:
        try:
            line = self.line()
            assert line.endswith(" ready\n"), f"no ready line but {line!r}; log:\n{self.log}"
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, in whatever state it is."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()

    def line(self) -> str:
        """The next line of its output; "" when it ended without one."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, f"no output after {PATIENCE} s; log:\n{self.log}"
        return self.process.stdout.readline().decode()

    def stop(self, number: int = signal.SIGTERM, *, within: float = PATIENCE) -> int:
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=within)

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        self._log.flush()
        return Path(f"/proc/self/fd/{self._log.fileno()}").read_text()

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def endpoints(self) -> dict[str, str]:
        """Where it listens, by name."""
        read: dict[str, str] = json.loads((self.home / "endpoints.json").read_text())
        return read

    def admin(self, path: str) -> tuple[int, str]:
        """Status and body of a GET at the admin surface."""
        connection = http.client.HTTPConnection(self.endpoints["admin"], timeout=PATIENCE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPSConnection:
        """A connection to the API with the kubeconfig's certificate."""
        return connect(self.kubeconfig)

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and JSON of one request to the API."""
        connection = self.connect()
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def connect(kubeconfig: Path) -> http.client.HTTPSConnection:
    """A connection to the API that a kubeconfig names, with its certificate."""
    read = yaml.safe_load(kubeconfig.read_text())  # noqa: TID251  # an independent reader
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    trust = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=trust)
    with tempfile.NamedTemporaryFile() as chain:  # OpenSSL reads keys from files alone
        for part in ("client-certificate-data", "client-key-data"):
            chain.write(base64.b64decode(user[part]))
        chain.flush()
        context.load_cert_chain(chain.name)
    at = cluster["server"].removeprefix("https://")
    return http.client.HTTPSConnection(at, context=context, timeout=PATIENCE)
