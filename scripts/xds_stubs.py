"""Generates stubs/: types of the Envoy messages that the project uses (`make proto`).

xds-protos has neither stubs nor .proto files, but its modules carry their descriptors, and of those
protoc makes stubs. `python scripts/xds_stubs.py [DIR]` writes below DIR (default: stubs, where it
is committed). What src, tests and bench import of `envoy`, `xds` and `udpa` is found
in the sources; what that imports comes along.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
STUBS = ROOT / "stubs"

_IMPORT = re.compile(r"^\s*from ((?:envoy|xds|udpa)\.[\w.]+) import \(?\s*(\w+_pb2)", re.MULTILINE)
_FOREIGN = ("google/protobuf/",)
"""types-protobuf has these."""


def imported() -> set[str]:
    """The modules that the sources import."""
    files = (path for part in ("src", "tests", "bench") for path in (ROOT / part).rglob("*.py"))
    return {".".join(found) for path in files for found in _IMPORT.findall(path.read_text())}


def descriptors(modules: set[str]) -> dict[str, FileDescriptor]:
    """The files of these modules, and of all that they import, by path."""
    found: dict[str, FileDescriptor] = {}
    todo = [import_module(name).DESCRIPTOR for name in sorted(modules)]
    while todo:
        file = todo.pop()
        if file.name not in found:
            found[file.name] = file
            todo.extend(file.dependencies)
    return found


def _protos(files: dict[str, FileDescriptor]) -> Iterator[FileDescriptorProto]:
    for _, file in sorted(files.items()):
        wire = FileDescriptorProto()
        file.CopyToProto(wire)
        yield wire


def generate(target: Path) -> int:
    """Write a stub for every message file below `target`; 0 when all went well."""
    files = descriptors(imported())
    target.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in sorted(files) if not name.startswith(_FOREIGN)]
    plugin = Path(sys.executable).parent / "protoc-gen-mypy"
    with tempfile.NamedTemporaryFile(suffix=".pb") as whole:
        whole.write(FileDescriptorSet(file=_protos(files)).SerializeToString())
        whole.flush()
        return int(
            protoc.main(
                [
                    "protoc",
                    f"--descriptor_set_in={whole.name}",
                    f"--plugin=protoc-gen-mypy={plugin}",
                    f"--mypy_out=quiet:{target}",
                    *wanted,
                ]
            )
        )


if __name__ == "__main__":
    sys.exit(generate(Path(sys.argv[1]) if len(sys.argv) > 1 else STUBS))
