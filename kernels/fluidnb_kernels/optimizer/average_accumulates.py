"""average_accumulates: sums of a parameter over its last values, from which ModelAverage takes the mean."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.cuda import Source, ctype, each, elements, of_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree

#: After so many updates the newest sum is moved on, so that no sum grows too large to be exact.
PART = 16384

_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


def _infer(c: Context) -> None:
    param = c["param"]
    c.check_inputs(*(f"in_{name}" for name in _COUNTS))
    for name in (*_SUMS, *_COUNTS):
        x = c["in_" + name]
        if name in _SUMS:  # kernels of a device go through all of them by one number
            c.require(
                agree(x.shape, param.shape), f"param and in_{name} of average_accumulates must have the same shape.",
                expected=list(param.shape), received=list(x.shape),
            )  # fmt: skip
        c.set("out_" + name, x.shape, x.dtype)


def accumulate(
    param: Array, window: float, low: int, high: int,
    first: Array, second: Array, old: Array, counted: Array, before: Array, updates: Array,
) -> None:  # fmt: skip
    """Add a parameter's value to its sums, and begin anew when enough values are in them."""
    updates += 1
    counted += 1
    first += param
    if updates.item() % PART == 0:
        second += first
        first[...] = 0
    if counted.item() >= low and counted.item() >= min(high, int(updates.item() * window)):
        np.add(first, second, out=old)
        first[...] = second[...] = 0
        before[...] = counted
        counted[...] = 0


@op(
    "average_accumulates",
    inputs={
        "param": "the parameter",
        "in_sum_1": "sum of its newest values",
        "in_sum_2": "sum of the values before them",
        "in_sum_3": "sum of the values that were put aside",
        "in_num_accumulates: int64[1]": "how many values the first two sums hold",
        "in_old_num_accumulates: int64[1]": "how many values the third sum holds",
        "in_num_updates: int64[1]": "how many updates there were",
    },
    outputs={f"out_{name}": f"in_{name}, updated" for name in (*_SUMS, *_COUNTS)},
    attrs={
        "average_window": Attr("float", 0.0, "which share of all updates the sums should hold"),
        "max_average_window": Attr("long", doc="the most values to hold"),
        "min_average_window": Attr("long", 10000, "the fewest values to hold before they are put aside"),
    },
    cost="param",
    infer=_infer,
    alias={f"out_{name}": f"in_{name}" for name in (*_SUMS, *_COUNTS)},
    dtype_slot="param",
    cuda=FLOATS,
)
def average_accumulates(b: Binder) -> None:
    """out_sum_1 = in_sum_1 + param; when the window is full, out_sum_3 = the sum of all and the others restart at 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> zero, none = np.zeros(1), np.zeros(1, "int64")
        >>> sums = {"in_sum_1": zero, "in_sum_2": zero, "in_sum_3": zero, "in_num_accumulates": none}
        >>> counts = {"in_old_num_accumulates": none, "in_num_updates": none}
        >>> inputs = {"param": [3.0], **sums, **counts}
        >>> run_op("average_accumulates", inputs, {"max_average_window": 10})["out_sum_1"]
        array([3.])

    Source: Fluid's average_accumulates_op.
    """
    if b.on_cuda:  # one launch over the sums, then one of a single thread over the counts
        param, sums = b["param"], [b["out_" + name] for name in _SUMS]
        numbers = (
            np.float64(b.attr("average_window")), np.int64(b.attr("min_average_window")),
            np.int64(b.attr("max_average_window")), np.int64(PART),
        )  # fmt: skip
        before = [of_dtype(b, b["in_" + name], param.dtype) for name in _SUMS]
        after = [writing_as(b, out, param.dtype) for out in sums]
        counted, _, updates = counts = [b["in_" + name] for name in _COUNTS]
        name = f"average_sums<{ctype(param.dtype)}>"
        each(b, CUDA, name, param.size, param, *before, updates, counted, *after, *numbers)
        for out, array in zip(sums, after, strict=True):
            written_as(b, out, array)
        return b(CUDA["average_counts"], (1,), (1,), 0, *counts, *[b["out_" + name] for name in _COUNTS], *numbers)
    outs = []
    for name in (*_SUMS, *_COUNTS):
        out = b["out_" + name]
        b(np.copyto, out, b["in_" + name])
        outs.append(out)
    window = b.attr("average_window"), b.attr("min_average_window"), b.attr("max_average_window")
    b(accumulate, b["param"], *window, *outs)


#: The same for GPUs.
CUDA = Source(
    __file__, "average_accumulates.cu",
    lambda: ["average_counts", *(f"average_sums<{ctype(d)}>" for d in elements(FLOATS))],
)  # fmt: skip
