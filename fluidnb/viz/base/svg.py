"""What SVG renderings share: the font, the width of a character, unique ids."""

from __future__ import annotations

import uuid

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
#: Width of a character at font size 12.
CHAR = 7.23


def new_uid() -> str:
    """A start for the ids of one picture, unlike that of any other picture on any page."""
    return f"f{uuid.uuid4().hex[:10]}_"
