"""Compiles the proto files again: ``python -m tests.tools.rebuild_protos`` writes their .desc and _pb2.pyi.

It needs a protobuf compiler (the one in grpcio-tools); what it writes is checked in.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

FLUIDNB = Path(__file__).parents[2] / "fluidnb"
#: Name of a proto file -> its folder.
FOLDERS = {"framework": FLUIDNB / "proto", "net": FLUIDNB / "net"}


def build(name: str) -> dict[str, bytes]:
    """Compiles a proto file in a temporary folder; returns the content of each generated file by name."""
    protoc = importlib.import_module("grpc_tools.protoc")
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary)
        options = [f"-I{folder}" for folder in dict.fromkeys([FOLDERS[name], FOLDERS["framework"]])]
        options += [f"--descriptor_set_out={out}/{name}.desc", f"--pyi_out={out}"]
        if protoc.main(["protoc", *options, f"{name}.proto"]):
            raise RuntimeError(f"{name}.proto does not compile.")
        stub = for_strict_checkers((out / f"{name}_pb2.pyi").read_text("utf-8"))
        stub = stub.replace("import framework_pb2 as", "from fluidnb.proto import framework_pb2 as")
        # the file alone: importing descriptor_pb2, which parses a set of files, takes 5 ms of fluidnb's start-up
        file = FileDescriptorSet.FromString((out / f"{name}.desc").read_bytes()).file[0]
        return {f"{name}.desc": file.SerializeToString(), f"{name}_pb2.pyi": stub.encode()}


def for_strict_checkers(stub: str) -> str:
    """The compiler's type stub made fit for mypy --strict, and out of the linter's sight.

    Example:
        >>> for_strict_checkers("from typing import Union as _Union\\nx: _Union[int, _Mapping]\\n")
        '# ruff: noqa\\nfrom typing import Any as _Any, Union as _Union\\nx: _Union[int, _Mapping[str, _Any]]\\n'
    """
    stub = stub.replace("_Mapping]", "_Mapping[str, _Any]]").replace(
        "from typing import ", "from typing import Any as _Any, "
    )
    return f"# ruff: noqa\n{stub}"


def main() -> None:
    """Writes the generated files next to their proto file and prints which of them changed."""
    for name, folder in FOLDERS.items():
        for file, content in build(name).items():
            path = folder / file
            changed = not path.exists() or path.read_bytes() != content
            path.write_bytes(content)
            print(f"{file}: {'written' if changed else 'as it was'}, {len(content)} bytes")


if __name__ == "__main__":
    main()
