"""cudnn_lstm beside an LSTM written out gate by gate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.testing import OpTest, run_op
from fluidnb_kernels.rnn.cudnn_lstm import weight_size

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def written_out(x: Array, h0: Array, c0: Array, w: Array, layers: int, sides: int) -> tuple[Array, Array, Array]:
    """Results, last hidden states and last cells; biases lie behind all matrices."""
    width, taken = h0.shape[2], 0

    def take(*shape: int) -> Array:
        nonlocal taken
        taken += int(np.prod(shape))
        return w[taken - int(np.prod(shape)) : taken].reshape(shape)

    matrices = []
    for i in range(layers * sides):
        below = x.shape[2] if i < sides else sides * width
        matrices.append((take(4, width, below), take(4, width, width)))
    biases = [take(2, 4, width).sum(0) for _ in matrices]
    assert taken == len(w)
    last_h, last_c = h0.copy(), c0.copy()
    for layer in range(layers):
        found = np.zeros((*x.shape[:2], sides * width))
        for side in range(sides):
            i = layer * sides + side
            (below, state), h, c = matrices[i], h0[i], c0[i]
            for t in range(len(x))[:: -1 if side else 1]:
                z = [x[t] @ below[k].T + h @ state[k].T + biases[i][k] for k in range(4)]
                c = sigmoid(z[1]) * c + sigmoid(z[0]) * np.tanh(z[2])
                h = sigmoid(z[3]) * np.tanh(c)
                found[t, :, side * width : (side + 1) * width] = h
            last_h[i], last_c[i] = h, c
        x = found
    return x, last_h, last_c


def operands(layers: int, sides: int, time: int = 3, width: int = 3) -> dict[str, Array]:
    shape = layers * sides, 2, width
    size = weight_size(4, width, layers, sides)
    given = {"Input": (time, 2, 4), "InitH": shape, "InitC": shape, "W": (size,)}
    return {slot: RNG.uniform(-0.7, 0.7, sizes) for slot, sizes in given.items()}


class TestCudnnLstm(OpTest):
    op_type = "cudnn_lstm"

    def setUp(self) -> None:
        self.inputs = operands(2, 2)
        self.attrs = {"hidden_size": 3, "num_layers": 2, "is_bidirec": True, "input_size": 4}

    @pytest.mark.parametrize(("layers", "sides"), [(1, 1), (2, 1), (1, 2), (2, 2)])
    def test_output_and_grad(self, layers: int, sides: int) -> None:
        self.inputs = operands(layers, sides)
        self.attrs = {"hidden_size": 3, "num_layers": layers, "is_bidirec": sides == 2, "input_size": 4}
        out, last_h, last_c = written_out(*self.inputs.values(), layers, sides)
        self.outputs = {"Out": out, "last_h": last_h, "last_c": last_c}
        self.check_output()
        self.check_grad(["Input", "InitH", "InitC", "W"], ["Out", "last_h", "last_c"])

    def test_grad_with_dropout(self) -> None:
        self.inputs, self.outputs = operands(3, 1), {}
        self.attrs = {"hidden_size": 3, "num_layers": 3, "dropout_prob": 0.5, "seed": 9}
        self.check_grad(["Input", "W"], ["Out"])

    def test_one_step(self) -> None:
        self.inputs = operands(1, 2, time=1)
        self.attrs = {"hidden_size": 3, "is_bidirec": True, "dropout_prob": 0.5, "is_test": True}
        out, last_h, last_c = written_out(*self.inputs.values(), 1, 2)
        self.outputs = {"Out": out, "last_h": last_h, "last_c": last_c}
        self.check_output()


def test_dropout_leaves_out_between_layers_alone() -> None:
    attrs = {"hidden_size": 3, "num_layers": 2, "dropout_prob": 0.25, "seed": 4}
    given = operands(2, 1, time=200)
    found = run_op("cudnn_lstm", given, attrs)
    factors = np.asarray(found["Reserve"])
    assert factors.shape == (1, 200, 2, 3) and set(np.unique(factors)) == {0, 1 / 0.75}
    assert abs((factors == 0).mean() - 0.25) < 0.05
    whole = run_op("cudnn_lstm", given, {**attrs, "is_test": True})
    assert np.asarray(whole["Reserve"]).size == 0
    np.testing.assert_array_equal(found["last_h"][0], whole["last_h"][0])  # the first layer gets all of its input
    assert np.abs(np.asarray(found["Out"]) - np.asarray(whole["Out"])).max() > 1e-3


def test_the_layer_learns_to_add() -> None:
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 5
        x = fluid.layers.data("x", [6, 8, 2], append_batch_size=False)
        y = fluid.layers.data("y", [8, 1], append_batch_size=False)
        state = fluid.layers.fill_constant([2, 8, 10], "float32", 0.0)
        out, last_h, _ = fluid.layers.lstm(x, state, state, 6, 10, 1, is_bidirec=True)
        assert tuple(out.shape) == (6, 8, 20) and tuple(last_h.shape) == (2, 8, 10)
        guess = fluid.layers.fc(fluid.layers.reduce_mean(out, dim=0), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, y))
        fluid.optimizer.Adam(0.02).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        rng, losses = np.random.default_rng(1), []
        for _ in range(80):
            given = rng.uniform(-1, 1, (6, 8, 2)).astype("float32")
            feed = {"x": given, "y": given.sum((0, 2))[:, None] / 3}
            losses.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
        assert np.mean(losses[-10:]) < 0.2 * np.mean(losses[:10])
