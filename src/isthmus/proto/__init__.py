"""Generated messages of the protocols we serve, and the .proto files they come from.

`linkerd/` is wire-compatible with linkerd2-proxy-api. Nothing here is written by hand but the
.proto files: after editing one, run `make proto` (a test says when the code is stale). The package
knows nothing of gRPC: streams deal in bytes, and services are declared where they are served.
"""
