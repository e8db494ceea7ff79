"""What `talk` runs in a lab: HTTP and websockets on 8080 and 8081, an echo of bytes on 7000, and a
server that speaks first on 3306. Standard library only: it runs as a file of its own."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import socketserver
import threading

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to a client's key (RFC 6455)."""


class Http(http.server.BaseHTTPRequestHandler):
    """The body's hash to a POST, many bytes to a GET; and who asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/ws":
            self._talk(self.headers["Sec-WebSocket-Key"])
        else:
            self._say(b"x" * 3_000_000 if self.path == "/large" else b"fine")

    def _talk(self, key: str) -> None:
        """Short messages of a websocket, each sent back, until the client closes."""
        proof = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", proof)
        self.end_headers()
        while (head := self.rfile.read(2)) and head[0] & 15 != 8:
            mask, size = self.rfile.read(4), head[1] & 127
            said = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
            self.wfile.write(bytes((head[0], size)) + said)
        self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._say(hashlib.sha256(body).hexdigest().encode())

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Server", f"{os.uname().nodename}:{self.connection.getsockname()[1]}")
        self.send_header("X-Caller", self.headers.get("l5d-client-id", "nobody"))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Echo(socketserver.StreamRequestHandler):
    """What comes goes back, until the other side has said its last."""

    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


class First(socketserver.StreamRequestHandler):
    """Greets before it is asked anything."""

    def handle(self) -> None:
        self.wfile.write(b"welcome-from-mysql\n")
        self.rfile.readline()


class Server(socketserver.ThreadingTCPServer):
    """One listener."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    for port, handler in ((7000, Echo), (3306, First)):
        raw = Server(("0.0.0.0", port), handler)
        threading.Thread(target=raw.serve_forever, daemon=True).start()
    more = http.server.ThreadingHTTPServer(("0.0.0.0", 8081), Http)
    threading.Thread(target=more.serve_forever, daemon=True).start()
    http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Http).serve_forever()
