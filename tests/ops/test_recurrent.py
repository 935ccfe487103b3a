"""LSTMs and GRUs, against numpy one sequence and one row at a time."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values
from tests.ops.sequence_cases import rows, split
from tests.tools.refused import refused

ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}
LENGTHS = {"": [[2, 3, 1]], "/empty": [[3, 0, 2]], "/one": [[1]], "/same": [[2, 2]]}
WIDTH, STATE = 2, 3


def parts(x, count):
    return np.split(x, count, -1)


def lstm_step(x, state, cell, inputs, attrs):
    """One row: new state, cell and hidden state."""
    gate, out, candidate = (
        ACTIVATIONS[attrs.get(name + "_activation", usual)]
        for name, usual in (("gate", "sigmoid"), ("cell", "tanh"), ("candidate", "tanh"))
    )
    bias = inputs["Bias"][0]
    c, i, f, o = parts(x + state @ inputs["Weight"] + bias[: len(x)], 4)
    see_i, see_f, see_o = parts(bias[len(x) :], 3) if attrs.get("use_peepholes", True) else (0, 0, 0)
    cell = gate(f + see_f * cell) * cell + gate(i + see_i * cell) * candidate(c)
    if attrs.get("cell_clip"):
        cell = np.clip(cell, -attrs["cell_clip"], attrs["cell_clip"])
    hidden = gate(o + see_o * cell) * out(cell)
    if "ProjWeight" not in inputs:
        return hidden, cell
    state = ACTIVATIONS[attrs.get("proj_activation", "tanh")](hidden @ inputs["ProjWeight"])
    if attrs.get("proj_clip"):
        state = np.clip(state, -attrs["proj_clip"], attrs["proj_clip"])
    return state, cell


def along(x, lengths, first, step, reverse):
    """Run a step along each sequence; gives an array for each thing that goes on."""
    found = []
    for sequence, *state in zip(split(x, lengths), *first, strict=True):
        done = []
        for row in sequence[::-1] if reverse else sequence:
            state = step(row, *state)
            done.append(state)
        found += done[::-1] if reverse else done
    return [(np.array(column).reshape(len(x), -1), lengths) for column in zip(*found, strict=True)]


def lstm(lengths, attrs, initial, projected=False, seed=0, width=WIDTH):
    n, count, state = rows(lengths), len(lengths[0]), STATE if projected else width
    inputs = {
        "Input": (values(n, 4 * width, seed=seed), lengths), "Weight": values(state, 4 * width, seed=seed + 1),
        "Bias": values(1, (7 if attrs.get("use_peepholes", True) else 4) * width, seed=seed + 2),
    }  # fmt: skip
    if projected:
        inputs["ProjWeight"] = values(width, STATE, seed=seed + 3)
    first = np.zeros((count, state)), np.zeros((count, width))
    if initial:
        first = values(count, state, seed=seed + 4), values(count, width, seed=seed + 5)
        inputs |= {"H0": first[0], "C0": first[1]}
    done = along(
        inputs["Input"][0], lengths, first, lambda x, h, c: lstm_step(x, h, c, inputs, attrs), attrs.get("is_reverse")
    )
    slot = "Projection" if projected else "Hidden"
    outputs = dict(zip((slot, "Cell"), done, strict=True))
    return {"inputs": inputs, "attrs": attrs, "outputs": outputs, "loss": (slot,)}


#: Which of three switches are on: every pair of values of two of them occurs.
SWITCHES = [(False, False, False), (False, True, True), (True, False, True), (True, True, False)]


def quick(case, whole=False):
    """The gradients of parameters are checked in a few cases only: each number of them takes five runs."""
    wanted = ("Input", "H0", "C0")
    return case if whole else case | {"grads": tuple(s for s in wanted if s in case["inputs"])}


def lstm_cases(op, projected):
    for name, lengths in LENGTHS.items():
        for reverse, peepholes, initial in SWITCHES:
            attrs = {"is_reverse": reverse, "use_peepholes": peepholes}
            yield f"{op}/r{reverse:d}p{peepholes:d}{name}", quick(lstm(lengths, attrs, initial, projected), not name)
    for kind in ("gate", "cell", "candidate") + ("proj",) * projected:
        for activation in ACTIVATIONS:
            attrs = {f"{kind}_activation": activation}
            yield f"{op}/{kind}_{activation}", quick(lstm([[2, 1]], attrs, False, projected, 7))


family(globals(), Differentiable, dict(lstm_cases("lstm", False)))
family(globals(), Differentiable, dict(lstm_cases("lstmp", True)))
family(
    globals(),
    Differentiable,
    {
        # Paddle 2.6.2's own gradient is 0 for three gates at this width, so central differences decide
        "lstm/width_8": lstm([[2, 1]], {}, True, width=8) | {"grads": ("Input", "Bias", "H0", "C0")},
        "lstmp/cell_clip": lstm([[2, 1]], {"cell_clip": 0.25}, True, True),
        "lstmp/proj_clip": lstm([[2, 1]], {"proj_clip": 0.125, "is_reverse": True}, True, True),
        "lstmp/both_clips": lstm([[2, 1]], {"cell_clip": 0.25, "proj_clip": 0.125}, False, True),
    },
)


def gru_step(x, h, weight, bias, gate, activation, origin):
    width = len(h)
    flat = weight.ravel()
    to_gates, to_candidate = (
        flat[: 2 * width**2].reshape(width, 2 * width), flat[2 * width**2 :].reshape(width, width),
    )  # fmt: skip
    x = x + bias[0]
    u, r = parts(ACTIVATIONS[gate](x[: 2 * width] + h @ to_gates), 2)
    c = ACTIVATIONS[activation](x[2 * width :] + (r * h) @ to_candidate)
    return (u * h + (1 - u) * c,) if origin else ((1 - u) * h + u * c,)


def gru(lengths, attrs, initial, bias=True):
    n, count = rows(lengths), len(lengths[0])
    weight, b = values(WIDTH, 3 * WIDTH, seed=1), values(1, 3 * WIDTH, seed=2) * bias
    inputs = {"Input": (values(n, 3 * WIDTH), lengths), "Weight": weight}
    first = values(count, WIDTH, seed=3) * initial
    inputs |= {"Bias": b} if bias else {}
    inputs |= {"H0": first} if initial else {}
    kinds = attrs.get("gate_activation", "sigmoid"), attrs.get("activation", "tanh"), attrs.get("origin_mode")
    done = along(
        inputs["Input"][0], lengths, [first], lambda x, h: gru_step(x, h, weight, b, *kinds), attrs.get("is_reverse")
    )
    return {"inputs": inputs, "attrs": attrs, "outputs": {"Hidden": done[0]}, "loss": ("Hidden",)}


def gru_cases():
    for name, lengths in LENGTHS.items():
        for reverse, origin, initial in SWITCHES:
            attrs = {"is_reverse": reverse, "origin_mode": origin}
            yield f"gru/r{reverse:d}o{origin:d}{name}", quick(gru(lengths, attrs, initial), not name)
    for kind in ("activation", "gate_activation"):
        for activation in ACTIVATIONS:
            yield f"gru/{kind}_{activation}", quick(gru([[2, 1]], {kind: activation}, False))
    yield "gru/no_bias", gru([[2, 1]], {}, True, bias=False)


family(globals(), Differentiable, dict(gru_cases()))


def gru_unit(activation, gate, origin, bias=True):
    x, h, weight = values(3, 3 * WIDTH), values(3, WIDTH, seed=3), values(WIDTH, 3 * WIDTH, seed=1)
    b = values(1, 3 * WIDTH, seed=2) * bias
    names = list(ACTIVATIONS)
    numbers = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}
    kinds = names[gate], names[activation], origin
    out = np.stack([gru_step(*row, weight, b, *kinds)[0] for row in zip(x, h, strict=True)])
    inputs = {"Input": x, "HiddenPrev": h, "Weight": weight} | ({"Bias": b} if bias else {})
    attrs = {
        "activation": numbers[names[activation]], "gate_activation": numbers[names[gate]], "origin_mode": origin,
    }  # fmt: skip
    return {"inputs": inputs, "attrs": attrs, "outputs": {"Hidden": out}, "loss": ("Hidden",)}


family(
    globals(),
    Differentiable,
    {
        f"gru_unit/{list(ACTIVATIONS)[a]}_{list(ACTIVATIONS)[g]}_{origin:d}": gru_unit(a, g, origin)
        for a, g in ((1, 0), (0, 1), (2, 3), (3, 2))
        for origin in (False, True)
    }
    | {"gru_unit/no_bias": gru_unit(1, 0, False, bias=False)},
)


def lstm_unit(bias):
    x, old = values(3, 4 * WIDTH), values(3, WIDTH, seed=1)
    i, f, o, g = parts(x, 4)
    sigmoid = ACTIVATIONS["sigmoid"]
    cell = sigmoid(f + bias) * old + sigmoid(i) * np.tanh(g)
    return {
        "inputs": {"X": x, "C_prev": old}, "attrs": {"forget_bias": bias},
        "outputs": {"C": cell, "H": sigmoid(o) * np.tanh(cell)},
    }  # fmt: skip


family(
    globals(),
    Differentiable,
    {
        f"lstm_unit/{'_'.join(loss)}{i}": lstm_unit(bias) | {"loss": loss}
        for i, bias in enumerate((0.0, 0.5))
        for loss in (("C",), ("H",), ("C", "H"))
    },
)


def test_lstm_unit_with_a_gradient_of_one_output_alone():
    case = lstm_unit(0.5)
    values_ = case["inputs"] | {"C": case["outputs"]["C"], "H": case["outputs"]["H"]}
    g, nothing = values(3, WIDTH, seed=9), np.zeros((3, WIDTH))
    wanted = ["X@GRAD", "C_prev@GRAD"]
    for slot, other in (("C", "H"), ("H", "C")):
        alone = run_op("lstm_unit_grad", values_ | {slot + "@GRAD": g}, case["attrs"], wanted)
        both = run_op("lstm_unit_grad", values_ | {slot + "@GRAD": g, other + "@GRAD": nothing}, case["attrs"], wanted)
        for name in wanted:
            np.testing.assert_array_equal(alone[name], both[name])
            assert np.abs(alone[name]).max() > 0


GOOD = lstm([[2, 3, 1]], {}, True)["inputs"]
BARE = lstm([[2, 3, 1]], {}, False)["inputs"]
GRU = gru([[2, 3, 1]], {}, True)["inputs"]
UNIT = gru_unit(1, 0, False)["inputs"]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("lstm", GOOD | {"Input": GOOD["Input"][0]}, {}, "does not contain LoD information"),
        ("lstm", BARE | {"Weight": values(3, 8)}, {}, r"must be \[width, 4 · width\]"),
        ("lstm", GOOD | {"Weight": values(2, 12)}, {}, "must lead from the state"),
        ("lstm", GOOD, {"use_peepholes": False}, "should be 4 · width"),
        ("lstm", GOOD | {"Bias": values(1, 8)}, {}, "should be 7 · width"),
        ("lstm", {s: v for s, v in GOOD.items() if s != "C0"}, {}, "both or not at all"),
        ("lstm", GOOD | {"H0": values(2, 2)}, {}, "a row for each sequence"),
        ("lstmp", GOOD | {"ProjWeight": values(3, 2)}, {}, "must lead from the cells"),
        ("gru", GRU | {"Input": GRU["Input"][0]}, {}, "does not contain LoD information"),
        ("gru", GRU | {"Weight": values(3, 6)}, {}, r"must be \[width, 3 · width\]"),
        ("gru", GRU | {"Bias": values(1, 5)}, {}, "a row for the three gates"),
        ("gru", GRU | {"H0": values(2, 2)}, {}, "a row for each sequence"),
        ("gru_unit", UNIT | {"HiddenPrev": values(2, 2)}, {}, "a row for each row"),
        ("lstm_unit", {"X": values(3, 7), "C_prev": values(3, 2)}, {}, "four times"),
        ("lstm_unit", {"X": values(3), "C_prev": values(3, 2)}, {}, r"must have the shape \[batch, 4 · width\]"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


def test_an_activation_that_there_is_not():
    with pytest.raises(OpValueError, match="enum"):
        run_op("lstm", GOOD, {"gate_activation": "softmax"})


@pytest.mark.parametrize("op", ["lstm", "gru"])
def test_only_empty_sequences(op):
    inputs = GOOD if op == "lstm" else GRU
    width = inputs["Input"][0].shape[1]
    first = {s: v[:2] for s, v in inputs.items() if s in ("H0", "C0")}
    got = run_op(op, inputs | first | {"Input": (np.zeros((0, width)), [[0, 0]])})
    assert got["Hidden"].array.shape == (0, WIDTH)


@pytest.mark.parametrize(("name", "gates"), [("dynamic_lstm", 4), ("dynamic_gru", 3)])
def test_run_after_run_gives_the_same_whatever_lengths_came_between(name, gates):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.layers.data("x", [gates * WIDTH], lod_level=1)
        x.stop_gradient = False
        size = gates * WIDTH if name == "dynamic_lstm" else WIDTH
        made = getattr(fluid.layers, name)(x, size)
        hidden = made[0] if name == "dynamic_lstm" else made
        (dx,) = fluid.gradients([hidden], [x])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)

    def ran(lengths):
        rows = values(sum(lengths), gates * WIDTH).astype("float32")
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())}
        return exe.run(main, feed=feed, fetch_list=[hidden, dx], scope=scope, return_numpy=False)

    first = {lengths: [np.array(v) for v in ran(list(lengths))] for lengths in ((2, 3, 1), (4,), (0, 2))}
    for lengths in ((2, 3, 1), (2, 3, 1), (4,), (2, 3, 1), (4,), (0, 2), (0, 2), (2, 3, 1)):
        for got, want in zip(ran(list(lengths)), first[lengths], strict=True):
            np.testing.assert_array_equal(np.array(got), want)
            assert np.abs(want).max() > 0
