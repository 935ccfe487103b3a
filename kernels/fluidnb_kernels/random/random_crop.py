"""random_crop: a part of each instance, from a place that the seed chooses."""

import math
from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, kernel, op
from fluidnb_kernels.cuda import Source, by_rows, each, of_dtype, typed
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.tensor.row_indexing import word
from fluidnb_kernels.tensor.strided_copy import WORDS, layout_of

#: The generator is C++'s std::minstd_rand, as in Fluid: the same seed gives the same parts.
_FACTOR, _MODULUS = 48271, 2**31 - 1


def first_state(seed: int) -> int:
    """The generator's state after seeding.

    Example:
        >>> first_state(7), first_state(0)
        (7, 1)
    """
    return seed % 2**64 % _MODULUS or 1


def later(state: int, steps: int) -> int:
    """The generator's state some steps on."""
    return state * pow(_FACTOR, steps, _MODULUS) % _MODULUS


def places(state: int, room: Sequence[int]) -> list[int]:
    """The start of a part in each dimension, from 0 to the space beside it, each as likely as any other."""
    found = []
    for last in room:
        share = (_MODULUS - 2) // (last + 1)
        state = later(state, 1)
        while state - 1 >= share * (last + 1):  # the rest of the division would favour the first places
            state = later(state, 1)
        found.append((state - 1) // share)
    return found


def cut(x: Array, seed: Array | None, startup: int, out: Array | None, after: Array | None) -> None:
    """Cut a part out of each instance; ``after`` gets the seed of the next run."""
    rank, state = x.ndim - 1, first_state(int(startup if seed is None else seed.reshape(-1)[0]))
    if out is not None and out.size:
        room = [m - n for m, n in zip(x.shape[1:], out.shape[1:], strict=True)]
        corners = np.array([places(later(state, i * rank), room) for i in range(len(x))])
        parts = np.lib.stride_tricks.sliding_window_view(x, out.shape[1:], tuple(range(1, x.ndim)))
        out[...] = parts[(np.arange(len(x)), *corners.T)]
    if after is not None:
        after[0] = later(state, len(x) * rank + 1)


def cut_on(x: Array, begun: Array, startup: int, out: Array | None, seed: Array) -> None:
    """Cut with a seed that holds nothing before the first run, as ``begun`` says, and continues from run to run."""
    cut(x, seed if begun[0] else None, startup, out, seed)
    begun[0] = True


def _infer(c: Context) -> None:
    x, shape = c["X"], tuple(c.attr("shape"))
    c.check_inputs("Seed")
    c.require(
        0 < len(shape) < len(x.shape), "Attr(shape) of random_crop is that of an instance, so it has fewer dimensions.",
        expected=f"1 to {len(x.shape) - 1} sizes for X of {list(x.shape)}", received=list(shape),
    )  # fmt: skip
    batch, sizes = x.shape[: -len(shape)], x.shape[-len(shape) :]
    c.require(
        all(n > 0 and (n <= m or m < 0) for m, n in zip(sizes, shape, strict=True)),
        "Attr(shape) of random_crop must be a part of an instance.", expected=f"1 to {list(sizes)}",
        received=list(shape),
    )  # fmt: skip
    c.set("Out", (*batch, *shape), x.dtype)
    c.set("SeedOut", (1,), np.int64)


@op(
    "random_crop",
    inputs={"X": "a batch of instances", "Seed: int64[1]": "the seed; holds nothing before the first run"},
    outputs={"Out": "a part of each instance", "SeedOut~": "int64 [1]: the seed of the next time; Seed, as a rule"},
    attrs={
        "shape": Attr("ints", doc="shape of a part; the dimensions of X before it are the batch"),
        "startup_seed": Attr("int", 0, "the seed while Seed holds nothing"),
    },
    infer=_infer,
    unset=("Seed",),
    dtype_slot="X",
)
def random_crop(b: Binder) -> None:
    """Out[i] = X[i, o : o + shape], each place o as likely as any other, and another one for each instance i.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(6.0).reshape(2, 3)
        >>> run_op("random_crop", {"X": x, "Seed": np.array([5])}, {"shape": [2]})["Out"]
        array([[0., 1.],
               [3., 4.]])

    Source: Park and Miller, "Random number generators: good ones are hard to find" (CACM 1988); Fluid's
    random_crop_op.
    """
    x, out, rank = b["X"], b["Out"], len(b.attr("shape"))
    count = int(np.prod(x.shape[:-rank]))
    instances = reading(b, x, (count, *x.shape[-rank:]))
    parts = None if out is None else writing(b, out, (count, *out.shape[-rank:]))
    seed, startup, after = b["Seed"], b.attr("startup_seed"), b["SeedOut"]
    if seed is None and b.inputs["Seed"] == b.outputs.get("SeedOut"):
        b(cut_on, instances, b.keep((1,), bool), startup, parts, after)
    else:
        b(cut, instances, seed, startup, parts, after)
    if out is not None:
        written(b, out, parts)


CUDA = Source(__file__, "random_crop.cu", typed(
    ("begins next_seed",), ("parts", [word for size, word in WORDS.items() if size <= 8]),
))  # fmt: skip


@kernel("random_crop", place="cuda")
def _on_cuda(b: Binder) -> None:
    x, out, after, rank = b["X"], b["Out"], b["SeedOut"], len(b.attr("shape"))
    count, whole = math.prod(x.shape[:-rank]), x.shape[-rank:]
    seed, begun = b["Seed"], None
    if seed is not None:
        seed = of_dtype(b, seed, np.dtype(np.int64))
    elif b.inputs["Seed"] == b.outputs.get("SeedOut"):
        seed, begun = after, b.keep((1,), bool)
    start = seed, begun, np.int64(b.attr("startup_seed"))
    if out is not None and out.size:
        part = out.shape[-rank:]
        room, sizes = (b.table(np.array(n, np.int64)) for n in (np.subtract(whole, part), part))
        steps = b.table(np.array(layout_of(x).strides[-rank:], np.int64))
        begin, tall = b.tmp((count,), np.int64), math.prod(part[:-1])
        each(b, CUDA, "begins", count, *start, room, steps, begin, np.int64(rank), np.int64(math.prod(whole)))
        numbers = (np.int64(n) for n in (rank - 1, tall, part[-1]))
        by_rows(b, CUDA, f"parts<{word(x)}>", count * tall, part[-1], x, out, begin, sizes, steps, *numbers)
    if after is not None:
        b(CUDA["next_seed"], (1,), (1,), 0, *start, after, np.int64(count * rank + 1))
