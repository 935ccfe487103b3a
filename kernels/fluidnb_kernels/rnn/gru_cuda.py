"""A GRU as launches: for each step a product and a kernel for the gates, and another two for the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.cuda.wide import wide_dtype
from fluidnb_kernels.rnn.gru_steps import Gru, halves
from fluidnb_kernels.rnn.on_cuda import CUDA, KINDS, Order, bias_grad, gather, over_rows, settle, wide_out

Array = Any


def emit(b: Binder, net: Gru, slots: tuple[str, str, str], first: str, out: str) -> None:
    """Emit the run of a GRU.

    Args:
        slots: those of the packed gates, of reset, and of the packed states.
        out: that of the states in the order of the input; empty where the packed ones are in it.
    """
    x, order, width = b["Input"], Order(b, net.batches), b["Weight"].shape[0]
    dtype, n = wide_dtype(x.dtype), len(x)
    to_gates, to_candidate = halves(of_dtype(b, b["Weight"], dtype).reshape(-1))
    shapes = (n, 3 * width), (n, width), (n, width)
    gates, reset, states = (wide_out(b, slot, shape, dtype) for slot, shape in zip(slots, shapes, strict=True))
    gather(b, x, order.rows, gates, bias=b["Bias"])
    initial = None
    if b.has(first):
        initial = b.tmp((net.batches.first, width), dtype)
        gather(b, b[first], order.firsts, initial)
    name, w, origin = ctype(dtype), np.int64(width), np.int32(net.origin)
    for now, before in net.batches:
        old, z, rows = initial if before is None else states[before], gates[now], now.stop - now.start
        if old is not None:
            gemm(b, old, to_gates, z[:, : 2 * width], beta=1.0)
        by_rows(b, CUDA, f"gru_gates<{name}>", rows, width, z, old, reset[now], KINDS[net.gate], w)
        if old is not None:
            gemm(b, reset[now], to_candidate, z[:, 2 * width :], beta=1.0)
        by_rows(b, CUDA, f"gru_state<{name}>", rows, width, z, old, states[now], KINDS[net.candidate], origin, w)
    if out and b.wants(out):
        gather(b, states, order.places, b[out])
    for slot, given in zip(slots, (gates, reset, states), strict=True):
        settle(b, slot, given)


def emit_back(b: Binder, net: Gru, values: tuple[Array, Array, Array], first: str) -> None:
    """Emit the gradients of a GRU."""
    order, (n, width), dtype = Order(b, net.batches), values[1].shape, wide_dtype(values[1].dtype)
    to_gates, to_candidate = halves(of_dtype(b, b["Weight"], dtype).reshape(-1))
    gates, reset = (of_dtype(b, value, dtype) for value in values[:2])
    old, dstates, dgates = b.tmp((n, width), dtype), b.tmp((n, width), dtype), b.tmp((n, 3 * width), dtype)
    gather(b, values[2], order.packed_before, old, initial=b[first])
    gather(b, b["Hidden@GRAD"], order.rows, dstates)
    dfirst, room = (b.tmp((net.batches.first, width), dtype) for _ in range(2))
    name, w, origin = ctype(dtype), np.int64(width), np.int32(net.origin)
    kinds = KINDS[net.gate], KINDS[net.candidate]
    for now, before, _ in net.batches.backwards():
        rows, d, begins = now.stop - now.start, dgates[now], np.int32(before is None)
        dreset, dold = room[:rows], dfirst if before is None else dstates[before]
        read = gates[now], old[now], dstates[now]
        by_rows(b, CUDA, f"gru_back<{name}>", rows, width, *read, d, *kinds, origin, w)
        gemm(b, d[:, 2 * width :], to_candidate, dreset, ty=True)
        settings = KINDS[net.gate], origin, begins, w
        by_rows(b, CUDA, f"gru_reset_back<{name}>", rows, width, *read, dreset, d, dold, *settings)
        gemm(b, d[:, : 2 * width], to_gates, dold, ty=True, beta=1.0)
    if b.wants("Input@GRAD"):
        gather(b, dgates, order.places, b["Input@GRAD"])
    if b.wants("Weight@GRAD"):
        dweight = wide_out(b, "Weight@GRAD", (), dtype)
        dto_gates, dto_candidate = halves(dweight.reshape(-1))
        over_rows(b, old, dgates[:, : 2 * width], dto_gates)
        over_rows(b, reset, dgates[:, 2 * width :], dto_candidate)
        settle(b, "Weight@GRAD", dweight)
    bias_grad(b, dgates, None)
    if b.wants(first + "@GRAD"):
        gather(b, dfirst, order.of_firsts, b[first + "@GRAD"])
