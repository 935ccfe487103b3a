"""cudnn_lstm: layers of LSTMs over a batch of sequences of one length, with all weights in one vector."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, unit
from fluidnb_kernels.activation.functions import ROWS
from fluidnb_kernels.activation.table import CUDA as ACTIVATIONS
from fluidnb_kernels.cuda import ctype, elementwise
from fluidnb_kernels.formulas import Formulas
from fluidnb_kernels.random.dropout import CUDA as DROPOUT
from fluidnb_kernels.random.dropout import check_rate, draw
from fluidnb_kernels.rules import fits
from fluidnb_kernels.tensor.strided_copy import fill

_DTYPES = ("float32", "float64")


def _sides(c: Context) -> int:
    return 2 if c.attr("is_bidirec", False) else 1


def weight_size(inputs: int, width: int, layers: int, sides: int) -> int:
    """The number of elements of W."""
    first, other = inputs + width, sides * width + width
    return sides * 4 * width * (first + (layers - 1) * other + 2 * layers)


def _infer(c: Context) -> None:
    x = c["Input"]
    width, layers, sides = c.attr("hidden_size"), c.attr("num_layers"), _sides(c)
    fits(c, "Input", (-1,) * 3, "Input(Input) of cudnn_lstm must have three dimensions.", "[time, batch, features]")
    time, batch, inputs = x.shape
    c.require(
        c.attr("input_size") in (0, inputs) or inputs == -1,
        "Input(Input) of cudnn_lstm must have input_size features.",
        expected=c.attr("input_size"), received=inputs,
    )  # fmt: skip
    for slot in ("InitH", "InitC"):
        fits(c, slot, (layers * sides, batch, width), f"Input({slot}) of cudnn_lstm has a row for each layer.")
    size = -1 if inputs == -1 else weight_size(inputs, width, layers, sides)
    fits(c, "W", (size,), "Input(W) of cudnn_lstm holds the weights and biases of all layers.")
    c.set("Out", (time, batch, sides * width), x.dtype)
    for slot in ("last_h", "last_c"):
        c.set(slot, (layers * sides, batch, width), x.dtype)
    kept = layers - 1 if _drops(c) else 0
    c.set("Reserve", (kept, time, batch, sides * width), x.dtype)


def _drops(c: Context) -> bool:
    return bool(c.attr("dropout_prob", 0.0) and not c.attr("is_test", False))


@dataclass(frozen=True, slots=True)
class Step:
    """The gates, the cells before and after, and the activated cell of one time step, for backward."""

    gates: list[Array]
    before: Array
    active: Array


@dataclass(frozen=True, slots=True)
class Net:
    """Weights of one direction of a layer: four matrices from below, four from the state, each with a bias."""

    below: list[Array]
    state: list[Array]
    biases: list[tuple[Array, Array]]


def _cut(w: Array, inputs: int, width: int, layers: int, sides: int) -> Iterator[Net]:
    """The weights of each direction of each layer in W: all matrices come first, then all biases."""
    at, bias = 0, len(w) - layers * sides * 8 * width

    def rows(start: int, height: int, wide: int) -> list[Array]:
        size = height * wide
        return [w[start + k * size : start + (k + 1) * size].reshape(height, wide) for k in range(4)]

    for i in range(layers * sides):
        wide = inputs if i < sides else sides * width
        below, state = rows(at, width, wide), rows(at + 4 * width * wide, width, width)
        at += 4 * width * (wide + width)
        halves = rows(bias, 1, width), rows(bias + 4 * width, 1, width)
        bias += 8 * width
        yield Net(below, state, list(zip(*halves, strict=True)))


class Run:
    """One run over all layers."""

    def __init__(self, b: Binder) -> None:
        x = b["Input"]
        self.b, self.f = b, Formulas(b, b.on_cuda, x.dtype)
        self.time, self.batch, inputs = x.shape
        self.width, self.layers, self.sides = b.attr("hidden_size"), b.attr("num_layers", 1), _sides(b)
        self.first = self.f.read(x, (self.time * self.batch, inputs))
        self.sizes = inputs, self.width, self.layers, self.sides
        self.nets = list(_cut(self.f.read(b["W"]), *self.sizes))
        self.one = self.f.number(1)
        self.inputs: list[Array] = []
        self.steps: list[list[Step]] = []
        self.states: list[Array] = []

    def _apply(self, name: str, x: Array) -> Array:
        out = self.b.tmp(x.shape, x.dtype)
        if self.f.on_cuda:
            elementwise(self.b, ACTIVATIONS, f"unary<f::{name}", x, out, numbers=(np.float64(0),) * 3)
        elif name == "tanh":
            self.b(np.tanh, x, out=out)
        else:
            ROWS[name].emit(self.b, x, out)
        return out

    def _rows(self, t: int) -> slice:
        return slice(t * self.batch, (t + 1) * self.batch)

    def _order(self, side: int) -> Sequence[int]:
        return range(self.time)[::-1] if side else range(self.time)

    def forward(self, factors: Array | None, last: tuple[Array | None, Array | None]) -> Array:
        """Emit all layers; returns the results of the last, [time · batch, width]."""
        b, f, whole, x = self.b, self.f, slice(None), self.first
        for layer in range(self.layers):
            self.inputs.append(x)
            out = b.tmp((self.time * self.batch, self.sides * self.width), x.dtype)
            for side in range(self.sides):
                i = layer * self.sides + side
                net, columns = self.nets[i], slice(side * self.width, (side + 1) * self.width)
                biases = [f.add(one, other) for one, other in net.biases]
                pre = [f.add(f.product(x, w, ty=True), bias) for w, bias in zip(net.below, biases, strict=True)]
                h, c = f.read(b["InitH"][i]), f.read(b["InitC"][i])
                before = b.tmp((self.time * self.batch, self.width), x.dtype)
                steps: list[Step] = []
                for t in self._order(side):
                    rows = self._rows(t)
                    f.put(before, rows, whole, h)
                    z = [f.add(p[rows], f.product(h, w, ty=True)) for p, w in zip(pre, net.state, strict=True)]
                    gates = [self._apply("tanh" if k == 2 else "sigmoid", v) for k, v in enumerate(z)]
                    old, c = c, f.add(f.mul(gates[1], c), f.mul(gates[0], gates[2]))
                    active = self._apply("tanh", c)
                    h = f.mul(gates[3], active)
                    f.put(out, rows, columns, h)
                    steps.append(Step(gates, old, active))
                for target, value in zip(last, (h, c), strict=True):
                    if target is not None:
                        f.write(target[i], value)
                self.steps.append(steps)
                self.states.append(before)
            x = out
            if factors is not None and layer < self.layers - 1:
                x = f.mul(x, factors[layer])
        return x

    def backward(self, g: Array | None, factors: Array | None, last: tuple[Array | None, Array | None]) -> None:
        """Emit the gradients after `forward`; those of results ``g`` and last states ``last`` are None for 0."""
        b, f = self.b, self.f
        targets = None if b["W@GRAD"] is None else list(_cut(b["W@GRAD"], *self.sizes))
        for layer in reversed(range(self.layers)):
            x, below = self.inputs[layer], None
            for side in range(self.sides):
                i = layer * self.sides + side
                dz = self._through_time(i, side, g, [None if v is None else f.read(v[i]) for v in last])
                for d, w in zip(dz, self.nets[i].below, strict=True):
                    part = f.product(d, w)
                    below = part if below is None else f.add(below, part)
                for k, d in enumerate(dz if targets else ()):
                    net = targets[i]  # type: ignore[index]
                    f.write(net.below[k], f.product(d, x, tx=True))
                    f.write(net.state[k], f.product(d, self.states[i], tx=True))
                    for bias in net.biases[k]:
                        f.write(bias, f.total(d, (0,)))
            g = below
            if layer and factors is not None:
                g = f.mul(g, factors[layer - 1])
        if b["Input@GRAD"] is not None:
            f.write(b["Input@GRAD"], g)

    def _through_time(self, i: int, side: int, g: Array | None, last: list[Array | None]) -> list[Array]:
        """Emit the gradients of the gates' pre-activations of one direction of a layer."""
        b, f, one = self.b, self.f, self.one
        columns, whole = slice(side * self.width, (side + 1) * self.width), slice(None)
        dz = [b.tmp((self.time * self.batch, self.width), self.first.dtype) for _ in range(4)]
        dh, dc = last
        shape = self.batch, self.width
        for t, step in zip(reversed(self._order(side)), reversed(self.steps[i]), strict=True):
            rows, (into, forget, new, out) = self._rows(t), step.gates
            arriving = [dh, None if g is None else f.take(g, rows, columns)]
            dh = f.sum_of(arriving, shape)
            inner = f.mul(f.mul(dh, out), f.sub(one, f.mul(step.active, step.active)))
            dcell = f.sum_of([inner, dc], shape)
            slopes = (f.mul(dcell, new), f.mul(dcell, step.before), f.mul(dcell, into), f.mul(dh, step.active))
            bent = [f.mul(v, f.sub(one, v)) for v in (into, forget, out)]
            bent.insert(2, f.sub(one, f.mul(new, new)))
            parts = [f.mul(slope, bend) for slope, bend in zip(slopes, bent, strict=True)]
            for target, part in zip(dz, parts, strict=True):
                f.put(target, rows, whole, part)
            dh = f.sum_of([f.product(part, w) for part, w in zip(parts, self.nets[i].state, strict=True)], shape)
            dc = f.mul(dcell, forget)
        for slot, value in (("InitH@GRAD", dh), ("InitC@GRAD", dc)):
            if b[slot] is not None:
                f.write(b[slot][i], f.sum_of([value], shape))
        return dz


def _factors(b: Binder, run: Run) -> Array | None:
    """Emit the factors of dropout into Reserve, where there are some."""
    if not _drops(b) or run.layers == 1:
        return None
    shape = (run.layers - 1, run.time * run.batch, run.sides * run.width)
    rate, dtype = b.attr("dropout_prob"), run.first.dtype
    stays = 1 - rate if rate < 1 else 1.0
    out = b.tmp(shape, dtype) if b["Reserve"] is None else b["Reserve"].reshape(shape)
    stream = b.rng
    stream.seed = max(stream.seed, 0)
    if run.f.on_cuda:
        ones, mask = b.tmp(shape, dtype), b.tmp(shape, np.uint8)
        fill(b, ones, 1)
        if ones.size:
            b(draw, DROPOUT[f"dropout<{ctype(dtype)}, 1>"], stream, ones, out, mask, rate, stays)
        return out
    prob, stay = b.tmp(shape, dtype), b.tmp(shape, bool)
    b(unit, stream, prob)
    b(np.greater_equal, prob, b.const(rate, dtype), out=stay)
    b(np.divide, stay, b.const(stays, dtype), out=out)
    return out


@op(
    "cudnn_lstm",
    inputs={
        "Input: float[time, batch, features]": "",
        "InitH: float[layers, batch, width]":
            "hidden states before the first step; both directions of a layer are two rows",
        "InitC: float[layers, batch, width]": "cells before the first step",
        "W: float[size]":
            "for each layer four matrices [width, features] and four [width, width], then two biases for each",
        "Cache?": "ignored (compatibility)",
    },
    outputs={
        "Out": "[time, batch, width]: the hidden states of the last layer, both directions side by side",
        "last_h": "[layers, batch, width]: the last hidden states",
        "last_c": "[layers, batch, width]: the last cells",
        "Reserve~": "[layers - 1, time, batch, width]: factors of dropout; empty without",
    },
    attrs={
        "max_len": Attr("int", 0, "ignored (compatibility)"),
        "dropout_prob": Attr("float", 0.0, "how likely what goes up between layers is left out", check=check_rate),
        "is_bidirec": Attr("bool", False, "whether a second LSTM of each layer runs against time"),
        "input_size": Attr("int", 0, "features of Input; 0 takes them from Input", ge=0),
        "hidden_size": Attr("int", doc="width of the states", gt=0),
        "num_layers": Attr("int", 1, "how many layers", gt=0),
        "is_test": Attr("bool", False, "leave nothing out"),
        "seed": Attr("int", 0, "of dropout; 0 and below draw new numbers in every run"),
    },
    cost="Input[:2] * W",
    infer=_infer,
    grad=default_grad(
        "Input", "InitH", "InitC", "W", "Reserve", "Out@GRAD", "last_h@GRAD", "last_c@GRAD",
        wrt=["Input", "InitH", "InitC", "W"],
    ),
    random=True,
    dtypes=_DTYPES,
    dtype_slot="Input",
    unset=("Cache",), cuda=_DTYPES,
)  # fmt: skip
def cudnn_lstm(b: Binder) -> None:
    """Runs layers of LSTMs over time: i, f, o = σ(W x + b + R h + b'), c' = f · c + i · tanh(…), h' = o · tanh(c').

    The matrices of a layer are in the order input gate, forget gate, candidate, output gate, as cuDNN has them.

    Example:
        >>> from fluidnb.testing import run_op
        >>> zeros = np.zeros((1, 2, 3))
        >>> given = {"Input": np.ones((4, 2, 5)), "InitH": zeros, "InitC": zeros, "W": np.zeros(120)}
        >>> run_op("cudnn_lstm", given, {"hidden_size": 3})["Out"].shape
        (4, 2, 3)

    Source: NVIDIA, cuDNN documentation; Fluid's cudnn_lstm_op.
    """
    run = Run(b)
    run.f.write(b["Out"], run.forward(_factors(b, run), (b["last_h"], b["last_c"])))


@grad_op("cudnn_lstm_grad", dtype_slot="Input", cuda=_DTYPES)
def cudnn_lstm_grad(b: Binder) -> None:
    """Gradients by backpropagation through time; the gates are computed again."""
    run = Run(b)
    shape = (run.layers - 1, run.time * run.batch, run.sides * run.width)
    factors = run.f.read(b["Reserve"], shape) if _drops(b) and run.layers > 1 else None
    run.forward(factors, (None, None))
    g = None if b["Out@GRAD"] is None else run.f.read(b["Out@GRAD"], shape[1:])
    run.backward(g, factors, (b["last_h@GRAD"], b["last_c@GRAD"]))
