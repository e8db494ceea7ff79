"""Isthmus: one service mesh over many clusters and datacenters."""

import os

# gRPC's handlers of fork() can crash the child between fork and exec (seen with grpcio 1.85 when
# the child changes its user). Nothing of ours goes on running Python in a forked child.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

__version__ = "0.1.0"
