"""Random numbers on a GPU: what a kernel needs to draw those of the host, and numbers that only the host can draw."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Clock, Context, Stream, normal, uniform
from fluidnb.op.c_code import Constant
from fluidnb.op.launches import register_launches
from fluidnb.values import SelectedRows
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import BLOCKS, THREADS, Function, Source, ctype, typed, wide_dtype
from fluidnb_kernels.cuda.upload import upload
from fluidnb_kernels.emit import FLOATS

#: Attributes of operators that may draw some rows of a larger tensor: parameter servers then begin with the numbers
#: that one process draws.
SLICE = {
    "slice_of": Attr("string", None, "the variable of which Out is some rows, with the numbers that it would get"),
    "slice_whole": Attr("longs", None, "its sizes"),
    "slice_start": Attr("long", None, "its row that is the first of Out", ge=0),
    "slice_step": Attr("long", None, "rows from one that is in Out to the next", ge=1),
}


@contextmanager
def all_rows(b: Binder, out: Array) -> Iterator[Array]:
    """The array to draw into: an output, or the tensor of which it gets some rows."""
    sizes, start, step = tuple(b.attr("slice_whole", ())), b.attr("slice_start", 0), b.attr("slice_step", 1)
    if not sizes:
        yield out
        return
    end = start + step * (out.shape[0] - 1) + 1
    b.require(
        sizes[1:] == out.shape[1:] and end <= sizes[0],
        "Out must be rows of the tensor that slice_whole describes.", expected=f"rows of {list(sizes)}",
        received=f"rows {start} to {end - 1} of shape {list(out.shape)}",
    )  # fmt: skip
    drawn = b.tmp(sizes, out.dtype)
    yield drawn
    verbs.copy(b, out, drawn, of=lambda array: array[start:end:step])
    if isinstance(b["Out"], SelectedRows):
        numbers = np.arange(start, end, step)
        number_rows(b["Out"], numbers, sizes[0])
        b(number_rows, b["Out"], numbers, sizes[0])


def number_rows(rows: SelectedRows, numbers: Array, height: int) -> None:
    """Set the numbers of the rows that SelectedRows holds, and the height of the whole tensor."""
    rows.rows_, rows.height_ = numbers, height


def words_of(stream: Stream) -> tuple[np.uint64, ...]:
    """Two words of the key and three of the counter of this run, as ``philox.cuh`` takes them."""
    state: Any = stream.rewind().bit_generator.state["state"]
    return *state["key"], *state["counter"][1:]


def launch(function: Function, stream: Stream, grid: int, block: tuple[int, ...], *args: Any) -> None:
    """Launch a kernel whose first arguments are the numbers of this run."""
    function((grid,), block, 0, *words_of(stream), *args)


register_launches(
    launch,
    lambda function, stream, grid, block, *args: function.launches((grid,), block, 0, *words_of(stream), *args),
)


def host_numbers(b: Binder, draw: Callable[..., None], out: Array, *args: Any) -> None:
    """Emit numbers that the host draws, and a copy to a GPU: each depends on how many were rejected before it."""
    if not b.on_cuda:
        return b(draw, b.rng, out, *args)
    numbers = b.memory.alloc_on("cpu", out.shape, out.dtype)
    b(draw, b.rng, numbers, *args)
    return b(upload, numbers, out)


CUDA = Source(__file__, "random.cu", typed(("uniform normal classes", FLOATS)))


def _draw(b: Binder, name: str, out: Array, per_thread: int, *numbers: float) -> None:
    """Emit a launch in which a thread makes some numbers at once."""
    if out.size:
        blocks = min(BLOCKS, -(-out.size // (per_thread * THREADS)))
        function = CUDA[f"{name}<{ctype(out.dtype)}>"]
        b(launch, function, b.rng, blocks, (THREADS,), out, *map(np.float64, numbers), np.int64(out.size))


def uniform_numbers(b: Binder, out: Array, low: float, high: float) -> None:
    """Emit ``out`` = numbers from [low, high)."""
    if not b.on_cuda or out.dtype.name not in FLOATS:
        return host_numbers(b, uniform, out, low, high)
    width, start = (float(out.dtype.type(number)) for number in (high - low, low))  # rounded as the host does
    return _draw(b, "uniform", out, 32 // wide_dtype(out.dtype).itemsize, width, start)


def normal_numbers(b: Binder, out: Array, mean: float, deviation: float) -> None:
    """Emit ``out`` = normal numbers."""
    if not b.on_cuda or out.dtype.name not in FLOATS:
        return host_numbers(b, normal, out, mean, deviation)
    return _draw(b, "normal", out, 8, mean, deviation)


def stream_in_c(c: Context, seed: int) -> dict[str, Constant]:
    """Constants of C code that draws: with a seed the executor's numbers, else others in every run of the program."""
    c.require(
        not c.attr("slice_whole"), f"{c.definition.type} draws rows of a larger tensor, which has no C code.",
        expected="a whole tensor", received=f"slice_whole {c.attr('slice_whole')}",
    )  # fmt: skip
    kind = c.definition.type if seed else f"{c.definition.type}/{c.name('Out')}"
    state: Any = Stream("", Clock(), seed or 1, kind).rewind().bit_generator.state["state"]
    keys = {f"KEY{i}": f"UINT64_C({int(word)})" for i, word in enumerate(state["key"])}
    return {"SEEDED": bool(seed), **keys}
