"""A page of a control plane's admin listener."""

from __future__ import annotations

import http.client
import json
from typing import Any

from isthmus.errors import Unavailable, UserFault

PATIENCE = 5.0
"""Seconds that connecting and the answer may take."""
LARGEST = 16 << 20
"""Bytes of an answer."""


def page(at: str, path: str) -> tuple[int, Any]:
    """The status and the JSON that the listener at `host:port` answers.

    Raises:
        Unavailable: it does not answer.
        UserFault: it answers something else.
    """
    host, _, port = at.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        status, body = answer.status, answer.read(LARGEST)
    except (OSError, http.client.HTTPException) as fault:
        raise Unavailable(f"the control plane at {at} does not answer: {fault}") from fault
    finally:
        connection.close()
    try:
        return status, json.loads(body)
    except ValueError as fault:
        raise UserFault(f"{at} answers {path} with status {status} and no JSON") from fault
