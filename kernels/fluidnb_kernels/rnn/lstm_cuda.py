"""An LSTM as launches: for each step one product and one kernel for all gates, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.cuda.wide import wide_dtype
from fluidnb_kernels.rnn.lstm_steps import Lstm
from fluidnb_kernels.rnn.on_cuda import CUDA, KINDS, Order, bias_grad, gather, over_rows, settle, wide_out

Array = Any


def emit(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the run of an LSTM.

    Args:
        slot: where the states go.
    """
    x, order = b["Input"], Order(b, net.batches)
    dtype, n, width = wide_dtype(x.dtype), len(x), x.shape[1] // 4
    weight, projection = of_dtype(b, b["Weight"], dtype), _projection(b, net, dtype)
    bias, peepholes = b["Bias"].reshape(-1)[: 4 * width], _peepholes(b, net, width, dtype)
    gates = wide_out(b, "BatchGate", (n, 4 * width), dtype)
    seen = wide_out(b, "BatchCellPreAct", (n, width), dtype)
    hidden = wide_out(b, "BatchHidden", (n, width), dtype)
    cells, states = b.tmp((n, width), dtype), hidden if projection is None else b.tmp((n, len(weight)), dtype)
    gather(b, x, order.rows, gates, bias=bias)
    first, cell = (_first(b, name, order, net, dtype) for name in ("H0", "C0"))
    name, settings = ctype(dtype), (*_kinds(net), np.float64(net.cell_clip), np.int64(width))
    for now, before in net.batches:
        old, old_cell = (first, cell) if before is None else (states[before], cells[before])
        if old is not None:
            gemm(b, old, weight, gates[now], beta=1.0)
        arrays = gates[now], old_cell, peepholes, cells[now], seen[now], hidden[now]
        by_rows(b, CUDA, f"lstm_step<{name}>", now.stop - now.start, width, *arrays, *settings)
        if projection is not None:
            gemm(b, hidden[now], projection, states[now])
            each(b, CUDA, f"projected<{name}>", states[now].size, states[now], *_projecting(net))
    for out, packed in ((slot, states), ("Cell", cells)):
        if b.wants(out):
            gather(b, packed, order.places, b[out])
    for out, given in (("BatchGate", gates), ("BatchCellPreAct", seen), ("BatchHidden", hidden)):
        settle(b, out, given)


def emit_back(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the gradients of an LSTM.

    Args:
        slot: where the states are.
    """
    order, (n, width), state = Order(b, net.batches), b["Cell"].shape, b[slot].shape[1]
    dtype = wide_dtype(b["Cell"].dtype)
    weight, projection = of_dtype(b, b["Weight"], dtype), _projection(b, net, dtype)
    peepholes = _peepholes(b, net, width, dtype)
    gates, seen = of_dtype(b, b["BatchGate"], dtype), of_dtype(b, b["BatchCellPreAct"], dtype)
    cells, old, dgates = b.tmp((n, width), dtype), b.tmp((n, width), dtype), b.tmp((n, 4 * width), dtype)
    dstates, first = b.tmp((n, state), dtype), net.batches.first
    states = dstates if projection is None else b.tmp((n, state), dtype)
    gather(b, b["Cell"], order.rows, cells)
    gather(b, b["Cell"], order.before, old, initial=b["C0"])
    gather(b, b[slot + "@GRAD"], order.rows, dstates)
    if projection is not None:
        gather(b, b[slot], order.rows, states)
    carried, dfirst = b.tmp((first, width), dtype), b.tmp((first, state), dtype)
    dhidden = None if projection is None else b.tmp((first, width), dtype)
    name, settings = ctype(dtype), (*_kinds(net), np.float64(net.cell_clip))
    for now, before, going_on in net.batches.backwards():
        d, rows = dstates[now], now.stop - now.start
        if projection is not None and dhidden is not None:
            each(b, CUDA, f"projected_back<{name}>", d.size, d, states[now], *_projecting(net))
            gemm(b, d, projection, dhidden[:rows], ty=True)
            d = dhidden[:rows]
        arrays = gates[now], d, old[now], cells[now], seen[now], peepholes, carried, dgates[now]
        sizes = np.int64(going_on), np.int64(width)
        by_rows(b, CUDA, f"lstm_back<{name}>", rows, width, *arrays, *settings, *sizes)
        if before is not None:
            gemm(b, dgates[now], weight, dstates[before], ty=True, beta=1.0)
        elif b.wants("H0@GRAD"):
            gemm(b, dgates[now], weight, dfirst, ty=True)
    if b.wants("Input@GRAD"):
        gather(b, dgates, order.places, b["Input@GRAD"])
    if b.wants("Weight@GRAD"):
        came = b.tmp((n, state), dtype)
        gather(b, b[slot], order.before, came, initial=b["H0"])
        _product(b, came, dgates, "Weight@GRAD")
    bias_grad(b, dgates, (old, cells) if net.peepholes else None)
    if projection is not None and b.wants("ProjWeight@GRAD"):
        _product(b, of_dtype(b, b["BatchHidden"], dtype), dstates, "ProjWeight@GRAD")
    for out, rows_of_first in (("H0@GRAD", dfirst), ("C0@GRAD", carried)):
        if b.wants(out):
            gather(b, rows_of_first, order.of_firsts, b[out])


def _product(b: Binder, x: Array, dy: Array, slot: str) -> None:
    out = wide_out(b, slot, (), dy.dtype)
    over_rows(b, x, dy, out)
    settle(b, slot, out)


def _projection(b: Binder, net: Lstm, dtype: Any) -> Array | None:
    return None if net.projection is None else of_dtype(b, b["ProjWeight"], dtype)


def _peepholes(b: Binder, net: Lstm, width: int, dtype: Any) -> Array | None:
    return of_dtype(b, b["Bias"], dtype).reshape(-1)[4 * width :] if net.peepholes else None


def _first(b: Binder, slot: str, order: Order, net: Lstm, dtype: Any) -> Array | None:
    """The state before step 0, packed."""
    if not b.has(slot):
        return None
    out = b.tmp((net.batches.first, b[slot].shape[1]), dtype)
    gather(b, b[slot], order.firsts, out)
    return out


def _kinds(net: Lstm) -> tuple[np.int32, np.int32, np.int32]:
    return KINDS[net.candidate], KINDS[net.gate], KINDS[net.cell]


def _projecting(net: Lstm) -> tuple[np.int32, np.float64]:
    assert net.projection is not None
    return KINDS[net.projection], np.float64(net.proj_clip)
