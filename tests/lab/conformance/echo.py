"""What `echo` runs: HTTP on 8080 and gRPC on 7070 that tell what they were asked, bytes on 9090.

It runs as a file of its own, in a pod.
"""

from __future__ import annotations

import http.server
import json
import os
import socketserver
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc

POD = os.uname().nodename


class Http(http.server.BaseHTTPRequestHandler):
    """Tells the request and who answers."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write

    def do_GET(self) -> None:
        seen = {"pod": POD, "path": self.path, "headers": self.headers.items()}
        body = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Calls(grpc.GenericRpcHandler):
    """Tells every call and who answers."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        said = [[key, value] for key, value in handler_call_details.invocation_metadata or ()]
        seen = {"pod": POD, "path": handler_call_details.method, "headers": said}
        body = json.dumps(seen, default=repr).encode()
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: body)


class Bytes(socketserver.StreamRequestHandler):
    """What comes goes back."""

    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    """One listener."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    calls = grpc.server(ThreadPoolExecutor(4))
    calls.add_generic_rpc_handlers((Calls(),))
    calls.add_insecure_port("0.0.0.0:7070")
    calls.start()
    raw = Server(("0.0.0.0", 9090), Bytes)
    threading.Thread(target=raw.serve_forever, daemon=True).start()
    http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Http).serve_forever()
