"""gru and gru_unit: gated recurrent units over sequences, and one step.

All arrays are packed (see `batches`). Columns of gates are update, reset, candidate. The weight's memory holds a matrix
[width, 2 · width] for update and reset, and then one [width, width] for the candidate.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import allocate, by_rows, ctype, of_dtype, settle, wide_dtype
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.one_call import Emit, OneCall
from fluidnb_kernels.rnn.activations import ACTIVATIONS, BY_NUMBER, IN_C, SLOPES_IN_C, Activation, number
from fluidnb_kernels.rnn.batches import Batches, Blocks, parts, steps_of
from fluidnb_kernels.rnn.launch import CUDA, KINDS, Order, bias_grad, gather, over_rows
from fluidnb_kernels.rules import agree, fits
from fluidnb_kernels.sequences import one_dtype, require_lod


@dataclass(frozen=True, slots=True)
class Gru:
    """Parameters of a GRU beside its arrays."""

    batches: Batches  # how sequences become steps
    blocks: Blocks  # the steps of what comes in
    gate: Activation  # activation of the update and reset gates
    candidate: Activation  # activation of the candidate
    origin: bool  # whether the update gate is the share of the old state (Cho et al. 2014), not of the candidate


def halves(weight: Array) -> tuple[Array, Array]:
    """The two matrices in a weight's memory, [width, 2 · width] and [width, width]."""
    width = round((weight.size // 3) ** 0.5)
    cut = 2 * width * width
    return weight[:cut].reshape(width, 2 * width), weight[cut:].reshape(width, width)


def forward(net: Gru, emit: Emit, weight: Array, known: bool, packed: tuple[Array, ...]) -> None:
    """Emit the steps; the gates come as the input with its bias."""
    gates, reset, hidden, first, room = packed
    to_gates, to_candidate = halves(weight)
    weights = parts(to_gates, len(to_gates))
    for (now, before), z in zip(net.batches, net.blocks.steps(gates), strict=True):
        n, both, h = now.stop - now.start, z[:2], hidden[now]
        update, gate, candidate = z
        old, more = first if before is None else hidden[before], room[: 2 * n].reshape(2, n, -1)
        if known:
            emit(np.matmul, old, weights, more)
            emit(np.add, both, more, both)
        net.gate.apply(emit, both, both)
        emit(np.multiply, old, gate, reset[now])
        if known:
            emit(np.dot, reset[now], to_candidate, more[0])
            emit(np.add, candidate, more[0], candidate)
        known = True
        net.candidate.apply(emit, candidate, candidate)
        one, other = (old, candidate) if net.origin else (candidate, old)
        emit(np.subtract, one, other, h)  # h = other + update · (one - other)
        emit(np.multiply, h, update, h)
        emit(np.add, h, other, h)


def backward(
    net: Gru, emit: Emit, weight: Array, packed: tuple[Array, ...], old: Array, room: tuple[Array, ...]
) -> Array:
    """Emit the steps back; returns the gradient of the initial state, which they write."""
    to_gates, to_candidate = halves(weight)
    gates, g, dz, slopes, kept, by_gate, share = packed
    weights, back, change = room
    # quicker to multiply with than views
    emit(np.copyto, weights, parts(to_gates, len(to_gates)).transpose(0, 2, 1))
    emit(np.copyto, back, to_candidate.T)
    update, _, candidate = gates
    net.gate.slope(emit, gates[:2], slopes[:2])
    net.candidate.slope(emit, candidate, slopes[2])
    emit(np.subtract, number(1, update.dtype), update, kept)  # the share of the one that the update gate leaves out
    emit(np.subtract, *((old, candidate) if net.origin else (candidate, old)), change)
    for slope, factor in zip(slopes, (change, old, kept if net.origin else update), strict=True):
        emit(np.multiply, slope, factor, slope)
    stays = update if net.origin else kept
    for now, _, going_on in net.batches.backwards():
        dh, d, n = g[now], dz[:, now], now.stop - now.start
        slope, each, (dold, dreset) = slopes[:, now], by_gate[:, :n], share[:, :n]
        if going_on:
            emit(np.add, dh[:going_on], share[0, :going_on], dh[:going_on])
        emit(np.multiply, dh, slope[0], d[0])
        emit(np.multiply, dh, slope[2], d[2])
        emit(np.dot, d[2], back, dreset)
        emit(np.multiply, dreset, slope[1], d[1])
        emit(np.matmul, d[:2], weights, each)
        emit(np.multiply, dh, stays[now], dold)
        emit(np.multiply, dreset, gates[1, now], dreset)
        for more in (*each, dreset):
            emit(np.add, dold, more, dold)
    return share[0, : net.batches.first]


def weight_grad(emit: Emit, old: Array, reset: Array, dz: Array, out: Array) -> None:
    """Emit the gradient of the weight; ``old`` has the state before each row, ``reset`` that times the reset gate."""
    dgates, dcandidate = halves(out)
    emit(np.matmul, old.T, dz[:2], parts(dgates, len(dgates)))
    emit(np.matmul, reset.T, dz[2], dcandidate)


WEIGHT = "[width, 3 · width]; its memory holds [width, 2 · width] for update and reset, then [width, width]"


def _check(c: Context) -> int:
    """Check input, weight and bias; gives the width."""
    one_dtype(c, "Input", "Weight", "Bias", "H0", "HiddenPrev")
    x, weight, type = c["Input"], c["Weight"], c.definition.type
    width = weight.shape[0] if weight.ndim == 2 else -1
    c.require(
        weight.ndim == x.ndim == 2 and agree(weight.shape, (width, 3 * width)) and agree((-1, 3 * width), x.shape),
        f"Input(Weight) of {type} must be [width, 3 · width], and Input(Input) must have 3 · width columns.",
        expected=f"Weight [{width}, {3 * width}] and Input [n, {3 * width}]" if width >= 0 else "two matrices",
        received=f"Weight {list(weight.shape)}, Input {list(x.shape)}",
        hint="layers.fc(x, 3 * width) in front makes such an input.",
    )  # fmt: skip
    fits(c, "Bias", (1, 3 * width), f"Input(Bias) of {type} must be a row for the three gates.")
    return width


def _infer(c: Context) -> None:
    x, width = c["Input"], _check(c)
    require_lod(c, "Input", levels=1)
    count = len(c.lod("Input")[0]) - 1 if c.runtime else -1
    expected = [count if count >= 0 else "sequences", width]
    fits(c, "H0", (count, width), "Input(H0) of gru must have a row for each sequence.", expected)
    c.set("Hidden", (x.shape[0], width), x.dtype, c.lod("Input"))
    c.set("BatchGate", x.shape, x.dtype)
    for slot in ("BatchResetHiddenPrev", "BatchHidden"):
        c.set(slot, (x.shape[0], width), x.dtype)


def run(
    net: Gru, emit: Emit, x: Array, parameters: tuple[Array, ...], h0: Array | None, packed: tuple[Array, ...],
    biased: Array, gates: Array | None, hidden: Array | None,
) -> None:  # fmt: skip
    """Emit a GRU over sequences; ``gates`` [n, 3, width] and ``hidden`` [n, width] are written where wanted."""
    weight, bias = parameters
    if bias is None:
        emit(np.copyto, biased, x)
    else:
        emit(np.add, x, bias, biased)
    emit(net.blocks.pack, biased, packed[0])
    emit(net.batches.pack_initial, h0, packed[3])
    forward(net, emit, weight, h0 is not None, packed)
    if gates is not None:
        emit(net.blocks.rows, packed[0], gates)
    if hidden is not None:
        emit(net.batches.unpack, packed[2], hidden)


def run_back(
    net: Gru, emit: Emit, weight: Array, h0: Array | None, values: tuple[Array, ...], g: Array,
    packed: tuple[Array, ...], room: tuple[Array, ...], outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    """Emit the gradients of a GRU from values as `run` left them; ``outs`` may be None."""
    (gates, reset, states), batches, (old, first, *inner) = values, net.batches, room
    packed_gates, dstates, dz = packed[:3]
    dx, dweight, dbias, dh0 = outs
    emit(batches.pack_parts, gates, packed_gates)
    emit(batches.pack, g, dstates)
    emit(batches.pack_initial, h0, first)
    emit(batches.pack_previous, states, first, old)
    dfirst = backward(net, emit, weight, packed, old, tuple(inner))
    if dx is not None:
        emit(batches.unpack_parts, dz, dx)
    if dweight is not None:
        weight_grad(emit, old, reset, dz, dweight)
    if dbias is not None:
        emit(np.add.reduce, dz, 1, None, dbias.reshape(3, -1))
    if dh0 is not None:
        emit(batches.unpack_initial, dfirst, dh0)


def _flat(b: Binder, weight: Array) -> Array:
    return reading(b, weight, (weight.size,))


def _emit_on_cuda(b: Binder, net: Gru, slots: tuple[str, str, str], first: str, out: str) -> None:
    """Emit the run of a GRU; the last array is empty where the packed states are in the order of the input."""
    x, order, width = b["Input"], Order(b, net.batches), b["Weight"].shape[0]
    dtype, n = wide_dtype(x.dtype), len(x)
    to_gates, to_candidate = halves(of_dtype(b, b["Weight"], dtype).reshape(-1))
    shapes = (n, 3 * width), (n, width), (n, width)
    gates, reset, states = (allocate(b, slot, shape, dtype) for slot, shape in zip(slots, shapes, strict=True))
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
    for slot, array in zip(slots, (gates, reset, states), strict=True):
        settle(b, slot, array)


def _emit_back_on_cuda(b: Binder, net: Gru, values: tuple[Array, Array, Array], first: str) -> None:
    """Emit the gradients of a GRU."""
    order, (n, width), dtype = Order(b, net.batches), values[1].shape, wide_dtype(values[1].dtype)
    to_gates, to_candidate = halves(of_dtype(b, b["Weight"], dtype).reshape(-1))
    gates, reset = (of_dtype(b, value, dtype) for value in values[:2])
    old, dstates, dgates = b.tmp((n, width), dtype), b.tmp((n, width), dtype), b.tmp((n, 3 * width), dtype)
    gather(b, values[2], order.packed_before, old, initial=b[first])
    gather(b, b["Hidden@GRAD"], order.rows, dstates)
    dfirst, shares = (b.tmp((net.batches.first, width), dtype) for _ in range(2))
    name, w, origin = ctype(dtype), np.int64(width), np.int32(net.origin)
    kinds = KINDS[net.gate], KINDS[net.candidate]
    for now, before, _ in net.batches.backwards():
        rows, d, begins = now.stop - now.start, dgates[now], np.int32(before is None)
        dreset, dold = shares[:rows], dfirst if before is None else dstates[before]
        read = gates[now], old[now], dstates[now]
        by_rows(b, CUDA, f"gru_back<{name}>", rows, width, *read, d, *kinds, origin, w)
        gemm(b, d[:, 2 * width :], to_candidate, dreset, ty=True)
        settings = KINDS[net.gate], origin, begins, w
        by_rows(b, CUDA, f"gru_reset_back<{name}>", rows, width, *read, dreset, d, dold, *settings)
        gemm(b, d[:, : 2 * width], to_gates, dold, ty=True, beta=1.0)
    if b.wants("Input@GRAD"):
        gather(b, dgates, order.places, b["Input@GRAD"])
    if b.wants("Weight@GRAD"):
        dweight = allocate(b, "Weight@GRAD", (), dtype)
        dto_gates, dto_candidate = halves(dweight.reshape(-1))
        over_rows(b, old, dgates[:, : 2 * width], dto_gates)
        over_rows(b, reset, dgates[:, 2 * width :], dto_candidate)
        settle(b, "Weight@GRAD", dweight)
    bias_grad(b, dgates, None)
    if b.wants(first + "@GRAD"):
        gather(b, dfirst, order.of_firsts, b[first + "@GRAD"])


def _emit(b: Binder, net: Gru, slots: tuple[str, str, str], first: str, out: str) -> None:
    """Emit the run; see `_emit_on_cuda`."""
    if b.on_cuda:
        return _emit_on_cuda(b, net, slots, first, out)
    x, width, count = b["Input"], b["Weight"].shape[0], net.batches.first
    n, whole = len(x), b[slots[0]]
    reset, states = (b.tmp((n, width), x.dtype) if b[slot] is None else b[slot] for slot in slots[1:])
    shapes = (n * 3, width), (count, width), (2 * count, width), x.shape
    blocks, initial, more, biased = (b.tmp(shape, x.dtype) for shape in shapes)
    gates = None if whole is None else writing(b, whole, (n, 3, width))
    packed = blocks, reset, states, initial, more
    parameters, hidden = (_flat(b, b["Weight"]), b["Bias"]), b[out] if out else None
    b(OneCall(partial(run, net)), x, parameters, b[first], packed, biased, gates, hidden)
    return None if gates is None else written(b, whole, gates)


def _emit_back(b: Binder, net: Gru, values: tuple[Array, Array, Array], first: str, g: Array) -> None:
    """Emit the gradients."""
    gates, reset, states = values
    if b.on_cuda:
        return _emit_back_on_cuda(b, net, values, first)
    (n, width), count = reset.shape, net.batches.first
    shapes = [(3, n, width), (n, width), (3, n, width), (3, n, width), (n, width), (2, count, width), (2, count, width)]
    packed = tuple(b.tmp(shape, g.dtype) for shape in shapes)
    inner = (2, width, width), (width, width), (n, width)
    more = tuple(b.tmp(shape, g.dtype) for shape in ((n, width), (count, width), *inner))
    dx, dweight, dbias, dh0 = (b[slot + "@GRAD"] for slot in ("Input", "Weight", "Bias", first))
    into = None if dx is None else writing(b, dx, (n, 3, width))
    flat = None if dweight is None else writing(b, dweight, (dweight.size,))
    values = reading(b, gates, (n, 3, width)), reset, states
    outs = into, flat, dbias, dh0
    b(OneCall(partial(run_back, net)), _flat(b, b["Weight"]), b[first], values, g, packed, more, outs)
    for out, view in ((dx, into), (dweight, flat)):
        if view is not None:
            written(b, out, view)


def _gru(b: Binder, batches: Batches, blocks: Blocks, gate: str, candidate: str) -> Gru:
    return Gru(batches, blocks, ACTIVATIONS[gate], ACTIVATIONS[candidate], bool(b.attr("origin_mode", False)))


def _network(b: Binder) -> Gru:
    return _gru(b, *steps_of(b, 3), b.attr("gate_activation", "sigmoid"), b.attr("activation", "tanh"))


@op(
    "gru",
    inputs={
        "Input: float[n, 3 · width] lod": "the projected input, in columns update, reset, candidate",
        "H0?: float[sequences, width]": "state before the first step; zeros without",
        "Weight": WEIGHT,
        "Bias?: float[1, 3 · width]": "",
    },
    outputs={
        "BatchGate~": "[n, 3 · width]: the gates, step by step",
        "BatchResetHiddenPrev~": "[n, width]: the old state times the reset gate, step by step",
        "BatchHidden~": "[n, width]: the states, step by step",
        "Hidden": "[n, width]: the state after each row",
    },
    attrs={
        "activation": Attr("string", "tanh", "of the candidate", enum=tuple(ACTIVATIONS)),
        "gate_activation": Attr("string", "sigmoid", "of the two gates", enum=tuple(ACTIVATIONS)),
        "is_reverse": Attr("bool", False, "whether time runs from the last row of a sequence to the first"),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
        "origin_mode": Attr("bool", False, "whether the update gate is the share of the old state"),
    },
    cost="Input * Weight[:1] + 3 * Input",
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad(
        "Input", "H0", "Weight", "Bias", "BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden", "Hidden@GRAD"
    ),
    cuda=FLOATS,
)
def gru(b: Binder) -> None:
    """Runs a GRU along each sequence; nothing is padded.

    ::

        u, r = σ(x + h W + b)
        candidate = tanh(x_c + (r · h) W_c + b_c)
        h' = (1 - u) · h + u · candidate, or with origin_mode u · h + (1 - u) · candidate

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gru", {"Input": (np.zeros((3, 6)), [[2, 1]]), "Weight": np.zeros((2, 6))})["Hidden"]
        LoDTensor(shape=[3, 2], dtype=float64, lod=[[0, 2, 3]], place=CPUPlace)

    Source: Fluid's gru_op (Chung et al. 2014; with origin_mode Cho et al. 2014).
    """
    _emit(b, _network(b), ("BatchGate", "BatchResetHiddenPrev", "BatchHidden"), "H0", "Hidden")


@c_code("gru")
@c_code("gru_grad")
def _gru_in_c(c: Context) -> dict[str, Constant]:
    rows, width = c["Hidden"].shape
    return {
        "COUNT": rows * width, "WIDTH": width, "REVERSE": int(c.attr("is_reverse")),
        "ORIGIN": int(c.attr("origin_mode")), "GATE": IN_C[c.attr("gate_activation")],
        "CANDIDATE": IN_C[c.attr("activation")], "GATE_SLOPE": SLOPES_IN_C[c.attr("gate_activation")],
        "CANDIDATE_SLOPE": SLOPES_IN_C[c.attr("activation")],
    }  # fmt: skip


@grad_op("gru_grad", dtype_slot="Input", cuda=FLOATS)
def gru_grad(b: Binder) -> None:
    """Gradients by backpropagation through time, from that of Hidden."""
    values = b["BatchGate"], b["BatchResetHiddenPrev"], b["BatchHidden"]
    _emit_back(b, _network(b), values, "H0", b["Hidden@GRAD"])


def _unit_infer(c: Context) -> None:
    x, width = c["Input"], _check(c)
    message = "Input(HiddenPrev) of gru_unit must have a row for each row of Input(Input)."
    fits(c, "HiddenPrev", (x.shape[0], width), message)
    c.set("Gate", x.shape, x.dtype)
    for slot in ("ResetHiddenPrev", "Hidden"):
        c.set(slot, (x.shape[0], width), x.dtype)


def _unit_network(b: Binder) -> Gru:
    """One step, over rows that need no sorting."""
    batches = Batches(np.arange(b["Input"].shape[0] + 1))
    kinds = BY_NUMBER[b.attr("gate_activation", 1)], BY_NUMBER[b.attr("activation", 2)]
    return _gru(b, batches, Blocks(batches, 3), *kinds)


@op(
    "gru_unit",
    inputs={
        "Input: float[batch, 3 · width]": "the projected input, in columns update, reset, candidate",
        "HiddenPrev: float[batch, width]": "the old state",
        "Weight": WEIGHT,
        "Bias?: float[1, 3 · width]": "",
    },
    outputs={
        "Gate~": "[batch, 3 · width]: the gates",
        "ResetHiddenPrev~": "[batch, width]: the old state times the reset gate",
        "Hidden": "[batch, width]: the new state",
    },
    attrs={
        "activation": Attr("int", 2, "of the candidate: 0 identity, 1 sigmoid, 2 tanh, 3 relu", enum=(0, 1, 2, 3)),
        "gate_activation": Attr("int", 1, "of the two gates, alike", enum=(0, 1, 2, 3)),
        "origin_mode": Attr("bool", False, "whether the update gate is the share of the old state"),
    },
    cost="Input * Weight[:1] + 3 * Input",
    infer=_unit_infer,
    dtypes=FLOATS,
    grad=default_grad("Input", "HiddenPrev", "Weight", "Bias", "Gate", "ResetHiddenPrev", "Hidden@GRAD"),
    cuda=FLOATS,
)
def gru_unit(b: Binder) -> None:
    """One step of a GRU: h' = (1 - u) · h + u · candidate, or u · h + (1 - u) · candidate with origin_mode.

    As in ``gru``, u, r = σ(x + h W + b) and candidate = tanh(x_c + (r · h) W_c + b_c).

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"Input": np.zeros((1, 3)), "HiddenPrev": [[1.0]], "Weight": np.zeros((1, 3))}
        >>> run_op("gru_unit", inputs)["Hidden"]
        array([[0.5]])

    Source: Fluid's gru_unit_op.
    """
    _emit(b, _unit_network(b), ("Gate", "ResetHiddenPrev", "Hidden"), "HiddenPrev", "")


@grad_op("gru_unit_grad", dtype_slot="Input", cuda=FLOATS)
def gru_unit_grad(b: Binder) -> None:
    """Gradients of one step, from that of Hidden."""
    values = b["Gate"], b["ResetHiddenPrev"], b["HiddenPrev"]  # no row continues from another, so no state is looked up
    _emit_back(b, _unit_network(b), values, "HiddenPrev", b["Hidden@GRAD"])
