"""Cells and widgets in plain Python, for front ends without magics; from `fluidnb_magics.ui`."""

from fluidnb_magics.ui import (
    BuiltCell,
    builder,
    cell,
    drop,
    explorer,
    lesson,
    memory,
    panel,
    scope,
    timeline,
)

__all__ = ["BuiltCell", "builder", "cell", "drop", "explorer", "lesson", "memory", "panel", "scope", "timeline"]
