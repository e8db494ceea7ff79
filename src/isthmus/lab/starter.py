"""Starting a lab: the part that stays outside, with the user.

It holds the folder, starts the lab in its namespaces, makes the listeners that only the machine
itself can make, passes on the news, and cleans up however the lab ended.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path

from isthmus.errors import Cause, IsthmusError, Unavailable, UserFault
from isthmus.lab import addressing, topology
from isthmus.lab.network import broker, sandbox
from isthmus.lab.state import State

Say = Callable[[str], None]


def up(
    what: str, state: State, loopback: IPv4Network, *, step: Say, ready: Callable[[], None]
) -> int:
    """Run the lab `what` until it ends or a signal comes; 0 if it ended as it should.

    Raises:
        Invalid: the topology has faults.
        UserFault, Unavailable: it cannot run here, or did not get ready; says why.
    """
    addressing.plan(topology.load(what), loopback)
    with state.hold(what) as left:
        if left:
            step("removed what an earlier lab left behind")
        try:
            return _Run(what, state, loopback, step, ready).run()
        finally:
            state.clear()


class _Run:
    def __init__(
        self,
        what: str,
        state: State,
        loopback: IPv4Network,
        step: Say,
        ready: Callable[[], None],
    ) -> None:
        self._step = step
        self._ready = ready
        self._failure: IsthmusError | None = None
        self._stopped = False
        self._channel, theirs = broker.pair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", "isthmus.lab", str(theirs.fileno()), what,
                    str(loopback), str(state.folder),
                ],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for us
                stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def run(self) -> int:
        before = {number: signal.signal(number, self._signal) for number in _SIGNALS}
        try:
            self._listen()
            code = self._process.wait()
        finally:
            self._process.kill()
            self._process.wait()
            self._channel.close()
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._failure is not None:
            raise self._failure
        if code and not self._stopped:
            raise Unavailable(f"the lab ended unexpectedly, with exit code {code}")
        return 0

    def _signal(self, _number: int, _frame: object) -> None:
        """The first one is a wish, the second an order."""
        if self._stopped:
            self._process.kill()
            return
        self._stopped = True
        try:
            broker.send(self._channel, {"stop": True})
        except OSError:
            self._process.kill()

    def _listen(self) -> None:
        while True:
            try:
                got = broker.receive(self._channel)
            except OSError:
                return
            if got is None:
                return
            message, handles = got
            for handle in handles:
                os.close(handle)
            self._take(message)

    def _take(self, message: broker.Message) -> None:
        if "listen" in message:
            broker.answer(self._channel, message)
        elif "step" in message:
            self._step(str(message["step"]))
        elif "ready" in message:
            self._ready()
        elif "failed" in message:
            causes = [Cause(str(path), str(told)) for path, told in message.get("causes") or ()]
            self._failure = UserFault(str(message["failed"]), causes=causes)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def inside(arguments: list[str]) -> int:
    """What `python -m isthmus.lab` does: the lab's own process, started by `up`."""
    handle, what, loopback, folder = arguments
    channel = socket.socket(fileno=int(handle))
    state = State(Path(folder))

    def main() -> int:
        from isthmus.lab.forks import Forks  # noqa: PLC0415  # inside alone

        forks = Forks()  # first: it imports while we do
        from isthmus.lab.runtime import main as run  # noqa: PLC0415

        return run(what, IPv4Network(loopback), state, channel, forks)

    try:
        return sandbox.enter(main)
    except UserFault as fault:
        broker.send(channel, {"failed": fault.message})
        return 1
