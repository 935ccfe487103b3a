"""gru and gru_unit: gated recurrent units over sequences (dynamic_gru), and one step of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rnn.activations import ACTIVATIONS, BY_NUMBER
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.rnn.gru_steps import Gru, backward, forward, weight_grad
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequences import offsets_of, one_dtype, require_lod
from fluidnb_kernels.views import reading, writing, written

Array = Any

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
    c.require(
        not c.has("Bias") or agree(c["Bias"].shape, (1, 3 * width)),
        f"Input(Bias) of {type} must be a row for the three gates.", expected=[1, 3 * width],
        received=list(c["Bias"].shape) if c.has("Bias") else None,
    )  # fmt: skip
    return width


def _infer(c: Context) -> None:
    x, width = c["Input"], _check(c)
    require_lod(c, "Input", levels=1)
    count = len(c.lod("Input")[0]) - 1 if c.runtime else -1
    c.require(
        not c.has("H0") or agree(c["H0"].shape, (count, width)), "Input(H0) of gru must have a row for each sequence.",
        expected=[count if count >= 0 else "sequences", width], received=list(c["H0"].shape) if c.has("H0") else None,
    )  # fmt: skip
    c.set("Hidden", (x.shape[0], width), x.dtype, c.lod("Input"))
    c.set("BatchGate", x.shape, x.dtype)
    for slot in ("BatchResetHiddenPrev", "BatchHidden"):
        c.set(slot, (x.shape[0], width), x.dtype)


def run(net: Gru, x: Array, parameters: tuple[Array, ...], h0: Array, packed: tuple[Array, ...], hidden: Array) -> None:
    """Run a GRU over sequences.

    Args:
        net: what it is.
        x: [n, 3 · width].
        parameters: weight, and bias or None.
        h0: first state or None.
        packed: gates, reset and states; written.
        hidden: [n, width], written where wanted: the states in the order of the input.
    """
    net.batches.pack(x, packed[0])
    weight, bias = parameters
    forward(net, weight, bias, h0, *packed)
    if hidden is not None:
        net.batches.unpack(packed[-1], hidden)


def run_back(
    net: Gru, weight: Array, h0: Array, packed: tuple[Array, ...], g: Array, room: tuple[Array, ...],
    outs: tuple[Array, ...],
) -> None:  # fmt: skip
    """Write the gradients of a GRU.

    Args:
        net: what it is.
        weight: its weight.
        h0: first state or None.
        packed: gates, reset and states, as `run` left them.
        g: [n, width], in the order of the input.
        room: workspaces: three [n, width], two [n, 3 · width].
        outs: gradients of input, weight, bias and first state, None where unwanted.
    """
    (gates, reset, states), batches = packed, net.batches
    old, dstates, kept, dz, slopes = room
    dx, dweight, dbias, dh0 = outs
    batches.pack(g, dstates)
    batches.pack_previous(states, batches.pack_initial(h0, states.shape[1], states.dtype), old)
    first = backward(net, weight, gates, old, dstates, dz, (slopes, kept))
    if dx is not None:
        batches.unpack(dz, dx)
    if dweight is not None:
        weight_grad(old, reset, dz, dweight)
    if dbias is not None:
        np.add.reduce(dz, 0, None, dbias.reshape(-1))
    if dh0 is not None:
        batches.unpack_initial(first, dh0)


def _flat(b: Binder, weight: Array) -> Array:
    return reading(b, weight, (weight.size,))


def _emit_back(b: Binder, net: Gru, h0: Array, packed: tuple[Array, ...], g: Array, first: str) -> None:
    n, width = packed[1].shape
    room = tuple(b.tmp((n, columns), g.dtype) for columns in (width, width, width, 3 * width, 3 * width))
    dx, dweight, dbias, dh0 = (b[slot + "@GRAD"] for slot in ("Input", "Weight", "Bias", first))
    flat = None if dweight is None else writing(b, dweight, (dweight.size,))
    b(run_back, net, _flat(b, b["Weight"]), h0, packed, g, room, (dx, flat, dbias, dh0))
    if flat is not None:
        written(b, dweight, flat)


def _network(b: Binder) -> Gru:
    gate, candidate = (
        ACTIVATIONS[b.attr(name, default)] for name, default in (("gate_activation", "sigmoid"), ("activation", "tanh"))
    )
    batches = Batches(offsets_of(b, "Input"), bool(b.attr("is_reverse", False)))
    return Gru(batches, gate, candidate, bool(b.attr("origin_mode", False)))


@op(
    "gru",
    inputs={
        "Input": "[n, 3 · width] with one level of LoD: the projected input, in columns update, reset, candidate",
        "H0?": "[sequences, width]: state before the first step; zeros without",
        "Weight": WEIGHT,
        "Bias?": "[1, 3 · width]",
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
        "is_test": Attr("bool", False, "kept for old programs; it changes nothing"),
        "origin_mode": Attr("bool", False, "whether the update gate is the share of the old state"),
    },
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad(
        "Input", "H0", "Weight", "Bias", "BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden", "Hidden@GRAD"
    ),
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
    x, width = b["Input"], b["Weight"].shape[0]
    packed = tuple(
        b.tmp((x.shape[0], columns), x.dtype) if b[slot] is None else b[slot]
        for slot, columns in (("BatchGate", 3 * width), ("BatchResetHiddenPrev", width), ("BatchHidden", width))
    )
    b(run, _network(b), x, (_flat(b, b["Weight"]), b["Bias"]), b["H0"], packed, b["Hidden"])


@grad_op("gru_grad", dtype_slot="Input")
def gru_grad(b: Binder) -> None:
    """Gradients by backpropagation through time, from that of Hidden."""
    packed = b["BatchGate"], b["BatchResetHiddenPrev"], b["BatchHidden"]
    _emit_back(b, _network(b), b["H0"], packed, b["Hidden@GRAD"], "H0")


def _unit_infer(c: Context) -> None:
    x, width = c["Input"], _check(c)
    c.require(
        agree(c["HiddenPrev"].shape, (x.shape[0], width)),
        "Input(HiddenPrev) of gru_unit must have a row for each row of Input(Input).",
        expected=[x.shape[0], width], received=list(c["HiddenPrev"].shape),
    )  # fmt: skip
    c.set("Gate", x.shape, x.dtype)
    for slot in ("ResetHiddenPrev", "Hidden"):
        c.set(slot, (x.shape[0], width), x.dtype)


def _unit_network(b: Binder) -> Gru:
    """One step, over rows that need no sorting."""
    gate, candidate = (
        ACTIVATIONS[BY_NUMBER[b.attr(name, default)]] for name, default in (("gate_activation", 1), ("activation", 2))
    )
    return Gru(Batches(np.arange(b["Input"].shape[0] + 1)), gate, candidate, bool(b.attr("origin_mode", False)))


@op(
    "gru_unit",
    inputs={
        "Input": "[batch, 3 · width]: the projected input, in columns update, reset, candidate",
        "HiddenPrev": "[batch, width]: the old state",
        "Weight": WEIGHT,
        "Bias?": "[1, 3 · width]",
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
    infer=_unit_infer,
    dtypes=FLOATS,
    grad=default_grad("Input", "HiddenPrev", "Weight", "Bias", "Gate", "ResetHiddenPrev", "Hidden@GRAD"),
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
    x, width = b["Input"], b["Weight"].shape[0]
    packed = tuple(
        b.tmp((x.shape[0], columns), x.dtype) if b[slot] is None else b[slot]
        for slot, columns in (("Gate", 3 * width), ("ResetHiddenPrev", width), ("Hidden", width))
    )
    b(run, _unit_network(b), x, (_flat(b, b["Weight"]), b["Bias"]), b["HiddenPrev"], packed, None)


@grad_op("gru_unit_grad", dtype_slot="Input")
def gru_unit_grad(b: Binder) -> None:
    """Gradients of one step, from that of Hidden."""
    packed = b["Gate"], b["ResetHiddenPrev"], b["HiddenPrev"]  # no row goes on from another, so no state is looked up
    _emit_back(b, _unit_network(b), b["HiddenPrev"], packed, b["Hidden@GRAD"], "HiddenPrev")
