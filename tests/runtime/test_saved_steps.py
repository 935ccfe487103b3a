"""The copies that the replay makes of an iteration for its gradient: of values, not of what only gives a shape."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.program.constants import SHAPES_ONLY
from fluidnb.runtime.compile.lowering import LoweredBlock
from fluidnb.runtime.compile.saved_iterations import saved_names
from fluidnb.testing import run_op
from tests.layers.walkers import both

L = fluid.layers
NOTHING = np.full((2, 3), np.nan)

#: Inputs and attributes of the gradient operators that look at shapes; what they must not look at is not a number.
LOOKS = {
    "concat_grad": ({"X": [NOTHING, NOTHING], "Out@GRAD": np.ones((4, 3))}, {"axis": 0}),
    "elementwise_add_grad": ({"X": NOTHING, "Y": NOTHING[0], "Out@GRAD": np.ones((2, 3))}, {"axis": -1}),
    "elementwise_sub_grad": ({"X": NOTHING, "Y": NOTHING[0], "Out@GRAD": np.ones((2, 3))}, {"axis": -1}),
    "mean_grad": ({"X": NOTHING, "Out@GRAD": np.ones(1)}, {}),
    "reduce_mean_grad": ({"X": NOTHING, "Out@GRAD": np.ones(3)}, {"dim": [0]}),
    "reduce_sum_grad": ({"X": NOTHING, "Out@GRAD": np.ones(3)}, {"dim": [0]}),
    "reshape_grad": ({"X": NOTHING, "Out@GRAD": np.ones(6)}, {"shape": [6]}),
    "transpose_grad": ({"X": NOTHING, "Out@GRAD": np.ones((3, 2))}, {"axis": [1, 0]}),
}


@pytest.mark.parametrize("type", sorted(SHAPES_ONLY))
def test_gradients_that_look_at_shapes_do_not_look_at_values(type):
    inputs, attrs = LOOKS[type]
    wanted = [slot + "@GRAD" for slot in ("X", "Y") if slot in inputs]
    outs = run_op(type, inputs, attrs, wanted)
    arrays = [np.asarray(a) for slot in wanted for a in (outs[slot] if isinstance(outs[slot], list) else [outs[slot]])]
    assert len(arrays) >= len(wanted) and all(a.size and np.isfinite(a).all() for a in arrays)


def test_a_step_keeps_values_and_no_more():
    with fluid.fresh():
        x = L.data("x", [5, 2, 3], append_batch_size=False)
        x.stop_gradient = False
        rnn = L.StaticRNN()
        with rnn.step():
            before = rnn.memory(shape=[-1, 3], batch_ref=x)
            summed = L.elementwise_add(rnn.step_input(x), before)
            hidden = L.tanh(summed)
            rnn.update_memory(before, hidden)
            rnn.output(hidden)
        (dx,) = fluid.gradients([L.reduce_sum(rnn())], [x])
        main = fluid.default_main_program()
        blocks = [LoweredBlock(block) for block in main.desc.blocks]
        kept = saved_names(blocks)[main.global_block().ops[1].block_attr("sub_block").idx]
        assert hidden.name in kept and summed.name not in kept
        (slope,) = both([dx], x=np.zeros((5, 2, 3), "float32"))
        np.testing.assert_allclose(slope[:, 0, 0], [5, 4, 3, 2, 1])
