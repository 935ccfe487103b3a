"""The recurrence of lstm and lstmp: the steps on the host, and all sequences of a batch.

All arrays are packed (see `batches`). Columns of gates are candidate, input, forget, output. A step is one product of
matrices, and one call for each function of all its sequences.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import allocate, by_rows, ctype, each, of_dtype, settle, wide_dtype
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.one_call import Emit, OneCall
from fluidnb_kernels.rnn.activations import ACTIVATIONS, Activation, squash
from fluidnb_kernels.rnn.batches import Batches, Blocks, parts, steps_of
from fluidnb_kernels.rnn.launch import CUDA, KINDS, Order, bias_grad, gather, over_rows


@dataclass(frozen=True, slots=True)
class Lstm:
    """Parameters of an LSTM beside its arrays."""

    batches: Batches  # how sequences become steps
    blocks: Blocks  # the steps of what comes in
    gate: Activation  # activation of the three gates
    cell: Activation  # activation of the cell state before the output gate
    candidate: Activation  # activation of the candidate
    peepholes: bool  # whether the gates see the cell
    # activation of the projection; None when the hidden state itself is the state of the next step
    projection: Activation | None = None
    cell_clip: float = 0.0  # bound of the cell's values; 0 for none
    proj_clip: float = 0.0  # bound of the projection's values; 0 for none


def forward(net: Lstm, emit: Emit, parameters: tuple[Array, ...], known: bool, packed: tuple[Array, ...]) -> None:
    """Emit the steps; the gates come as the input with its bias."""
    weight, bias, projection = parameters
    gates, cells, seen, hidden, states, first, cell, room, kept = packed
    width = cells.shape[1]
    weights, biases = parts(weight, width), parts(bias, width)
    from_old, from_new = (biases[4:6], biases[6]) if net.peepholes else (None, None)
    for (now, before), z in zip(net.batches, net.blocks.steps(gates), strict=True):
        n = now.stop - now.start
        candidate, into, forget, output = z
        old_state, old = (first, cell) if before is None else (states[before], cells[before])
        more, stays, new, shown = room[: 4 * n].reshape(z.shape), kept[:n], cells[now], seen[now]
        if known:
            emit(np.matmul, old_state, weights, more)
            emit(np.add, z, more, z)
        known = True
        if net.peepholes:
            both, extra = z[1:3], more[1:3]
            emit(np.multiply, old, from_old, extra)
            emit(np.add, both, extra, both)
            squash(emit, net.candidate, net.gate, z[:3])
        else:
            squash(emit, net.candidate, net.gate, z)
        emit(np.multiply, candidate, into, new)
        emit(np.multiply, old, forget, stays)
        emit(np.add, new, stays, new)
        if net.cell_clip:
            emit(np.clip, new, -net.cell_clip, net.cell_clip, new)
        if net.peepholes:
            emit(np.multiply, new, from_new, stays)
            emit(np.add, output, stays, output)
            net.gate.apply(emit, output, output)
        net.cell.apply(emit, new, shown)
        emit(np.multiply, shown, output, hidden[now])
        if net.projection is not None:
            emit(np.dot, hidden[now], projection, states[now])
            net.projection.apply(emit, states[now], states[now])
            if net.proj_clip:
                emit(np.clip, states[now], -net.proj_clip, net.proj_clip, states[now])


def backward(
    net: Lstm, emit: Emit, parameters: tuple[Array, ...], packed: tuple[Array, ...], seen: Array, old: Array,
    room: tuple[Array, ...],
) -> tuple[Array, Array]:  # fmt: skip
    """Emit the steps back; returns the gradients of initial state and cell, which they write."""
    weight, bias, projection = parameters
    (values, dz), cells, states, dstates, through = packed
    transposed, by_gate, ahead, kept, more, dhidden, slope = room
    width = cells.shape[1]
    _slopes(net, emit, values, old, seen, dz, through)  # which become gradients in place
    emit(np.copyto, transposed, parts(weight, width).transpose(0, 2, 1))  # quicker to multiply with than a view
    biases = parts(bias, width)
    from_old, from_new = (biases[4:6], biases[6]) if net.peepholes else (None, None)
    for now, _, going_on in net.batches.backwards():
        dh, dc, d, n = dstates[now], through[now], dz[:, now], now.stop - now.start
        inner, output, forget, dcell, each = d[:3], d[3], values[2, now], kept[:n], by_gate[:, :n]
        if going_on:
            emit(np.add, dh[:going_on], ahead[:going_on], dh[:going_on])
        if net.projection is not None:
            dh = _through_projection(net, emit, dh, states[now], projection, dhidden[:n], slope[:n])
        emit(np.multiply, dh, output, output)
        emit(np.multiply, dh, dc, dc)
        if going_on:
            emit(np.add, dc[:going_on], kept[:going_on], dc[:going_on])
        if net.peepholes:
            extra = more[0, :n]
            emit(np.multiply, output, from_new, extra)
            emit(np.add, dc, extra, dc)
        if net.cell_clip:
            emit(_stop_at, cells[now], net.cell_clip, dc)
        emit(np.multiply, dc, inner, inner)
        emit(np.multiply, dc, forget, dcell)
        if net.peepholes:
            emit(np.multiply, d[1:3], from_old, more[:, :n])
            emit(np.add, extra, more[1, :n], extra)
            emit(np.add, dcell, extra, dcell)
        emit(np.matmul, d, transposed, each)
        emit(np.add.reduce, each, 0, None, ahead[:n])
    return ahead[: net.batches.first], kept[: net.batches.first]


def _slopes(net: Lstm, emit: Emit, gates: Array, old: Array, seen: Array, slopes: Array, through: Array) -> None:
    """The factors of the gradients of cell and hidden state that give those of the gates and of the cell."""
    candidate, into, _, output = gates
    net.candidate.slope(emit, candidate, slopes[0])
    net.gate.slope(emit, gates[1:], slopes[1:])
    for slope, factor in zip(slopes, (into, candidate, old, seen), strict=True):
        emit(np.multiply, slope, factor, slope)
    net.cell.slope(emit, seen, through)
    emit(np.multiply, through, output, through)


def _through_projection(
    net: Lstm, emit: Emit, dr: Array, state: Array, projection: Array, dh: Array, slope: Array
) -> Array:
    """The gradient of the hidden state from that of its projection, which becomes that before the activation."""
    assert net.projection is not None
    if net.proj_clip:
        emit(_stop_at, state, net.proj_clip, dr)
    net.projection.slope(emit, state, slope)
    emit(np.multiply, dr, slope, dr)
    emit(np.dot, dr, projection.T, dh)
    return dh


def _stop_at(value: Array, bound: float, slope: Array) -> None:
    """Let no gradient through where a value was limited."""
    np.multiply(slope, np.abs(value) < bound, slope)


def _peephole_grads(dz: Array, old: Array, cells: Array, out: Array) -> None:
    """The gradients [3 · width] of the weights from the cell to the gates."""
    for part, (d, value) in zip(np.split(out, 3), zip(dz[1:], (old, old, cells), strict=True), strict=True):
        part[...] = (d * value).sum(0)


def network(b: Binder, **more: Any) -> Lstm:
    """The network that the attributes and the LoD describe."""
    gate, cell, candidate = (
        ACTIVATIONS[b.attr(name + "_activation", default)]
        for name, default in (("gate", "sigmoid"), ("cell", "tanh"), ("candidate", "tanh"))
    )
    batches, blocks = steps_of(b, 4)
    return Lstm(batches, blocks, gate, cell, candidate, bool(b.attr("use_peepholes", True)), **more)


def run(
    net: Lstm, emit: Emit, x: Array, parameters: tuple[Array, ...], initial: tuple[Array, Array],
    packed: tuple[Array, ...], biased: Array, gates: Array | None, outs: list[tuple[Array, Array]],
) -> None:  # fmt: skip
    """Emit an LSTM over sequences; ``outs``: (packed, array) pairs, written in the order of the input."""
    batches, blocks = net.batches, net.blocks
    emit(np.add, x, parameters[1][:, : x.shape[1]], biased)
    emit(blocks.pack, biased, packed[0])
    for known, first in zip(initial, packed[5:7], strict=True):
        emit(batches.pack_initial, known, first)
    forward(net, emit, parameters, initial[0] is not None, packed)
    if gates is not None:
        emit(blocks.rows, packed[0], gates)
    for inner, out in outs:
        if out is not None:
            emit(batches.unpack, inner, out)


def run_back(
    net: Lstm, emit: Emit, parameters: tuple[Array, ...], initial: tuple[Array, Array], values: tuple[Array, ...],
    g: Array, packed: tuple[Array, ...], room: tuple[Array, ...], outs: tuple[Array, ...],
) -> None:  # fmt: skip
    """Emit the gradients of an LSTM; ``outs`` other than that of the input may be None."""
    batches = net.batches
    gates, seen, hidden, states, cells = values
    dx, dweight, dbias, dprojection, *dinitial = outs
    before, old, first_state, first_cell, *inner = room
    (packed_gates, dz), packed_cells, packed_states, dstates, _ = packed
    emit(batches.pack_parts, gates, packed_gates)
    if net.projection is not None:
        emit(batches.pack, states, packed_states)
    emit(batches.pack, cells, packed_cells)
    emit(batches.pack, g, dstates)
    for known, row in zip(initial, (first_state, first_cell), strict=True):
        emit(batches.pack_initial, known, row)
    emit(batches.pack_previous, packed_cells, first_cell, old)
    dfirst = backward(net, emit, parameters, packed, seen, old, tuple(inner))
    emit(batches.unpack_parts, dz, dx)
    rows = dx.reshape(len(dx), 4 * cells.shape[1])
    if dweight is not None:
        emit(batches.previous, states, first_state, before)
        emit(np.matmul, before.T, rows, dweight)
    if dbias is not None:
        emit(np.add.reduce, rows, 0, None, dbias[0, : rows.shape[1]])
        if net.peepholes:
            emit(_peephole_grads, dz, old, packed_cells, dbias[0, rows.shape[1] :])
    if dprojection is not None:
        emit(np.matmul, hidden.T, dstates, dprojection)
    for row, out in zip(dfirst, dinitial, strict=True):
        if out is not None:
            emit(batches.unpack_initial, row, out)


def _emit_on_cuda(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the run of an LSTM."""
    x, order = b["Input"], Order(b, net.batches)
    dtype, n, width = wide_dtype(x.dtype), len(x), x.shape[1] // 4
    weight, projection = of_dtype(b, b["Weight"], dtype), _projection(b, net, dtype)
    bias, peepholes = b["Bias"].reshape(-1)[: 4 * width], _peepholes(b, net, width, dtype)
    gates = allocate(b, "BatchGate", (n, 4 * width), dtype)
    seen, hidden = (allocate(b, name, (n, width), dtype) for name in ("BatchCellPreAct", "BatchHidden"))
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
    for out, array in (("BatchGate", gates), ("BatchCellPreAct", seen), ("BatchHidden", hidden)):
        settle(b, out, array)


def _emit_back_on_cuda(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the gradients of an LSTM."""
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
    out = allocate(b, slot, (), dy.dtype)
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


def emit(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the run of an LSTM."""
    if b.on_cuda:
        return _emit_on_cuda(b, net, slot)
    x, weight, whole, projection = b["Input"], b["Weight"], b["BatchGate"], b["ProjWeight"]
    n, state, first = len(x), weight.shape[0], net.batches.first
    width = state if projection is None else len(projection)
    hidden = b.tmp((n, width), x.dtype) if b["BatchHidden"] is None else b["BatchHidden"]

    def tmp(*shape: int) -> Array:
        return b.tmp(shape, x.dtype)

    seen = tmp(n, width) if b["BatchCellPreAct"] is None else b["BatchCellPreAct"]
    cells, states = tmp(n, width), hidden if projection is None else tmp(n, state)
    inner = tmp(first, state), tmp(first, width), tmp(first * 4, width), tmp(first, width)
    packed = tmp(n * 4, width), cells, seen, hidden, states, *inner
    gates = None if whole is None else writing(b, whole, (n, 4, width))
    parameters, initial = (weight, b["Bias"], projection), (b["H0"], b["C0"])
    outs = [(states, b[slot]), (cells, b["Cell"])]
    b(OneCall(partial(run, net)), x, parameters, initial, packed, tmp(n, 4 * width), gates, outs)
    return None if gates is None else written(b, whole, gates)


def emit_back(b: Binder, net: Lstm, slot: str) -> None:
    """Emit the gradients of an LSTM."""
    if b.on_cuda:
        return _emit_back_on_cuda(b, net, slot)
    states, cells, dx, projection = b[slot], b["Cell"], b["Input@GRAD"], b["ProjWeight"]
    (n, state), width, first = states.shape, cells.shape[1], net.batches.first

    def tmp(*shape: int) -> Array:
        return b.tmp(shape, cells.dtype)

    packed = tmp(2, 4, n, width), tmp(n, width), tmp(n, state), tmp(n, state), tmp(n, width)
    inner = tmp(4, width, state), tmp(4, first, state), tmp(first, state), tmp(first, width), tmp(2, first, width)
    known = tmp(n, state), tmp(n, width), tmp(first, state), tmp(first, width)
    room = *known, *inner, tmp(first, width), tmp(first, state)
    values = reading(b, b["BatchGate"], (n, 4, width)), b["BatchCellPreAct"], b["BatchHidden"], states, cells
    flat = tmp(n, 4, width) if dx is None else writing(b, dx, (n, 4, width))
    dprojection = None if projection is None else b["ProjWeight@GRAD"]
    outs = flat, b["Weight@GRAD"], b["Bias@GRAD"], dprojection, b["H0@GRAD"], b["C0@GRAD"]
    parameters, initial = (b["Weight"], b["Bias"], projection), (b["H0"], b["C0"])
    calls = OneCall(partial(run_back, net))
    b(calls, parameters, initial, values, b[slot + "@GRAD"], packed, room, outs)
    return None if dx is None else written(b, dx, flat)
