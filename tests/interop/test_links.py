"""Two real servers, one linked to the other by hand."""

from __future__ import annotations

import base64
import http.server
import json
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from isthmus import ca
from isthmus.aio import SystemClock
from tests.support.asking import Asker, Stream, asker
from tests.support.linking import (
    LINKS,
    NAMESPACE,
    ROLE,
    SECRETS,
    account,
    admin_of,
    export,
    link,
    link_of,
    post,
    rotate,
    secret_of,
    stand_in,
    until_link,
    with_token,
)
from tests.support.meshapi import MeshApi
from tests.support.meshworld import fold
from tests.support.server import ServerProcess
from tests.support.until import until

ISSUER = "https://kubernetes.default.svc.cluster.local"
MEMORY = ("--store", "memory:")
SLICE = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1"


class Here(NamedTuple):
    """The cluster that links others."""

    server: ServerProcess
    api: MeshApi


@pytest.fixture(scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Here, Here]]:
    """`here` and `east`; asynchronous so that all tests share one loop."""
    here, east = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("east")
    with (
        ServerProcess(here, *MEMORY, "--cluster", "here") as one,
        ServerProcess(east, *MEMORY, "--cluster", "eastern", "--trust-domain", "east.test") as two,
    ):
        apis = MeshApi(one, "linkerd"), MeshApi(two, "linkerd")
        yield Here(one, apis[0]), Here(two, apis[1])
        for each in apis:
            each.close()


@pytest.fixture
def here(both: tuple[Here, Here]) -> Iterator[Here]:
    yield both[0]
    server = both[0].server
    for path in (LINKS, SECRETS):
        _, told = server.request("GET", path)
        for each in told.get("items", ()):
            server.request("DELETE", f"{path}/{each['metadata']['name']}")
    both[0].api.clear()


@pytest.fixture
def east(both: tuple[Here, Here]) -> Iterator[Here]:
    yield both[1]
    both[1].api.clear()


@pytest.fixture
async def client(both: tuple[Here, Here]) -> AsyncIterator[Asker]:
    async with asker(both[0].server.endpoints["destination"]) as made:
        yield made


def held(stream: Stream) -> set[str]:
    return {ip for ip, _ in fold({}, [each.SerializeToString() for each in stream.told])}


async def there(client: Asker, path: str) -> str:
    """The server has absorbed the Service that this path is about."""
    while True:
        async with client.ask("Get", path) as stream:
            await stream.answered()
            if stream.ended is not grpc.StatusCode.NOT_FOUND:
                return path


def synced(said: dict[str, object]) -> bool:
    return said["state"] == "synced"


def because(reason: str) -> Callable[[dict[str, object]], bool]:
    return lambda said: said["reason"] == reason


async def test_a_service_of_a_linked_cluster_is_found_and_followed(
    here: Here, east: Here, client: Asker
) -> None:
    export(east.api, "10.1.0.1")
    link(here.server, "east", admin_of(east.server))
    said = until_link(here.server, "east", synced)
    assert said["usable"]
    assert said["objects"] > 0
    name = await there(client, stand_in(here.api, "east"))
    async with client.ask("Get", name) as stream:
        await stream.until(lambda it: held(it) == {"10.1.0.1"})
        export(east.api, "10.1.0.1", "10.1.0.2")
        await stream.until(lambda it: held(it) == {"10.1.0.1", "10.1.0.2"})
        here.server.request("DELETE", f"{LINKS}/east")
        await stream.until(lambda it: not held(it))


async def test_an_account_that_may_read_little_is_enough(here: Here, east: Here) -> None:
    token = account(east.server)
    link(here.server, "east", with_token(east.server, token))
    said = until_link(here.server, "east", synced)
    assert said["reason"] == "Synced"  # what Linkerd's account may not read, nobody misses
    # What is wrong with a Link is said of it, and the others do not notice.
    post(here.server, SECRETS, secret_of("junk", "\x00{not: [yaml"))
    post(here.server, SECRETS, {**secret_of("none", "x"), "data": {}})
    post(here.server, SECRETS, secret_of("wrong", with_token(east.server, "a.b.c")))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        gone = admin_of(east.server)
        gone["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{nobody.getsockname()[1]}"
        post(here.server, SECRETS, secret_of("gone", gone))
        for name in ("junk", "none", "wrong", "gone", "missing"):
            post(here.server, LINKS, link_of(name, secret=name))
        post(here.server, LINKS, link_of("twin", cluster="east", secret="wrong"))
        post(here.server, LINKS, link_of("self", cluster="here"))
        wanted = {
            "junk": "BadKubeconfig",
            "none": "NoKubeconfig",
            "wrong": "CredentialsRejected",
            "missing": "SecretNotFound",
            "twin": "DuplicateCluster",
            "self": "OwnCluster",
        }
        for name, reason in wanted.items():
            said = until_link(here.server, name, because(reason))
            assert said["state"] == "refused", said
        said = until_link(here.server, "gone", lambda it: it["reason"] == "Unreachable")
        assert said["state"] == "connecting"
    assert until_link(here.server, "east", synced)["usable"]


async def test_rotated_credentials_are_taken_up_and_bad_ones_change_nothing(
    here: Here, east: Here, client: Asker
) -> None:
    export(east.api, "10.1.0.1")
    link(here.server, "east", admin_of(east.server))
    until_link(here.server, "east", synced)
    name = await there(client, stand_in(here.api, "east"))
    async with client.ask("Get", name) as stream:
        await stream.until(lambda it: held(it) == {"10.1.0.1"})
        told = len(stream.told)
        rotate(here.server, "east", with_token(east.server, "a.b.c"))
        said = until_link(here.server, "east", lambda it: it["reason"] == "CredentialsRejected")
        assert said["state"] == "synced"
        rotate(here.server, "east", with_token(east.server, account_again(east.server)))
        until_link(here.server, "east", lambda it: bool(it["tokenExpires"]))
        until_link(here.server, "east", because("Synced"))
        export(east.api, "10.1.0.7")
        await stream.until(lambda it: held(it) == {"10.1.0.7"})
        assert len(stream.told) - told <= 2  # no moment without endpoints in between


def account_again(server: ServerProcess) -> str:
    """Another token of the account, whether or not it was made before."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    code, _ = server.request("GET", f"{path}/linkerd-service-mirror-remote-access-default")
    if code != 200:
        return account(server)
    asked = f"{path}/linkerd-service-mirror-remote-access-default/token"
    return str(post(server, asked, {"spec": {}})["status"]["token"])


async def test_a_cluster_that_is_down_keeps_its_endpoints_and_one_that_was_put_back_is_believed(
    tmp_path: Path, here: Here, client: Asker
) -> None:
    home = tmp_path / "west"
    port = free_port()
    flags = ("--cluster", "west", "--listen", f"kube=127.0.0.1:{port}")
    with ServerProcess(home, *flags) as west:
        api = MeshApi(west, "linkerd")
        export(api, "10.2.0.1")
        api.close()
        link(here.server, "west", admin_of(west))
        until_link(here.server, "west", synced)
        name = await there(client, stand_in(here.api, "west"))
        west.stop(signal.SIGTERM)
        backup = {file.name: file.read_bytes() for file in home.iterdir() if file.is_file()}
    async with client.ask("Get", name) as stream:
        await stream.until(lambda it: held(it) == {"10.2.0.1"})
        with ServerProcess(home, *flags) as west:
            until_link(here.server, "west", synced)
            for number in range(20):
                more = {"metadata": {"name": f"more-{number}"}}
                post(west, "/api/v1/namespaces/shop/configmaps", more)
            code, slice_ = west.request("GET", SLICE)
            assert code == 200, slice_
            slice_["endpoints"][0]["addresses"] = ["10.2.0.2"]
            assert west.request("PUT", SLICE, slice_)[0] == 200
            await stream.until(lambda it: held(it) == {"10.2.0.2"})
            west.stop(signal.SIGKILL)
        said = until_link(here.server, "west", lambda it: it["state"] == "stale")
        assert said["reason"] == "Unreachable"
        assert said["usable"]
        assert held(stream) == {"10.2.0.2"}
        for file in home.iterdir():
            if file.is_file():
                file.unlink()
        for saved, data in backup.items():
            (home / saved).write_bytes(data)
        with ServerProcess(home, *flags):
            until_link(here.server, "west", synced)
            await stream.until(lambda it: held(it) == {"10.2.0.1"})


async def test_a_server_that_starts_while_a_cluster_is_away_tells_what_it_saw_last(
    tmp_path: Path,
) -> None:
    hub, west = tmp_path / "hub", tmp_path / "west"
    flags = ("--cluster", "west", "--listen", f"kube=127.0.0.1:{free_port()}")
    with ServerProcess(hub, "--cluster", "hub") as one, ServerProcess(west, *flags) as two:
        with closing(MeshApi(one, "linkerd")) as api, closing(MeshApi(two, "linkerd")) as theirs:
            export(theirs, "10.2.0.1")
            name = stand_in(api, "west")
        link(one, "west", admin_of(two))
        until_link(one, "west", synced)
        until(lambda: b"10.2.0.1" in kept(hub) or None, 30.0, lambda: one.log)
        for server in (one, two):
            server.stop(signal.SIGKILL)
    with ServerProcess(hub, "--cluster", "hub") as one:
        async with (
            asker(one.endpoints["destination"]) as client,
            client.ask("Get", name) as stream,
        ):
            await stream.answered()
            assert held(stream) == {"10.2.0.1"}
            said = until_link(one, "west", because("Unreachable"))
            assert said["state"] == "stale"
            assert said["usable"]
            with ServerProcess(west, *flags) as two:
                until_link(one, "west", synced)
                assert len(stream.told) == 1  # what the API says again is no news
                code, slice_ = two.request("GET", SLICE)
                assert code == 200, slice_
                slice_["endpoints"][0]["addresses"] = ["10.2.0.2"]
                assert two.request("PUT", SLICE, slice_)[0] == 200
                await stream.until(lambda it: held(it) == {"10.2.0.2"})
        assert one.request("DELETE", f"{LINKS}/west")[0] == 200
        until(lambda: not [*(hub / "links").iterdir()] or None, 30.0, lambda: one.log)


def kept(home: Path) -> bytes:
    """The views of linked clusters that a server has on its disk."""
    return b"".join(each.read_bytes() for each in (home / "links").glob("*.view"))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Gateway:
    """Something that answers probes, and can be silenced: a thread beside the servers."""

    def __init__(self) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ready)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/ready" else 404)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Quietly."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.close()


async def test_silent_and_nobody_behind_it_is_dead_and_either_alone_is_not(
    tmp_path: Path, here: Here, client: Asker, gateway: Gateway
) -> None:
    flags = ("--cluster", "west", "--listen", f"kube=127.0.0.1:{free_port()}")
    port = str(gateway.port)
    at = {
        "gatewayAddress": "127.0.0.1",
        "gatewayPort": port,
        "probeSpec": {"port": port, "path": "/ready", "period": "1s", "failureThreshold": "2"},
    }
    with ServerProcess(tmp_path, *flags) as west:
        api = MeshApi(west, "linkerd")
        export(api, "10.2.0.1")
        api.close()
        link(here.server, "west", admin_of(west), **at)
        said = until_link(here.server, "west", lambda it: it["gatewayAlive"] and synced(it))
        assert said["gatewayLatencyMillis"] is not None
        until_link(here.server, "west", lambda it: it["dataPlane"] == "answers")
        name = await there(client, stand_in(here.api, "west"))
        west.stop(signal.SIGKILL)
    async with client.ask("Get", name) as stream:
        await stream.until(lambda it: held(it) == {"10.2.0.1"})
        said = until_link(here.server, "west", lambda it: it["state"] == "stale")
        assert said["usable"]
        gateway.close()
        said = until_link(here.server, "west", lambda it: it["state"] == "dead")
        assert not said["usable"]
        assert said["reason"] == "Dead"
        await stream.until(lambda it: not held(it))
        with ServerProcess(tmp_path, *flags):
            said = until_link(here.server, "west", synced)
            assert said["usable"]
            await stream.until(lambda it: held(it) == {"10.2.0.1"})
            assert until_link(here.server, "west", lambda it: it["gatewayAlive"] is False)


@pytest.mark.parametrize("said", ["drop", "drain-after: 4s"])
async def test_a_link_may_let_endpoints_go_when_the_api_is_silent(
    tmp_path: Path, here: Here, client: Asker, said: str
) -> None:
    annotations = {"multicluster.isthmus.dev/staleness": said}
    with ServerProcess(tmp_path, "--cluster", "west", *MEMORY) as west:
        api = MeshApi(west, "linkerd")
        export(api, "10.2.0.1")
        api.close()
        link(here.server, "west", admin_of(west), annotations=annotations)
        until_link(here.server, "west", synced)
        name = await there(client, stand_in(here.api, "west"))
        async with client.ask("Get", name) as stream:
            await stream.until(lambda it: held(it) == {"10.2.0.1"})
            west.stop(signal.SIGKILL)
            await stream.until(lambda it: not held(it))
            assert not until_link(here.server, "west", lambda it: it["state"] == "stale")["usable"]


async def test_a_token_is_renewed_before_it_ends(here: Here, east: Here) -> None:
    account_again(east.server)
    old = short_token(east.server, seconds=15)
    link(here.server, "east", with_token(east.server, old))
    first = until_link(here.server, "east", synced)["tokenExpires"]
    later = until_link(here.server, "east", lambda it: it["tokenExpires"] > first)
    assert later["state"] == "synced"
    code, secret = here.server.request("GET", f"{SECRETS}/cluster-credentials-east")
    assert code == 200
    kept = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))
    assert kept["users"][0]["user"]["token"] != old
    assert not (here.server.home / "links").exists()  # its own objects do not outlive it either
    metrics = here.server.admin("/metrics")[1]
    assert 'isthmus_link_state{cluster="east",state="synced"} 1.0' in metrics


def short_token(server: ServerProcess, seconds: float) -> str:
    """A token such as the API itself would not make, for it lives too short."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ROLE}"
    _, account_ = server.request("GET", path)
    bound = ca.Bound("serviceaccounts", NAMESPACE, ROLE, account_["metadata"]["uid"])
    keys = server.home / "ca"
    keyring = ca.load_keyring(keys, ISSUER)
    return keyring.sign(bound, now=SystemClock().utc(), lifetime=timedelta(seconds=seconds))
