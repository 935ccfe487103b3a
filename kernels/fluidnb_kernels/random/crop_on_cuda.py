"""random_crop on a GPU, with the places of the host."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fluidnb.op import Binder, kernel
from fluidnb_kernels.cuda import Source
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.tensor.moves import WORDS, lay
from fluidnb_kernels.tensor.picks import word


def _kernels() -> Iterator[str]:
    yield from ("begins", "next_seed")
    yield from (f"parts<{word}>" for size, word in WORDS.items() if size <= 8)


CUDA = Source(__file__, "crop.cu", _kernels)


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
        steps = b.table(np.array(lay(x).strides[-rank:], np.int64))
        begin, tall = b.tmp((count,), np.int64), math.prod(part[:-1])
        each(b, CUDA, "begins", count, *start, room, steps, begin, np.int64(rank), np.int64(math.prod(whole)))
        numbers = (np.int64(n) for n in (rank - 1, tall, part[-1]))
        by_rows(b, CUDA, f"parts<{word(x)}>", count * tall, part[-1], x, out, begin, sizes, steps, *numbers)
    if after is not None:
        b(CUDA["next_seed"], (1,), (1,), 0, *start, after, np.int64(count * rank + 1))
