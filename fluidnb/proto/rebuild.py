"""Compile framework.proto again: ``python -m fluidnb.proto.rebuild`` writes framework.desc and framework_pb2.pyi.

Only this script needs a protobuf compiler (the one in grpcio-tools); what it writes is checked in.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def build() -> dict[str, bytes]:
    """Compile framework.proto in a temporary folder.

    Returns:
        The content of each generated file by its name: ``framework.desc`` and ``framework_pb2.pyi``.

    Raises:
        ImportError: grpcio-tools is not installed.
        RuntimeError: framework.proto does not compile; the compiler has written why to stderr.
    """
    protoc = importlib.import_module("grpc_tools.protoc")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        options = [f"-I{HERE}", f"--descriptor_set_out={out}/framework.desc", f"--pyi_out={out}", "framework.proto"]
        if protoc.main(["protoc", *options]):
            raise RuntimeError("framework.proto does not compile.")
        stub = for_strict_checkers((out / "framework_pb2.pyi").read_text())
        return {"framework.desc": (out / "framework.desc").read_bytes(), "framework_pb2.pyi": stub.encode()}


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


def main() -> int:
    """Write what `build` returns next to framework.proto and say which files changed."""
    for name, content in build().items():
        path = HERE / name
        changed = not path.exists() or path.read_bytes() != content
        path.write_bytes(content)
        print(f"{name}: {'written' if changed else 'as it was'}, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
