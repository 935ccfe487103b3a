"""rnn: layers of LSTMs, GRUs or plain recurrent units over a batch of sequences, one or both ways."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.random.dropout import check_rate
from fluidnb_kernels.rules import checked, fits

#: mode -> gates, whose weights are below each other in each matrix.
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes and mode of an rnn."""

    mode: str
    layers: int
    sides: int
    width: int
    lengths: bool  # whether the last array has lengths of sequences

    @property
    def count(self) -> int:
        """Directions of all layers."""
        return self.layers * self.sides

    @property
    def states(self) -> int:
        """Kinds of states: an LSTM has cells beside hidden states."""
        return 2 if self.mode == "LSTM" else 1


def _sigmoid(x: Array) -> Array:
    return 0.5 * (np.tanh(0.5 * x) + 1)


def _lstm(x: Array, r: Array, h: Array, c: Array | None) -> tuple[Array, Array | None, Any]:
    """One step of an LSTM: new state, new cell, and what its gradient needs."""
    i, f, g, o = np.split(x + r, 4, -1)
    i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
    new = f * c + i * g
    return o * np.tanh(new), new, (i, f, g, o, c, np.tanh(new))


def _lstm_grad(dh: Array, dc: Array | None, kept: Any) -> tuple[Array, Array, Array, Array | None]:
    """Gradients of both sums of the gates, of the state alone, and of the cell."""
    i, f, g, o, c, active = kept
    dcell = dh * o * (1 - active * active) + dc
    d = np.concatenate([
        dcell * g * i * (1 - i), dcell * c * f * (1 - f), dcell * i * (1 - g * g), dh * active * o * (1 - o),
    ], -1)  # fmt: skip
    return d, d, np.zeros_like(dh), dcell * f


def _gru(x: Array, r: Array, h: Array, c: Array | None) -> tuple[Array, Array | None, Any]:
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(r, 3, -1)
    reset, keep = _sigmoid(xr + hr), _sigmoid(xz + hz)
    new = np.tanh(xn + reset * hn)
    return (h - new) * keep + new, None, (reset, keep, new, hn, h)


def _gru_grad(dh: Array, dc: Array | None, kept: Any) -> tuple[Array, Array, Array, Array | None]:
    reset, keep, new, hn, h = kept
    dn = dh * (1 - keep) * (1 - new * new)
    dr, dz = dn * hn * reset * (1 - reset), dh * (h - new) * keep * (1 - keep)
    return np.concatenate([dr, dz, dn], -1), np.concatenate([dr, dz, dn * reset], -1), dh * keep, None


def _tanh(x: Array, r: Array, h: Array, c: Array | None) -> tuple[Array, Array | None, Any]:
    new = np.tanh(x + r)
    return new, None, 1 - new * new


def _relu(x: Array, r: Array, h: Array, c: Array | None) -> tuple[Array, Array | None, Any]:
    new = np.maximum(x + r, 0)
    return new, None, (new > 0).astype(new.dtype)


def _plain_grad(dh: Array, dc: Array | None, kept: Any) -> tuple[Array, Array, Array, Array | None]:
    d = dh * kept
    return d, d, np.zeros_like(dh), None


STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "LSTM": (_lstm, _lstm_grad), "GRU": (_gru, _gru_grad), "RNN_TANH": (_tanh, _plain_grad),
    "RNN_RELU": (_relu, _plain_grad),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of a layer after its run: what its gradient needs."""

    x: Array
    before: Array  # hidden states before each step
    kept: list[Any]
    order: range


def _masks(sizes: Sizes, time: int, lengths: Array | None, dtype: Any) -> Array | None:
    """[time, batch, 1]: 1 where a sequence has a step."""
    if lengths is None:
        return None
    mask: Array = (np.arange(time)[:, None, None] < lengths.reshape(-1)[:, None]).astype(dtype)
    return mask


def _forward(sizes: Sizes, x: Array, arrays: tuple[Array, ...]) -> tuple[Array, list[Array], list[_Direction]]:
    """Runs all layers: results of the last, last states, and what the gradient needs."""
    initial, weights, biases, lengths = _parts(sizes, arrays)
    step = STEPS[sizes.mode][0]
    mask = _masks(sizes, len(x), lengths, x.dtype)
    last = [np.array(s) for s in initial]
    directions = []
    for layer in range(sizes.layers):
        outs = []
        for side in range(sizes.sides):
            at = layer * sizes.sides + side
            below, state = weights[2 * at : 2 * at + 2]
            pre = x @ below.T + biases[2 * at]
            h, c = initial[0][at], initial[1][at] if sizes.states == 2 else None
            out, before = np.empty((*x.shape[:2], sizes.width), x.dtype), np.empty((*x.shape[:2], sizes.width), x.dtype)
            order, kept = range(len(x))[::-1] if side else range(len(x)), []
            for t in order:
                before[t] = h
                new, cell, facts = step(pre[t], h @ state.T + biases[2 * at + 1], h, c)
                kept.append(facts)
                out[t] = new if mask is None else new * mask[t]
                h = new if mask is None else np.where(mask[t] > 0, new, h)
                if cell is not None:
                    c = cell if mask is None else np.where(mask[t] > 0, cell, c)
            last[0][at] = h
            if c is not None:
                last[1][at] = c
            outs.append(out)
            directions.append(_Direction(x, before, kept, order))
        x = np.concatenate(outs, -1)
    return x, last, directions


def _parts(sizes: Sizes, arrays: tuple[Array, ...]) -> tuple[Any, Any, Any, Array | None]:
    """Initial states, weights, biases and lengths among the arrays of a call."""
    s, n = sizes.states, 2 * sizes.count
    return arrays[:s], arrays[s : s + n], arrays[s + n : s + 2 * n], arrays[-1] if sizes.lengths else None


def run(sizes: Sizes, out: Array | None, x: Array, *arrays: Any) -> None:
    """Write the results and the last states; the arrays end with those of the last states."""
    result, last, _ = _forward(sizes, x, arrays[: len(arrays) - sizes.states])
    if out is not None:
        out[...] = result
    for target, value in zip(arrays[-sizes.states :], last, strict=True):
        if target is not None:
            target[...] = value


def run_back(sizes: Sizes, counts: tuple[int, int], x: Array, *arrays: Any) -> None:
    """Write gradients, by backpropagation through time.

    ``counts`` are those of the arrays of forward, and of the gradients that arrive; the targets follow.
    """
    given, arriving, targets = np.split(np.arange(len(arrays)), np.cumsum(counts))
    forward = tuple(arrays[i] for i in given)
    initial, weights, _, lengths = _parts(sizes, forward)
    _, _, directions = _forward(sizes, x, forward)
    mask = _masks(sizes, len(x), lengths, x.dtype)
    g, *dlast = (arrays[i] for i in arriving)
    dx, *rest = (arrays[i] for i in targets)
    dinitial, dweights = rest[: sizes.states], rest[sizes.states :]
    back, n = STEPS[sizes.mode][1], 2 * sizes.count
    shape = (*x.shape[:2], sizes.sides * sizes.width)
    g = np.zeros(shape, x.dtype) if g is None else g
    for layer in reversed(range(sizes.layers)):
        below = np.zeros_like(directions[layer * sizes.sides].x)
        for side in range(sizes.sides):
            at = layer * sizes.sides + side
            d, (wx, wh) = directions[at], weights[2 * at : 2 * at + 2]
            own = g[..., side * sizes.width : (side + 1) * sizes.width]
            dh, *dcs = [np.zeros_like(initial[0][at]) if v is None else v[at] for v in dlast]
            dc = dcs[0] if dcs else None
            dgx, dgh = [], []
            for t, facts in zip(reversed(d.order), reversed(d.kept), strict=True):
                part = 1 if mask is None else mask[t]
                one, other, direct, dcell = back(part * (own[t] + dh), None if dc is None else part * dc, facts)
                dh = direct + other @ wh + (1 - part) * dh
                dc = None if dc is None else dcell + (1 - part) * dc
                dgx.append(one)
                dgh.append(other)
            order = slice(None, None, -1) if d.order.step > 0 else slice(None)
            whole, inner = np.stack(dgx[order]), np.stack(dgh[order])
            below += whole @ wx
            grads = (
                np.einsum("tbg,tbi->gi", whole, d.x), np.einsum("tbg,tbi->gi", inner, d.before),
                whole.sum((0, 1)), inner.sum((0, 1)),
            )  # fmt: skip
            for spot, value in zip((2 * at, 2 * at + 1, n + 2 * at, n + 2 * at + 1), grads, strict=True):
                if dweights[spot] is not None:
                    dweights[spot][...] = value
            for target, value in zip(dinitial, (dh, dc), strict=False):
                if target is not None:
                    target[at] = value
        g = below
    if dx is not None:
        dx[...] = g


def _sizes(c: Context) -> Sizes:
    sides = 2 if c.attr("is_bidirec", False) else 1
    return Sizes(c.attr("mode"), c.attr("num_layers", 1), sides, c.attr("hidden_size"), c.has("SequenceLength"))


def _infer(c: Context) -> None:
    x, sizes = c["Input"], _sizes(c)
    time, batch, features = x.shape
    states, weights = c.all("PreState"), c.all("WeightList")
    gates = GATES[sizes.mode] * sizes.width
    c.require(
        len(states) == sizes.states, f"rnn of mode {sizes.mode} takes {sizes.states} PreState.",
        expected=sizes.states, received=len(states),
    )  # fmt: skip
    shape = (sizes.count, batch, sizes.width)
    for s in states:
        c.require(
            len(s.shape) == 3 and all(-1 in (a, b) or a == b for a, b in zip(s.shape, shape, strict=True)),
            "PreState of rnn must have a row for each direction of each layer.", expected=list(shape),
            received=list(s.shape),
        )  # fmt: skip
    below = [features if i < sizes.sides else sizes.sides * sizes.width for i in range(sizes.count)]
    wanted = [s for n in below for s in ((gates, n), (gates, sizes.width))] + [(gates,)] * (2 * sizes.count)
    c.require(
        len(weights) == len(wanted), "WeightList of rnn has matrices first, then biases, two for each direction.",
        expected=f"{len(wanted)} tensors", received=len(weights),
    )  # fmt: skip
    for i, (w, shape_) in enumerate(zip(weights, wanted, strict=True)):
        c.require(
            len(w.shape) == len(shape_) and all(-1 in (a, b) or a == b for a, b in zip(w.shape, shape_, strict=True)),
            f"Number {i} in WeightList of rnn must fit its layer.", expected=list(shape_), received=list(w.shape),
        )  # fmt: skip
    fits(c, "SequenceLength", (batch,), "SequenceLength of rnn has a length for each sequence.")
    c.require(
        c.attr("is_test", False) or not c.attr("dropout_prob", 0.0), "rnn does no dropout between layers.",
        expected="dropout_prob 0, or is_test", received=c.attr("dropout_prob"),
        hint="layers.dropout between two rnn of one layer each does the same.",
    )  # fmt: skip
    c.set("Out", (time, batch, sizes.sides * sizes.width), x.dtype)
    for i in range(sizes.states):
        c.set("State", shape, x.dtype, (), i)
    c.set("DropoutState", (0,), np.uint8)
    c.set("Reserve", (0,), x.dtype)


@c_code("rnn")
def _rnn_in_c(c: Context) -> dict[str, Constant]:
    sizes, (time, batch, features) = _sizes(c), c["Input"].shape
    return {
        "TIME": time, "BATCH": batch, "FEATURES": features, "WIDTH": sizes.width, "LAYERS": sizes.layers,
        "SIDES": sizes.sides, "GATES": GATES[sizes.mode], "STATES": sizes.states, "IS_LSTM": int(sizes.mode == "LSTM"),
        "IS_GRU": int(sizes.mode == "GRU"), "IS_RELU": int(sizes.mode == "RNN_RELU"),
    }  # fmt: skip


def _arrays(b: Binder) -> list[Array]:
    lengths = [b["SequenceLength"]] if b.has("SequenceLength") else []
    return [*b.all("PreState"), *b.all("WeightList"), *lengths]


@op(
    "rnn",
    inputs={
        "Input: float[time, batch, features]": "",
        "PreState*: float[layers, batch, width]": "hidden states before the first step; for LSTM cells too",
        "WeightList*": "for each direction of each layer W [gates, features], R [gates, width]; then two biases each",
        "SequenceLength?: int[batch]": "steps of each sequence; results behind them are 0",
    },
    outputs={
        "Out": "[time, batch, width]: the states of the last layer, both directions side by side",
        "State*": "[layers, batch, width]: the last hidden states; for LSTM the last cells too",
        "DropoutState~": "not written; for programs of Paddle",
        "Reserve~": "not written; for programs of Paddle",
    },
    attrs={
        "dropout_prob": Attr("float", 0.0, "dropout between layers; 0 in training", check=check_rate),
        "is_bidirec": Attr("bool", False, "whether each layer runs against time, too"),
        "input_size": Attr("int", 10, "features of Input"),
        "hidden_size": Attr("int", 100, "width of the states", gt=0),
        "num_layers": Attr("int", 1, "how many layers", gt=0),
        "mode": Attr("string", doc="what a layer is", enum=tuple(GATES)),
        "seed": Attr("int", 0, "of dropout"),
        "is_test": Attr("bool", False, "whether dropout leaves nothing out"),
    },
    cost="Input[:2] * WeightList",
    infer=checked(_infer),
    grad=default_grad(
        "Input", "PreState", "WeightList", "SequenceLength", "Out@GRAD", "State@GRAD",
        wrt=["Input", "PreState", "WeightList"],
    ),
    dtype_slot="Input",
    dtypes=("float32", "float64"),
    host_only="runs step by step over time",
)  # fmt: skip
def rnn(b: Binder) -> None:
    """Runs layers over time: h' = tanh(W x + b + R h + b'); as an LSTM, a GRU or with relu by ``mode``.

    LSTM has the gates input, forget, candidate, output: c' = f · c + i · g, h' = o · tanh(c'). GRU has reset, update,
    candidate n = tanh(W x + b + r · (R h + b')): h' = z · h + (1 - z) · n.

    Example:
        >>> from fluidnb.testing import run_op
        >>> w = [np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1), np.zeros(1)]
        >>> given = {"Input": np.ones((2, 1, 1)), "PreState": [np.zeros((1, 1, 1))], "WeightList": w}
        >>> run_op("rnn", given, {"hidden_size": 1, "mode": "RNN_RELU"})["Out"].ravel()
        array([1., 1.])

    Source: Paddle's rnn_op; NVIDIA, cuDNN documentation.
    """
    states = b.outputs.get("State", ())
    last = [b.all("State")[i] if b.wants("State", i) else None for i in range(len(states))]
    b(run, _sizes(b), b["Out"], b["Input"], *_arrays(b), *last)


@grad_op("rnn_grad", dtype_slot="Input", host_only="runs step by step over time")
def rnn_grad(b: Binder) -> None:
    """Gradients by backpropagation through time; the states are computed again."""
    sizes, given = _sizes(b), _arrays(b)
    arriving = [b["Out@GRAD"], *(b.all("State@GRAD") or [None] * sizes.states)]
    targets = [b["Input@GRAD"]]
    for slot, count in (("PreState@GRAD", sizes.states), ("WeightList@GRAD", 4 * sizes.count)):
        targets += [b.all(slot)[i] if b.wants(slot, i) else None for i in range(count)]
    b(run_back, sizes, (len(given), len(arriving)), b["Input"], *given, *arriving, *targets)
