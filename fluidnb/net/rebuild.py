"""Compile net.proto again: ``python -m fluidnb.net.rebuild`` writes net.desc and net_pb2.pyi.

Only this script needs a protobuf compiler (the one in grpcio-tools); what it writes is checked in.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from fluidnb.proto import rebuild

HERE = Path(__file__).parent


def build() -> dict[str, bytes]:
    """Compile net.proto in a temporary folder.

    Returns:
        The content of each generated file by its name: ``net.desc`` and ``net_pb2.pyi``.

    Raises:
        ImportError: grpcio-tools is not installed.
        RuntimeError: net.proto does not compile; the compiler has written why to stderr.
    """
    protoc = importlib.import_module("grpc_tools.protoc")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        options = [f"-I{HERE}", f"-I{rebuild.HERE}", f"--descriptor_set_out={out}/net.desc", f"--pyi_out={out}"]
        if protoc.main(["protoc", *options, "net.proto"]):
            raise RuntimeError("net.proto does not compile.")
        stub = rebuild.for_strict_checkers((out / "net_pb2.pyi").read_text())
        stub = stub.replace("import framework_pb2 as", "from fluidnb.proto import framework_pb2 as")
        return {"net.desc": (out / "net.desc").read_bytes(), "net_pb2.pyi": stub.encode()}


def main() -> int:
    """Write what `build` returns next to net.proto and say which files changed."""
    for name, content in build().items():
        path = HERE / name
        changed = not path.exists() or path.read_bytes() != content
        path.write_bytes(content)
        print(f"{name}: {'written' if changed else 'as it was'}, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
