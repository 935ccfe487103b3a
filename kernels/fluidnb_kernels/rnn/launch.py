"""Recurrent networks as launches: rows in the order of time steps, and the operands of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.compute_dtype import writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.cuda.line_grid import each_line
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rnn.activations import ACTIVATIONS, BY_NUMBER
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any

_STEPS = (
    "lstm_step", "lstm_back", "projected", "projected_back", "gru_gates", "gru_state", "gru_back", "gru_reset_back",
    "bias_back",
)  # fmt: skip


def _kernels() -> Iterator[str]:
    for dtype in FLOATS:
        t = CTYPES[dtype]
        yield from (f"lstm_unit<{t}>", f"lstm_unit_back<{t}>")
        if dtype in ("float32", "float64"):
            yield f"gathered<{t}, {t}>"
            yield from (f"{name}<{t}>" for name in _STEPS)
        else:
            yield from (f"gathered<{t}, float>", f"gathered<float, {t}>")


CUDA = Source(__file__, "steps.cu", _kernels)

#: The numbers by which kernels know activations.
KINDS = {ACTIVATIONS[name]: np.int32(i) for i, name in enumerate(BY_NUMBER)}


class Order:
    """Where rows are, for kernels that take them into another order.

    Args:
        b: the binder.
        batches: how sequences become steps.

    Example:
        >>> from fluidnb.op import op, remove_op
        >>> from fluidnb.testing import run_op
        >>> @op("doctest_order", inputs={"X": "[n, width]"}, infer=lambda c: None)
        ... def order(b):
        ...     print(Order(b, Batches(np.array([0, 1, 1, 3]))).before)
        >>> run_op("doctest_order", {"X": [[1.0]]})
        [-3 -1  1]
        {}
        >>> remove_op("doctest_order")
    """

    __slots__ = ("_b", "_batches", "_tables")

    def __init__(self, b: Binder, batches: Batches) -> None:
        self._b, self._batches = b, batches
        self._tables: dict[str, Array] = {}

    def _table(self, name: str, numbers: Array) -> Array:
        if name not in self._tables:
            self._tables[name] = self._b.table(np.ascontiguousarray(numbers, np.int64))
        return self._tables[name]

    @property
    def rows(self) -> Array:
        """For each packed row, the row of the input."""
        return self._table("rows", self._batches.rows)

    @property
    def places(self) -> Array:
        """For each row of the input, its packed row."""
        return self._table("places", self._batches.places)

    @property
    def before(self) -> Array:
        """For each packed row, the row of the input that it continues from, or -1 less the sequence that begins."""
        batches = self._batches
        return self._table("before", np.concatenate([self._begins(), batches.rows[batches.before]]))

    @property
    def packed_before(self) -> Array:
        """As `before`, with packed rows."""
        return self._table("packed_before", np.concatenate([self._begins(), self._batches.before]))

    @property
    def firsts(self) -> Array:
        """For each packed row of step 0, its sequence."""
        return self._table("firsts", self._batches.order[: self._batches.first])

    @property
    def of_firsts(self) -> Array:
        """For each sequence, its row in step 0, or -1 where it has none."""
        batches = self._batches
        found = np.full(len(batches.order), -1)
        found[batches.order[: batches.first]] = np.arange(batches.first)
        return self._table("of_firsts", found)

    def _begins(self) -> Array:
        return -1 - self._batches.order[: self._batches.first]


def gather(
    b: Binder, x: Array, rows: Array, out: Array, initial: Array | None = None, bias: Array | None = None
) -> None:
    """Emit ``out[r] = x[rows[r]] + bias``.

    Args:
        x: [m, width].
        rows: int64 [n]; -1 less a row of ``initial`` for some, or -1 for zeros where there is none.
        out: [n, width], written; of the dtype of ``x``, or one of the two in half precision and the other float32.
        initial: [k, width], of the dtype of ``x``.
        bias: [width], of the dtype of ``x``.
    """
    width = out.shape[1]
    name = f"gathered<{ctype(x.dtype)}, {ctype(out.dtype)}>"
    by_rows(b, CUDA, name, len(out), width, x, initial, bias, rows, out, np.int64(width))


def over_rows(b: Binder, x: Array, dy: Array, out: Array) -> None:
    """Emit the sum over all rows of what they have as columns times rows: the gradient of a weight.

    Args:
        x: [n, k]; rows may lie apart.
        dy: [n, m], likewise.
        out: [k, m], written; zeros where there are no rows.
    """
    if len(x):
        gemm(b, x, dy, out, tx=True)
    else:
        fill(b, out)


def wide_out(b: Binder, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """What steps write for an output; `settle` comes behind them.

    Args:
        dtype: the dtype in which steps are computed.

    Returns:
        The output, or a workspace where it is in half precision or unwanted.
    """
    return b.tmp(shape, dtype) if b[slot] is None else writing_as(b, b[slot], dtype)


def settle(b: Binder, slot: str, given: Array) -> None:
    """Cast what `wide_out` gave, where it was a workspace for an output.

    Args:
        given: what `wide_out` gave for it.
    """
    if b[slot] is not None:
        written_as(b, b[slot], given)


def bias_grad(b: Binder, dgates: Array, cells: tuple[Array, Array] | None) -> None:
    """Emit the gradient of the bias, where it is wanted.

    Args:
        dgates: [n, parts · width], packed.
        cells: old and new cells [n, width], where the bias has the weights of peepholes.
    """
    if b.wants("Bias@GRAD"):
        out = wide_out(b, "Bias@GRAD", (), dgates.dtype)
        n, columns = dgates.shape
        old, new = cells or (dgates, dgates)
        width = np.int64((out.size - columns) // 3 or 1)
        name = f"bias_back<{ctype(dgates.dtype)}>"
        each_line(b, CUDA, name, out.size, n, out.size, dgates, old, new, out, np.int64(columns), width)
        settle(b, "Bias@GRAD", out)
