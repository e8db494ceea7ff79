"""Generates the Python code of src/isthmus/proto from its .proto files (`make proto`).

`python scripts/proto.py [DIR]` writes below DIR (default: src, where it is committed), so that a
test can generate into an empty folder and compare.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

SOURCES = Path(__file__).resolve().parent.parent / "src"


def generate(target: Path) -> int:
    """Write `*_pb2.py` and `*_pb2.pyi` for every .proto file below src; 0 when all went well."""
    protos = sorted(str(path) for path in SOURCES.glob("isthmus/proto/*/*.proto"))
    plugin = Path(sys.executable).parent / "protoc-gen-mypy"
    return int(
        protoc.main(
            [
                "protoc",
                f"-I{SOURCES}",
                f"-I{Path(protoc.__file__).parent / '_proto'}",
                f"--plugin=protoc-gen-mypy={plugin}",
                f"--python_out={target}",
                f"--mypy_out=quiet:{target}",
                *protos,
            ]
        )
    )


if __name__ == "__main__":
    sys.exit(generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES))
