"""A gRPC server for a lab: /a.B/C answers with what was sent, on port 9000."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc


class Echo(grpc.GenericRpcHandler):
    """Every call."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        said = dict(handler_call_details.invocation_metadata or ())
        caller = str(said.get("l5d-client-id", "nobody")).encode()
        return grpc.unary_unary_rpc_method_handler(
            lambda request, _context: b"echo " + request + b" of " + caller
        )


if __name__ == "__main__":
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Echo(),))
    server.add_insecure_port("0.0.0.0:9000")
    server.start()
    server.wait_for_termination()
