"""HTML renderings of values: images, curves, histograms, nested sequences."""

import math
from base64 import b64encode
from typing import Any

import numpy as np

from fluidnb.utils.escapes import escape
from fluidnb.values.lod_text import Offsets
from fluidnb.viz.base.png import png
from fluidnb.viz.base.styled_text import COLOURS, plural
from fluidnb.viz.values.preview import Preview

#: Colours of negative, non-negative and non-finite elements, readable on light and dark backgrounds.
_BELOW, _ABOVE, _HOLE = (59, 130, 246), (217, 119, 6), (229, 72, 77)
#: Pixels of the longer side of a picture, and of curves and bars.
_SIDE, _WIDE, _HIGH = 48, 96, 18
#: Sequences drawn in a box; the rest is counted.
_MOST = 8
_BOX = "display:inline-block;border:1px solid rgba(128,128,128,.6);border-radius:3px;padding:0 3px;margin:1px"


def preview_html(preview: Preview) -> str:
    """A preview as one element."""
    if preview.kind == "line":
        return _line(preview)
    rows, wide = preview.size
    scale = _SIDE / max(rows, wide)
    width, height = max(round(wide * scale), 4), max(round(rows * scale), 4)
    low, high = preview.range
    words = f"{preview.kind}, {low:.3g} to {high:.3g}" + (f"; {preview.what}" if preview.what else "")
    return (
        f'<img src="{preview_url(preview)}" width="{width}" height="{height}" '
        f'alt="{escape(words)}" title="{escape(words)}" style="image-rendering:pixelated;margin:1px;max-width:none;'
        f'outline:1px solid rgba(128,128,128,.4)">'
    )


def preview_url(preview: Preview) -> str:
    """A field or an image as a PNG in a data URL."""
    pixels = _image(preview) if preview.kind == "image" else _field(preview)
    return f"data:image/png;base64,{b64encode(png(pixels)).decode()}"


def histogram_html(counts: tuple[int, ...]) -> str:
    """A histogram as bars."""
    top, step = max(counts, default=0) or 1, _WIDE / max(len(counts), 1)
    heights = [_HIGH * n / top for n in counts]
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HIGH - high:.1f}" width="{step - 1:.1f}" height="{high:.1f}"/>'
        for i, high in enumerate(heights)
    )
    return _svg("histogram", f'<g fill="{COLOURS["forward"]}">{bars}</g>')


def lod_html(lod: Offsets, height: int) -> str:
    """A batch as nested boxes, one for each sequence, the innermost with its number of rows."""
    return f'<div title="{plural(height, "row")}">{_sequences(lod, 0, len(lod[0]) - 1)}</div>' if lod else ""


def _sequences(lod: Offsets, first: int, last: int) -> str:
    """A range of sequences of the first level and their contents."""
    parts = []
    for i in range(first, min(last, first + _MOST)):
        a, b = lod[0][i], lod[0][i + 1]
        inner = _sequences(lod[1:], a, b) if len(lod) > 1 else plural(b - a, "row")
        parts.append(f'<span style="{_BOX}">{inner}</span>')
    left = last - first - _MOST
    return "".join(parts) + (f" … {plural(left, 'more sequence')}" if left > 0 else "")


def _line(preview: Preview) -> str:
    row = preview.planes[0][0]
    low, high = preview.range
    across, up = (_WIDE - 2) / max(len(row) - 1, 1), (_HIGH - 4) / ((high - low) or 1.0)
    runs: list[list[str]] = [[]]  # a NaN or an infinity interrupts the line
    for i, v in enumerate(row):
        if math.isfinite(v):
            runs[-1].append(f"{1 + i * across:.1f},{_HIGH - 2 - (v - low) * up:.1f}")
        elif runs[-1]:
            runs.append([])
    style = f'fill="none" stroke="{COLOURS["forward"]}" stroke-width="1.5" stroke-linecap="round"'
    points = [" ".join(run * 2 if len(run) == 1 else run) for run in runs if run]  # a point alone is a dot
    lines = "".join(f'<polyline {style} points="{p}"/>' for p in points)
    return _svg(f"{low:.3g} to {high:.3g}" + (f"; {preview.what}" if preview.what else ""), lines)


def _svg(label: str, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" width="{_WIDE}" '
        f'height="{_HIGH}" viewBox="0 0 {_WIDE} {_HIGH}" style="vertical-align:middle">{inside}</svg>'
    )


def _image(preview: Preview) -> np.ndarray[Any, Any]:
    """Grey or RGB: the smallest element is black, the largest white, non-finite ones black."""
    low, high = preview.range
    values = np.nan_to_num(np.asarray(preview.planes), nan=low, posinf=low, neginf=low)
    return ((values - low) * (255 / ((high - low) or 1.0))).round().astype(np.uint8).transpose(1, 2, 0)


def _field(preview: Preview) -> np.ndarray[Any, Any]:
    """Colour by sign, opacity by magnitude; the element nearest to 0 is transparent."""
    values = np.asarray(preview.planes[0])
    fine = np.isfinite(values)
    size = np.abs(np.where(fine, values, 0.0))
    low, high = preview.range
    least = 0.0 if low <= 0 <= high or low == high else min(abs(low), abs(high))
    span = (max(abs(low), abs(high)) - least) or 1.0
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = np.where((values < 0)[..., None], _BELOW, _ABOVE)
    pixels[..., 3] = (255 * np.clip((size - least) / span, 0, 1)).astype(np.uint8)
    pixels[~fine] = (*_HOLE, 255)
    return pixels
