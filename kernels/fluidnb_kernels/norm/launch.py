"""Normalisation as launches: over channels, and over lines that are normalised by themselves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, allocate, ctype, each, elements, of_dtype, settle, typed, wide_dtype
from fluidnb_kernels.cuda.line_grid import BLOCKS, COLUMNS, TEAM, WARPS, at_once
from fluidnb_kernels.cuda.register_rows import held_rows, held_types
from fluidnb_kernels.emit import FLOATS

#: Flags of the kernels, as ``norm.cu`` numbers them.
SCALE, BIAS, LAST, INVERSE, FIXED = 1, 2, 4, 8, 16
#: Blocks that a launch should have, elements that a thread should have at least before a channel is cut into parts,
#: blocks at most along x, and the longest line of a warp.
_WANTED, _WORK, _MOST, _WARP = 1024, 8, 1 << 16, 1024

CUDA = Source(__file__, "norm.cu", typed(
    ("channel_moments channel_norm channel_sums channel_grad line_norm line_grad", FLOATS),
    ("batch_moments running_moments number parts_together inverses", ("float32", "float64")),
))  # fmt: skip
ROWS = Source(__file__, "row_norm.cu", typed(
    ("row_norm row_grad", [types for dtype in elements(FLOATS) for types in held_types(dtype)]),
))  # fmt: skip


def vector(b: Binder, slot: str, like: Array) -> Array:
    """An input over channels or lines in the precision in which an array is computed; None where it is left out."""
    return None if b[slot] is None else of_dtype(b, b[slot], wide_dtype(like.dtype))


@dataclass(frozen=True, slots=True)
class Channels:
    """An array as [rows, channels, inner], in launches that take a channel after another."""

    rows: int  # how many rows
    channels: int  # how many channels
    inner: int  # elements of a channel in a row

    @property
    def way(self) -> int:
        """The traversal of channels by a block: see ``reduce.cuh``."""
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
        """Emit counts, means and squares of each part of each channel, [parts, channels] each."""
        found = [b.tmp((self.parts, self.channels), wide_dtype(x.dtype)) for _ in range(3)]
        self.launch(b, "channel_moments", x, x, *found)
        return found

    def slopes(
        self, b: Binder, x: Array, g: Array, mean: Array, inverse: Array, where: tuple[int, int, int] | None = None
    ) -> tuple[Array, Array]:
        """Emit Scale@GRAD and Bias@GRAD.

        ``where`` is rows of an image, moments of an image, channels of a group; by default moments belong to channels.
        """
        where = (1, 0, 1) if where is None else where
        products, sums = (b.tmp((self.parts, self.channels), mean.dtype) for _ in range(2))
        self.launch(b, "channel_sums", x, x, g, mean, inverse, products, sums, *map(np.int64, where))
        slots = "Scale@GRAD", "Bias@GRAD"
        dscale, dbias = (allocate(b, slot, (self.channels,), wide_dtype(x.dtype)) for slot in slots)
        kernel = f"parts_together<{ctype(mean.dtype)}>"
        each(b, CUDA, kernel, self.channels, products, sums, dscale, dbias, np.int32(self.parts))
        settle(b, slots[0], dscale)
        settle(b, slots[1], dbias)
        return dscale, dbias


@dataclass(frozen=True, slots=True)
class Lines:
    """An array as lines that are normalised by themselves."""

    lines: int  # how many
    n: int  # elements of a line
    groups: int = 1  # lines of an image, which differ in their channels
    inner: int = 1  # elements of a channel in a line
    last: bool = False  # whether channels are adjacent

    def flags(self, scale: bool, bias: bool, inverse: bool = False) -> int:
        """The flags of a kernel: which operands there are."""
        return SCALE * scale | BIAS * bias | LAST * self.last | INVERSE * inverse

    def _launch(self, b: Binder, kernel: str, like: Array, *args: Any) -> None:
        way = WARPS if self.n <= _WARP else BLOCKS
        blocks = min(_MOST, -(-self.lines // at_once(way)))
        sizes = map(np.int64, (self.lines, self.n, self.groups, self.inner))
        b(CUDA[f"{kernel}<{ctype(like.dtype)}>"], (blocks,), (32, TEAM), 0, *args, *sizes, np.int32(way))

    def _held(self, b: Binder, kernel: str, arrays: tuple[Array, ...], *args: Any, two: bool = False) -> bool:
        """Emit a launch that holds lines in registers, where they are rows that allow it."""
        plain = self.groups == self.inner == 1 and not self.last
        return plain and held_rows(b, ROWS, kernel, self.lines, self.n, arrays, *args, two=two)

    def forward(self, b: Binder, mean: str, spread: str, inverse: bool = False) -> None:
        """Emit a normalisation of X with Scale and Bias."""
        x = b["X"]
        scale, bias = vector(b, "Scale", x), vector(b, "Bias", x)
        kept = [allocate(b, slot, (self.lines,), wide_dtype(x.dtype)) for slot in (mean, spread)]
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
            if not self._held(b, "row_grad", (x, g, factors, dx), *args, two=True):
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
    """Emit 1 / sqrt(variance + epsilon)."""
    out = b.tmp(variance.shape, variance.dtype)
    each(b, CUDA, f"inverses<{ctype(out.dtype)}>", out.size, variance, out, np.float64(epsilon))
    return out
