"""Small protocols: exec's frames, a gRPC health check, what a probe concludes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from hypothesis import given
from hypothesis import strategies as st

from isthmus.lab.kubelet import channels
from isthmus.lab.pods.grpc_health import HealthCheck
from isthmus.lab.pods.probes import Probe, Verdict, port_of


def test_the_end_of_a_command_is_read_as_it_was_written() -> None:
    for code in (0, 1, 137):
        frame = channels.ended(code)
        assert frame[0] == channels.END
        assert channels.read_end(frame[1:]) == channels.End(code)
    failed = channels.read_end(channels.failed("no such program")[1:])
    assert failed == channels.End(None, "no such program")


@given(st.binary(max_size=200))
def test_frames_of_strangers_never_break_the_reader(frame: bytes) -> None:
    channels.read_end(frame)
    assert min(channels.read_size(frame)) > 0


# --------------------------------------------------------------------------------------------- gRPC


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = grpc.aio.server()
    service = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    await service.set("", health_pb2.HealthCheckResponse.SERVING)
    await service.set("good", health_pb2.HealthCheckResponse.SERVING)
    await service.set("bad", health_pb2.HealthCheckResponse.NOT_SERVING)
    found = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield found
    await server.stop(None)


@pytest.mark.parametrize(
    ("service", "healthy"), [("", True), ("good", True), ("bad", False), ("unknown", False)]
)
async def test_a_real_health_service_is_asked(port: int, service: str, healthy: bool) -> None:
    check = HealthCheck(f"127.0.0.1:{port}", service)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while check.healthy is None:
        writer.write(check.send())
        check.receive(await reader.read(4096))
    writer.close()
    await writer.wait_closed()
    assert check.healthy is healthy


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_an_answer_that_is_none_is_not_healthy(parts: list[bytes]) -> None:
    check = HealthCheck("x", "")
    for part in parts:
        check.receive(part)
    check.receive(b"")
    assert check.healthy is False


# ------------------------------------------------------------------------------------------- probes


def probe(**fields: object) -> Probe:
    found = Probe.of({"livenessProbe": {"tcpSocket": {"port": 1}, **fields}}, "livenessProbe")
    assert found is not None
    return found


def falls(verdict: Verdict, answers: str) -> str:
    """`+` where the verdict became good, `-` where it fell bad, `.` where nothing changed."""
    told = ""
    for answer in answers:
        fell = verdict.note(well=answer == "y")
        told += "." if not fell else "+" if verdict.good else "-"
    return told


def test_it_takes_several_answers_in_a_row() -> None:
    three = probe(failureThreshold=3, successThreshold=2)
    assert falls(Verdict(three, good=False), "ynyyynnynnny") == "...+......-."
    assert falls(Verdict(three, good=True), "yynnnnnnyy") == "....-..-.+"


def test_defaults_are_those_of_the_api() -> None:
    found = probe()
    assert (found.delay, found.period, found.timeout, found.failures) == (0, 10, 1, 3)
    assert Probe.of({}, "livenessProbe") is None


def test_ports_by_number_and_by_name() -> None:
    container = {"ports": [{"name": "http", "containerPort": 8080}]}
    assert [port_of(port, container) for port in (80, "81", "http")] == [80, 81, 8080]
    with pytest.raises(OSError, match="no port 'none'"):
        port_of("none", container)
