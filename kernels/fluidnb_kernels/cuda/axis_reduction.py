"""Reductions over any axes as folds of lines, one launch after the other, and how a result is spread again."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.line_grid import BLOCKS, COLUMNS, at_once, each_line, way_of
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import CTYPES, ctype

#: Blocks that keep a device busy, and the elements that a thread's line at least has when lines are cut for them.
_BUSY, _LEAST = 1024, 16
_HALF = ("float16", "bfloat16")


class Fold(NamedTuple):
    """The folds of a reduction that takes one launch, or several."""

    only: str  # for one launch
    first: str = ""  # for the first of several; default ``only``
    then: str = ""  # for the others; default ``only``
    last: str = ""  # for the last one; default ``then``

    def names(self, count: int) -> list[str]:
        """The folds of so many launches."""
        if count == 1:
            return [self.only]
        then = self.then or self.only
        return [self.first or self.only, *[then] * (count - 2), self.last or then]


def groups(shape: Any, axes: Iterable[int]) -> list[tuple[int, bool]]:
    """A shape with neighbours joined: (size, whether it is reduced), reduced and kept axes by turns."""
    gone, out = set(axes), list[tuple[int, bool]]()
    for i, n in enumerate(shape):
        if n == 1:
            continue
        if out and out[-1][1] == (i in gone):
            out[-1] = out[-1][0] * n, i in gone
        else:
            out.append((n, i in gone))
    return out if any(reduced for _, reduced in out) else [*out, (1, True)]


def _steps(shape: Any, axes: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
    """Launches: number of lines left, length of a line, length of its pieces, and stride of elements."""
    parts = groups(shape, axes)
    while any(reduced for _, reduced in parts):
        at = max((i for i, part in enumerate(parts) if part[1]), key=lambda i: parts[i][0])
        n, lines = parts[at][0], prod(size for i, (size, _) in enumerate(parts) if i != at)
        inner = prod(size for size, _ in parts[at + 1 :])
        way = way_of(n, inner)
        most = n // (_LEAST * {BLOCKS: 256, COLUMNS: 8}.get(way, n))
        pieces = min(most, _BUSY // max(1, -(-lines // at_once(way))))
        piece = n if pieces < 2 else -(-n // pieces)
        pieces = 1 if piece == n else -(-n // piece)
        parts[at] = pieces, pieces > 1
        yield lines * pieces, n, piece, inner


def fold(
    b: Binder, source: Source, how: Fold, x: Array, axes: Iterable[int], out: Array, a: float = 1.0,
    y: Array | None = None,
) -> None:  # fmt: skip
    """Emit a reduction over axes, none negative; ``y`` is a second operand of the shape and dtype of ``x``."""
    steps = list(_steps(x.shape, axes))
    wide = np.dtype(np.float32) if x.dtype.name in _HALF else x.dtype
    for i, (name, (lines, n, piece, inner)) in enumerate(zip(how.names(len(steps)), steps, strict=True)):
        to = out if i == len(steps) - 1 else b.tmp((lines,), wide)
        kernel = f"fold<{name}, {ctype(x.dtype)}, {ctype(to.dtype)}>"
        other = x if y is None or i else y
        each_line(b, source, kernel, lines, piece, inner, x, other, to, np.float64(a), np.int64(n))
        x = to


def fold_types(dtypes: Iterable[str]) -> Iterator[str]:
    """Types between which a fold is needed for some dtypes: ``__half, float`` and others."""
    for dtype in dtypes:
        own = CTYPES[dtype]
        yield f"{own}, {own}"
        if dtype in _HALF:
            yield from (f"{own}, float", f"float, {own}", "float, float")


def spread(
    b: Binder, source: Source, name: str, axes: Iterable[int], x: Array | None, y: Array | None, g: Array, dx: Array,
    numbers: tuple[float, float] = (0.0, 0.0),
) -> None:  # fmt: skip
    """Emit the gradient of a reduction over axes."""
    parts = groups(dx.shape, axes)
    order = sorted((i for i, part in enumerate(parts) if part[1]), key=lambda i: parts[i][0])
    sizes = [1 if reduced else size for size, reduced in parts]
    for at in order[:-1]:
        n, inner = parts[at][0], prod(sizes[at + 1 :])
        sizes[at] = n
        g = _spread(b, source, "s::share", n, inner, None, None, g, b.tmp((prod(sizes),), g.dtype), (1.0, 0.0))
        if y is not None:
            y = _spread(b, source, "s::share", n, inner, None, None, y, b.tmp((prod(sizes),), y.dtype), (1.0, 0.0))
    n, inner = parts[order[-1]][0], prod(sizes[order[-1] + 1 :])
    _spread(b, source, name, n, inner, x, y, g, dx, numbers)


def _spread(
    b: Binder, source: Source, name: str, n: int, inner: int, x: Array | None, y: Array | None, g: Array, dx: Array,
    numbers: tuple[float, float],
) -> Array:  # fmt: skip
    index, number = ("unsigned", np.uint32) if dx.size < 1 << 31 else ("long long", np.int64)
    kernel = f"spread<{name}, {ctype(dx.dtype)}, {index}>"
    operands = dx if x is None else x, g if y is None else y, g, dx
    each(b, source, kernel, dx.size, *operands, *map(np.float64, numbers), number(n), number(inner))
    return dx
