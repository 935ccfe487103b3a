"""Shared parts of SVG renderings: font, character width, unique ids."""

from __future__ import annotations

import uuid

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
#: Width of a character at font size 12.
CHAR = 7.23


def new_uid() -> str:
    """A unique prefix for the ids of one picture."""
    return f"f{uuid.uuid4().hex[:10]}_"
