"""Compiles net.proto again: ``python -m fluidnb.net.rebuild`` writes net.desc and net_pb2.pyi."""

from __future__ import annotations

import sys
from pathlib import Path

from fluidnb.proto import rebuild

HERE = Path(__file__).parent


def build() -> dict[str, bytes]:
    """Compiles net.proto in a temporary folder; returns the content of each generated file by name."""
    return rebuild.build(HERE, "net")


if __name__ == "__main__":
    sys.exit(rebuild.main(HERE, "net"))
