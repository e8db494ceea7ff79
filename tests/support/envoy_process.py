"""A real Envoy that is told everything by xDS, and what one can ask it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from isthmus.aio import SystemClock, deadline

BINARY = Path(sys.executable).parent / "envoy"
CLOCK = SystemClock()
PAUSE = 0.02


def bootstrap(ads: Path, node: str, api: str) -> dict[str, Any]:
    """ADS over a unix socket; api is DELTA_GRPC or GRPC."""
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    source = {"ads": {}, "resource_api_version": "V3"}
    back_off = {"retry_back_off": {"base_interval": "0.05s", "max_interval": "0.2s"}}
    endpoint = {"endpoint": {"address": {"pipe": {"path": str(ads)}}}}
    return {
        "node": {"id": node, "cluster": "test"},
        "dynamic_resources": {
            "ads_config": {
                "api_type": api,
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [
                    {"envoy_grpc": {"cluster_name": "xds", "retry_policy": back_off}}
                ],
            },
            "cds_config": source,
            "lds_config": source,
        },
        "static_resources": {
            "clusters": [
                {
                    "name": "xds",
                    "type": "STATIC",
                    "connect_timeout": "1s",
                    "typed_extension_protocol_options": {
                        options: {
                            "@type": f"type.googleapis.com/{options}",
                            "explicit_http_config": {"http2_protocol_options": {}},
                        }
                    },
                    "load_assignment": {
                        "cluster_name": "xds",
                        "endpoints": [{"lb_endpoints": [endpoint]}],
                    },
                }
            ]
        },
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
    }


class Envoy:
    """A process that runs."""

    def __init__(self, admin: str, session: aiohttp.ClientSession) -> None:
        self.admin = admin
        self.session = session

    async def ask(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"http://{self.admin}{path}") as answer:
            return answer.status, await answer.text()

    async def live(self) -> bool:
        return (await self.ask("/ready"))[0] == 200

    async def clusters(self) -> set[str]:
        """Those that are in use, warm ones only."""
        _, text = await self.ask("/config_dump?resource=dynamic_active_clusters")
        return {one["cluster"]["name"] for one in json.loads(text).get("configs", ())}

    async def until(self, what: Any, seconds: float, why: str) -> None:  # noqa: ANN401
        """Wait until the coroutine function `what` answers with truth."""
        async with deadline(CLOCK, seconds, why):
            while not await what():
                await CLOCK.sleep(PAUSE)


@asynccontextmanager
async def envoy(
    folder: Path, ads: Path, *, node: str = "proxy", api: str = "DELTA_GRPC"
) -> AsyncIterator[Envoy]:
    """Run one; it need not be live yet. What it says is in `envoy.log` in the folder."""
    command = prepare(folder, bootstrap(ads, node, api))
    with (folder / "envoy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        async with deadline(CLOCK, 20, "the start of Envoy"):
            while not (address := read(folder / "admin")):
                if process.returncode is not None:
                    pytest.fail(read(folder / "envoy.log"))
                await CLOCK.sleep(PAUSE)
        async with aiohttp.ClientSession() as session:
            yield Envoy(address, session)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def prepare(folder: Path, config: dict[str, Any]) -> tuple[str, ...]:
    """Write the bootstrap; return the command."""
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is missing: it comes with requirements/dev.txt")
    folder.mkdir(exist_ok=True)
    (folder / "envoy.json").write_text(json.dumps(config))
    flags = ("--concurrency", "1", "--disable-hot-restart", "-l", "warning", "--drain-time-s", "1")
    files = ("-c", str(folder / "envoy.json"), "--admin-address-path", str(folder / "admin"))
    return (str(BINARY), *files, *flags)


def read(path: Path) -> str:
    """A file's text, empty if there is none."""
    return path.read_text().strip() if path.exists() else ""
