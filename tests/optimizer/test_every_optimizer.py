"""Every optimizer of `fluid.optimizer`, new ones too: its class gives its operator what the operator updates."""

import inspect

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.testing import run_op

X = np.random.default_rng(0).normal(size=(3, 4, 3)).astype("float32")


def made(name):
    """An optimizer with the learning rate 0.1, and 0.5 for whatever else has no default."""
    cls = getattr(fluid.optimizer, name)
    parameters = inspect.signature(cls).parameters.values()
    return cls(**({p.name: 0.5 for p in parameters if p.default is p.empty} | {"learning_rate": 0.1}))


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.mark.parametrize("name", fluid.optimizer.SHORT)
def test_each_step_is_that_of_its_operator(name):
    with fluid.fresh():
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(fluid.layers.data("x", [3]), 2, bias_attr=False)))
        ops, [(param, grad)] = made(name).minimize(loss)
        step = ops[0]
        assert step.type == getattr(fluid.optimizer, name).type and step.output("ParamOut") == [param.name]
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        read = {slot: step.input(slot)[0] for slot in step.input_names if slot != "Grad" and step.input(slot)}
        written = {slot: step.output(slot)[0] for slot in step.output_names if step.output(slot)}
        assert set(written.values()) <= set(read.values()), "an accumulator is not updated in place"
        attrs = {key: step.attr(key) for key in step.attr_names if not key.startswith("op_")}
        for x in X:
            before = {slot: value(variable) for slot, variable in read.items()}
            (g,) = exe.run(feed={"x": x}, fetch_list=[grad])
            want = run_op(step.type, before | {"Grad": g}, attrs, outputs=list(written))
            assert abs(want["ParamOut"] - before["Param"]).max() > 0
            for slot, variable in written.items():
                np.testing.assert_allclose(value(variable), want[slot], rtol=1e-5, atol=1e-7, err_msg=slot)
