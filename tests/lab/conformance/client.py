"""The client in a pod: a JSON list of requests in each line of stdin, their answers in stdout."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from typing import Any

import grpc

CALL = "/gateway_api_conformance.echo_basic.grpcecho.GrpcEcho/Echo"
PATIENCE = 10
"""Seconds that a request may take."""


def ask(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers to a request that is made `count` times."""
    make = _calls if said["protocol"] == "grpc" else _requests
    try:
        yield from make(said)
    except (OSError, http.client.HTTPException, ValueError) as fault:
        yield {"status": 0, "fault": repr(fault)}


def _requests(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    line = http.client.HTTPConnection(said["host"], said["port"], timeout=PATIENCE)
    hosts = [value for name, value in said["headers"] if name.lower() == "host"]
    try:
        for _ in range(said["count"]):
            line.putrequest(said["method"], said["path"], skip_host=bool(hosts))
            for name, value in said["headers"]:
                line.putheader(name, value)
            line.endheaders()
            answer = line.getresponse()
            body, headers = answer.read(), answer.getheaders()
            seen = json.loads(body) if answer.status == http.client.OK else None
            yield {"status": answer.status, "headers": headers, "seen": seen}
    finally:
        line.close()


def _calls(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    metadata = tuple((name.lower(), value) for name, value in said["headers"])
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"{said['host']}:{said['port']}", options=options) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(CALL)
        for _ in range(said["count"]):
            try:
                body = call(b"", timeout=PATIENCE, metadata=metadata)
            except grpc.RpcError as fault:
                yield {"status": 500, "fault": str(fault)}
            else:
                yield {"status": 200, "headers": [], "seen": json.loads(body)}


if __name__ == "__main__":
    for text in sys.stdin:
        answers = [answer for one in json.loads(text) for answer in ask(one)]
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()
