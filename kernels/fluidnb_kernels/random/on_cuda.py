"""The random operators on a GPU, with the numbers of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder, kernel
from fluidnb.op import normal as normal_on_host
from fluidnb.op import uniform as uniform_on_host
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS
from fluidnb_kernels.cuda.wide import wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.random import truncated, whole
from fluidnb_kernels.random.uniform import diagonal_of
from fluidnb_kernels.random.words import drawn_on_host, launch
from fluidnb_kernels.rows.values import values_of_output
from fluidnb_kernels.tensor.moves import lay, move

Array = Any
#: Rows, and threads above each other, of a block that chooses classes.
_SIDE, _ABOVE = 32, 8


def _kernels() -> Iterator[str]:
    for name in ("uniform", "normal", "classes"):
        yield from (f"{name}<{CTYPES[dtype]}>" for dtype in FLOATS)


CUDA = Source(__file__, "random.cu", _kernels)


def _draw(b: Binder, name: str, out: Array, per_thread: int, *numbers: float) -> None:
    """Emit a launch in which a thread makes some numbers at once."""
    if out.size:
        blocks = min(BLOCKS, -(-out.size // (per_thread * THREADS)))
        function = CUDA[f"{name}<{ctype(out.dtype)}>"]
        b(launch, function, b.rng, blocks, (THREADS,), out, *map(np.float64, numbers), np.int64(out.size))


def _uniform(b: Binder) -> None:
    out, low, high = values_of_output(b), b.attr("min"), b.attr("max")
    if out.dtype.name not in FLOATS:
        return drawn_on_host(b, uniform_on_host, out, low, high)
    width, start = (float(out.dtype.type(number)) for number in (high - low, low))  # rounded as the host does
    return _draw(b, "uniform", out, 32 // wide_dtype(out.dtype).itemsize, width, start)


def _normal(b: Binder) -> None:
    out, mean, deviation = b["Out"], b.attr("mean"), b.attr("std")
    if out.dtype.name not in FLOATS:
        return drawn_on_host(b, normal_on_host, out, mean, deviation)
    return _draw(b, "normal", out, 8, mean, deviation)


kernel("uniform_random_batch_size_like", place="cuda")(_uniform)
kernel("gaussian_random_batch_size_like", place="cuda")(_normal)
kernel("gaussian_random", place="cuda")(_normal)


@kernel("uniform_random", place="cuda")
def _uniform_on_cuda(b: Binder) -> None:
    out, (number, step) = values_of_output(b), diagonal_of(b)
    _uniform(b)
    if number:
        value = b.table(np.array([b.attr("diag_val")]).astype(out.dtype))
        move(b, out, value, lay(out, (out.size,))[:: out.shape[1] + 1 + step][:number])


@kernel("truncated_gaussian_random", place="cuda")
def _truncated_on_cuda(b: Binder) -> None:
    drawn_on_host(b, truncated.truncated_normal, b["Out"], b.attr("mean"), b.attr("std"))


@kernel("randint", place="cuda")
def _whole_on_cuda(b: Binder) -> None:
    drawn_on_host(b, whole.whole, b["Out"], b.attr("low"), b.attr("high"))


@kernel("randperm", place="cuda")
def _order_on_cuda(b: Binder) -> None:
    drawn_on_host(b, whole.order, b["Out"])


@kernel("sampling_id", place="cuda", dtypes=FLOATS)
def _classes_on_cuda(b: Binder) -> None:
    x, low, high = b["X"], b.attr("min"), b.attr("max")
    rows, count = x.shape
    if rows:
        blocks, numbers = min(BLOCKS, -(-rows // _SIDE)), (np.float64(high - low), np.float64(low))
        function = CUDA[f"classes<{ctype(x.dtype)}>"]
        b(launch, function, b.rng, blocks, (_SIDE, _ABOVE), x, b["Out"], *numbers, np.int64(count), np.int64(rows))
