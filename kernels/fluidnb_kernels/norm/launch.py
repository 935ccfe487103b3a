"""Normalisation as launches: over channels, and over lines that are normalised by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import Source, ctype, elements
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.line_grid import BLOCKS, COLUMNS, TEAM, WARPS, at_once
from fluidnb_kernels.cuda.register_rows import held_rows, held_types
from fluidnb_kernels.emit import FLOATS

Array = Any

#: Flags of the kernels, as ``norm.cu`` numbers them.
SCALE, BIAS, LAST, INVERSE, FIXED = 1, 2, 4, 8, 16
#: Blocks that a launch should have, elements that a thread should have at least before a channel is cut into parts,
#: blocks at most along x, and the longest line of a warp.
_WANTED, _WORK, _MOST, _WARP = 1024, 8, 1 << 16, 1024

_OF_STORED = ("channel_moments", "channel_norm", "channel_sums", "channel_grad", "line_norm", "line_grad")
_OF_WIDE = ("batch_moments", "running_moments", "number", "parts_together", "inverses")


def _kernels() -> Iterator[str]:
    for dtype in elements(FLOATS):
        names = _OF_STORED + (_OF_WIDE if wide_dtype(dtype) == dtype else ())
        yield from (f"{name}<{ctype(dtype)}>" for name in names)


def _row_kernels() -> Iterator[str]:
    names = "row_norm", "row_grad"
    yield from (f"{name}<{types}>" for name in names for dtype in elements(FLOATS) for types in held_types(dtype))


CUDA, ROWS = Source(__file__, "norm.cu", _kernels), Source(__file__, "row_norm.cu", _row_kernels)


def vector(b: Binder, slot: str, like: Array) -> Array:
    """An input over channels or lines in the precision in which an array is computed; None where it is left out."""
    return None if b[slot] is None else of_dtype(b, b[slot], wide_dtype(like.dtype))


def room(b: Binder, slot: str, size: int, like: Array) -> Array:
    """The buffer of an output over channels or lines; a workspace where it has no consumer."""
    wide = wide_dtype(like.dtype)
    return b.tmp((size,), wide) if b[slot] is None else writing_as(b, b[slot], wide)


def settle(b: Binder, slot: str, given: Array) -> None:
    """Copy the buffer of `room` to its output.

    Args:
        given: what `room` gave for it.
    """
    if b[slot] is not None:
        written_as(b, b[slot], given)


@dataclass(frozen=True, slots=True)
class Channels:
    """An array as [rows, channels, inner], in launches that take a channel after another.

    Args:
        rows: how many rows.
        channels: how many channels.
        inner: elements of a channel in a row.

    Example:
        >>> Channels(32, 64, 3136).parts
        16
    """

    rows: int
    channels: int
    inner: int

    @property
    def way(self) -> int:
        """How a block works at channels: see ``reduce.cuh``."""
        return COLUMNS if self.inner == 1 else BLOCKS

    @property
    def blocks(self) -> int:
        """The number of adjacent blocks."""
        return max(1, min(_MOST, -(-self.channels // at_once(self.way))))

    @property
    def parts(self) -> int:
        """Into how many parts channels are cut, so that there is work for the whole device."""
        threads = TEAM if self.way == COLUMNS else 32 * TEAM
        return max(1, min(_WANTED // self.blocks, self.rows * self.inner // (threads * _WORK)))

    def launch(self, b: Binder, kernel: str, like: Array, *args: Any) -> None:
        """Emit a launch; the three sizes and the way come as its last arguments."""
        if self.channels:
            sizes = map(np.int64, (self.rows, self.channels, self.inner))
            name = CUDA[f"{kernel}<{ctype(like.dtype)}>"]
            b(name, (self.blocks, self.parts), (32, TEAM), 0, *args, *sizes, np.int32(self.way))

    def moments(self, b: Binder, x: Array) -> list[Array]:
        """Emit the moments of each part of each channel.

        Returns:
            How many elements, their mean, their squares: each [parts, channels].
        """
        found = [b.tmp((self.parts, self.channels), wide_dtype(x.dtype)) for _ in range(3)]
        self.launch(b, "channel_moments", x, x, *found)
        return found

    def slopes(
        self, b: Binder, x: Array, g: Array, mean: Array, inverse: Array, where: tuple[int, int, int] | None = None
    ) -> tuple[Array, Array]:
        """Emit Scale@GRAD and Bias@GRAD.

        Args:
            where: rows of an image, moments of an image, channels of a group: which moments belong to an element; those
                of its channel by default.

        Returns:
            Both, in the precision of the computation.
        """
        where = (1, 0, 1) if where is None else where
        products, sums = (b.tmp((self.parts, self.channels), mean.dtype) for _ in range(2))
        self.launch(b, "channel_sums", x, x, g, mean, inverse, products, sums, *map(np.int64, where))
        slots = "Scale@GRAD", "Bias@GRAD"
        dscale, dbias = (room(b, slot, self.channels, x) for slot in slots)
        kernel = f"parts_together<{ctype(mean.dtype)}>"
        each(b, CUDA, kernel, self.channels, products, sums, dscale, dbias, np.int32(self.parts))
        settle(b, slots[0], dscale)
        settle(b, slots[1], dbias)
        return dscale, dbias


@dataclass(frozen=True, slots=True)
class Lines:
    """An array as lines that are normalised by themselves.

    Args:
        lines: how many.
        n: elements of a line.
        groups: lines of an image, which differ in their channels.
        inner: elements of a channel in a line.
        last: whether channels lie beside each other.

    Example:
        >>> Lines(6, 8, groups=2, inner=4).flags(True, False)
        1
    """

    lines: int
    n: int
    groups: int = 1
    inner: int = 1
    last: bool = False

    def flags(self, scale: bool, bias: bool, inverse: bool = False) -> int:
        """What a kernel has to know.

        Args:
            scale: whether there are factors.
            bias: whether there are summands.
            inverse: whether one over the standard deviation is kept, not the variance.
        """
        return SCALE * scale | BIAS * bias | LAST * self.last | INVERSE * inverse

    def _launch(self, b: Binder, kernel: str, like: Array, *args: Any) -> None:
        way = WARPS if self.n <= _WARP else BLOCKS
        blocks = min(_MOST, -(-self.lines // at_once(way)))
        sizes = map(np.int64, (self.lines, self.n, self.groups, self.inner))
        b(CUDA[f"{kernel}<{ctype(like.dtype)}>"], (blocks,), (32, TEAM), 0, *args, *sizes, np.int32(way))

    def _held(self, b: Binder, kernel: str, arrays: tuple[Array, ...], *args: Any) -> bool:
        """Emit a launch that holds lines in registers, where they are rows that allow it."""
        plain = self.groups == self.inner == 1 and not self.last
        return plain and held_rows(b, ROWS, kernel, self.lines, self.n, arrays, *args)

    def forward(self, b: Binder, mean: str, spread: str, inverse: bool = False) -> None:
        """Emit a normalisation of X with Scale and Bias.

        Args:
            inverse: whether that one takes one over the standard deviation instead.
        """
        x = b["X"]
        scale, bias = vector(b, "Scale", x), vector(b, "Bias", x)
        kept = [room(b, slot, self.lines, x) for slot in (mean, spread)]
        given = [kept[0] if v is None else v for v in (scale, bias)]
        flags = np.int32(self.flags(scale is not None, bias is not None, inverse))
        args = x, *given, b["Y"], *kept, flags, np.float64(b.attr("epsilon"))
        if self.lines and not self._held(b, "row_norm", (x, b["Y"], *given), *args):
            self._launch(b, "line_norm", x, *args)
        settle(b, mean, kept[0])
        settle(b, spread, kept[1])

    def backward(self, b: Binder, mean: Array, inverse: Array) -> None:
        """Emit the gradients of `forward`."""
        x, g, scale, dx = b["X"], b["Y@GRAD"], vector(b, "Scale", b["X"]), b["X@GRAD"]
        if dx is not None and dx.size:
            flags, factors = np.int32(self.flags(scale is not None, False)), mean if scale is None else scale
            args = x, g, mean, inverse, factors, dx, flags
            if not self._held(b, "row_grad", (x, g, factors, dx), *args):
                self._launch(b, "line_grad", x, *args)
        if b["Scale@GRAD"] is None and b["Bias@GRAD"] is None:
            return
        size, images = self.n // max(self.inner, 1), self.lines // max(self.groups, 1)
        if self.last:
            channels, image = Channels(images * self.inner, size * self.groups, 1), self.inner
        else:
            channels, image = Channels(images, size * self.groups, self.inner), 1
        channels.slopes(b, x, g, mean, inverse, (image, self.groups, size))


def inverses(b: Binder, variance: Array, epsilon: float) -> Array:
    """Emit 1 / sqrt(variance + epsilon).

    Args:
        variance: variances, float32 or float64.

    Returns:
        A workspace.
    """
    out = b.tmp(variance.shape, variance.dtype)
    each(b, CUDA, f"inverses<{ctype(out.dtype)}>", out.size, variance, out, np.float64(epsilon))
    return out
