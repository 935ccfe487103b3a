"""Recurrent networks as launches: rows in the order of time steps, and the operands of their steps."""

from functools import cached_property

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, allocate, by_rows, ctype, each_line, settle, typed
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rnn.activations import ACTIVATIONS, BY_NUMBER
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.sequence.row_maps import inverse
from fluidnb_kernels.tensor.strided_copy import fill

_REAL = ("float32", "float64")
_STEPS = "lstm_step lstm_back projected projected_back gru_gates gru_state gru_back gru_reset_back bias_back"
CUDA = Source(__file__, "steps.cu", typed(
    ("lstm_unit lstm_unit_back", FLOATS), (_STEPS, _REAL), *(("gathered", (t,), (t,)) for t in _REAL),
    ("gathered", ("float16", "bfloat16"), ("float32",)), ("gathered", ("float32",), ("float16", "bfloat16")),
))  # fmt: skip

#: The numbers by which kernels know activations.
KINDS = {ACTIVATIONS[name]: np.int32(i) for i, name in enumerate(BY_NUMBER)}


class Order:
    """The indices of rows as tables of the device, for kernels that take rows into another order; made when used."""

    def __init__(self, b: Binder, batches: Batches) -> None:
        self._b, self._batches = b, batches
        self._begins = -1 - batches.order[: batches.first]

    def _table(self, numbers: Array) -> Array:
        return self._b.table(np.ascontiguousarray(numbers, np.int64))

    @cached_property
    def rows(self) -> Array:
        """For each packed row, the row of the input."""
        return self._table(self._batches.rows)

    @cached_property
    def places(self) -> Array:
        """For each row of the input, its packed row."""
        return self._table(self._batches.places)

    @cached_property
    def before(self) -> Array:
        """For each packed row, the row of the input that it continues from, or -1 less the sequence that begins."""
        return self._table(np.concatenate([self._begins, self._batches.rows[self._batches.before]]))

    @cached_property
    def packed_before(self) -> Array:
        """As `before`, with packed rows."""
        return self._table(np.concatenate([self._begins, self._batches.before]))

    @cached_property
    def firsts(self) -> Array:
        """For each packed row of step 0, its sequence."""
        return self._table(self._batches.order[: self._batches.first])

    @cached_property
    def of_firsts(self) -> Array:
        """For each sequence, its row in step 0, or -1 where it has none."""
        return self._table(inverse(self._batches.order[: self._batches.first], len(self._batches.order)))


def gather(
    b: Binder, x: Array, rows: Array, out: Array, initial: Array | None = None, bias: Array | None = None
) -> None:
    """Emit ``out[r] = x[rows[r]] + bias``; a row -1 - k is row k of ``initial``, or zeros without."""
    width = out.shape[1]
    name = f"gathered<{ctype(x.dtype)}, {ctype(out.dtype)}>"
    by_rows(b, CUDA, name, len(out), width, x, initial, bias, rows, out, np.int64(width))


def over_rows(b: Binder, x: Array, dy: Array, out: Array) -> None:
    """Emit ``out = xᵀ · dy``, the gradient of a weight; zeros where there are no rows."""
    if len(x):
        gemm(b, x, dy, out, tx=True)
    else:
        fill(b, out)


def bias_grad(b: Binder, dgates: Array, cells: tuple[Array, Array] | None) -> None:
    """Emit the gradient of the bias, where it is wanted; ``cells``, old and new, if it has the weights of peepholes."""
    if b.wants("Bias@GRAD"):
        out = allocate(b, "Bias@GRAD", (), dgates.dtype)
        n, columns = dgates.shape
        old, new = cells or (dgates, dgates)
        width = np.int64((out.size - columns) // 3 or 1)
        name = f"bias_back<{ctype(dgates.dtype)}>"
        each_line(b, CUDA, name, out.size, n, out.size, dgates, old, new, out, np.int64(columns), width)
        settle(b, "Bias@GRAD", out)
