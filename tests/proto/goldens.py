"""The recorded programs that several tests read."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.internal import api_implementation

FOLDER = Path(__file__).parents[1] / "golden" / "proto"
PATHS = sorted(FOLDER.glob("*.pb"))
NAMES = [path.stem for path in PATHS]
#: Where protobuf runs without its C library it refuses text that is not UTF-8, whatever the field says.
keeps_any_bytes = pytest.mark.skipif(api_implementation.Type() == "python", reason="protobuf in pure Python")


def golden(name: str) -> bytes:
    """The bytes of one recorded program.

    Args:
        name: the file's name without its ending.
    """
    return (FOLDER / f"{name}.pb").read_bytes()
