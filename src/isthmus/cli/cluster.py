"""A small client of the Kubernetes API: enough to find the other listeners of a control plane."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import tempfile
from typing import Any
from urllib.parse import urlencode, urlsplit

from isthmus.cli.kubeconfig import Access
from isthmus.errors import AlreadyExists, NotFound, Unavailable, UserFault

PATIENCE = 10.0
"""Seconds that connecting and each answer may take."""
LARGEST = 4 << 20
"""Bytes of an answer."""

MERGE = "application/merge-patch+json"

ENDPOINTS = "isthmus-endpoints"
"""The ConfigMap that says where a control plane listens (decision 24)."""


class Cluster:
    """The API server of one context, on one connection: not for several threads at once."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._at = urlsplit(access.server)
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The object at a path.

        Raises:
            NotFound: there is none.
            Unavailable: the server does not answer.
            UserFault: it refuses.
        """
        return self._ask("GET", f"{path}{'?' if query else ''}{urlencode(query)}", None)

    def text(self, path: str, largest: int = LARGEST) -> str:
        """What is at a path, whatever it is, of at most so many bytes.

        Raises:
            NotFound, Unavailable, UserFault: as for `get`.
        """
        headers = self._headers() | {"Accept": "*/*"}
        try:
            status, data = self._exchange("GET", path, None, headers, largest)
        except (OSError, http.client.HTTPException) as fault:
            self._close()
            raise Unavailable(f"cannot reach {self._where}: {fault}") from fault
        if status != http.client.OK:
            self._understand(path, status, data)
        return data.decode(errors="replace")

    def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Create an object; as it was stored.

        Raises:
            AlreadyExists: there is one of this name.
            Unavailable, UserFault: as for `get`.
        """
        return self._ask("POST", path, json.dumps(document))

    def merge(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Bring an object to what the document says of it (a merge patch); as it was stored.

        Raises:
            NotFound, Unavailable, UserFault: as for `get`.
        """
        return self._ask("PATCH", path, json.dumps(document), MERGE)

    def _ask(
        self, method: str, path: str, body: str | None, kind: str = "application/json"
    ) -> dict[str, Any]:
        headers = self._headers() | ({"Content-Type": kind} if body else {})
        used = self._connection is not None
        try:
            return self._say(method, path, body, headers)
        except (OSError, http.client.HTTPException) as fault:
            self._close()
            if not (used and method == "GET"):
                raise Unavailable(f"cannot reach {self._where}: {fault}") from fault
        try:  # the server may have closed what it kept open for us
            return self._say(method, path, body, headers)
        except (OSError, http.client.HTTPException) as fault:
            self._close()
            raise Unavailable(f"cannot reach {self._where}: {fault}") from fault

    def _say(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        status, data = self._exchange(method, path, body, headers, LARGEST)
        return self._understand(path, status, data)

    def _exchange(
        self, method: str, path: str, body: str | None, headers: dict[str, str], largest: int
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, self._at.path + path, body, headers)
        with self._connection.getresponse() as answer:
            status, data = answer.status, answer.read(largest)
            if answer.read(1):
                self._close()
                raise UserFault(f"{self._where} answers {path} with more than {largest} bytes")
        return status, data

    def __del__(self) -> None:
        """A command is one short process: nobody closes, so that nobody forgets to."""
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def listener(self, name: str, namespace: str | None) -> str:
        """`host:port` of the control plane's listener `name`, as seen from here.

        Its ConfigMap is looked for in `namespace`, else in all.
        """
        data = self._endpoints(namespace)
        at = data.get(name)
        if not at:
            raise UserFault(f"the control plane of {self._where} does not listen for {name!r}")
        host, _, port = str(at).rpartition(":")
        return f"{self._reachable(host)}:{port}"

    def _endpoints(self, namespace: str | None) -> dict[str, Any]:
        if namespace is not None:
            path = f"/api/v1/namespaces/{namespace}/configmaps/{ENDPOINTS}"
            try:
                found = [self.get(path)]
            except NotFound:
                found = []
        else:
            path = "/api/v1/configmaps"
            found = self.get(path, fieldSelector=f"metadata.name={ENDPOINTS}").get("items") or []
        if len(found) != 1:
            many = "several ConfigMaps" if found else "no ConfigMap"
            where = f"namespace {namespace!r} of " if namespace is not None else ""
            raise UserFault(
                f"{many} {ENDPOINTS} in {where}{self._where}; name the control plane's namespace"
                " with -L, or its listener with --api-addr"
            )
        data = found[0].get("data")
        return data if isinstance(data, dict) else {}

    def _reachable(self, host: str) -> str:
        """Who listens on all addresses is reached where the API is."""
        try:
            everywhere = ipaddress.ip_address(host.strip("[]")).is_unspecified
        except ValueError:
            everywhere = False
        if not everywhere:
            return host
        name = self._at.hostname or ""
        return f"[{name}]" if ":" in name else name

    @property
    def _where(self) -> str:
        return f"context {self._access.context!r} ({self._access.server})"

    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self._access.token}"} if self._access.token else {}
        return {"Accept": "application/json", **token}

    def _understand(self, path: str, status: int, body: bytes) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise UserFault(f"{self._where} answers {path} with status {status} and no JSON object")
        if status in (http.client.OK, http.client.CREATED):
            return document
        told = f"{self._where}: {document.get('message') or f'status {status}'}"
        if document.get("reason") == "AlreadyExists":
            raise AlreadyExists(told)
        raise NotFound(told) if status == http.client.NOT_FOUND else UserFault(told)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._at.hostname or "", self._at.port
        if self._at.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=PATIENCE)
        return _Connection(host, port, self._context(), self._access.server_name or host)

    def _context(self) -> ssl.SSLContext:
        access = self._access
        try:
            context = ssl.create_default_context(cadata=access.authority or None)
            if access.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if access.certificate:
                _load(context, access.certificate, access.key)
        except (OSError, ValueError) as fault:  # ssl's errors are OSErrors
            raise UserFault(f"the certificates of {self._where} cannot be used: {fault}") from fault
        return context


class _Connection(http.client.HTTPSConnection):
    """TLS that may expect another name than it dials."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, timeout=PATIENCE, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL reads keys from files alone: one that only we can read, for a moment."""
    handle, path = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108  # the path came from os too
