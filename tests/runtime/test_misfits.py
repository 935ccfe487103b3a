"""What shape rules let through, and programs that were changed after they were made: told by operator and slot."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.proto.desc import OpDesc


def clipped():
    """y = clip(x) with its gradient from dy."""
    program = fluid.Program()
    block = program.global_block()
    for name in ("x", "dy"):
        block.create_var(name=name, shape=[-1], dtype="float32")
    for name in ("y", "dx"):
        block.create_var(name=name, dtype="float32")
    block.append_op(type="clip", inputs={"X": "x"}, outputs={"Out": "y"}, attrs={"min": 0.0, "max": 1.0})
    ins, outs = {"X": ["x"], "Out@GRAD": ["dy"]}, {"X@GRAD": ["dx"]}
    block.desc.append_op(OpDesc("clip_grad", ins, outs, {"min": 0.0, "max": 1.0}))
    return program


def no_input(desc):
    desc.op(0).set_input("X", [])


def no_output(desc):
    desc.op(0).set_output("Out", [])


def no_gradient(desc):
    desc.op(1).set_input("Out@GRAD", [])


def nothing(desc):
    pass


@pytest.mark.parametrize(
    ("change", "dy", "said"),
    [
        (no_input, [1, 1, 1], r"Input X of clip not found\.\n  op:       op 0 \(clip\)"),
        (no_output, [1, 1, 1], r"output\(s\) of operator clip: Out is missing\.\n  op:       op 0 \(clip\)"),
        (no_gradient, [1, 1, 1], r"clip_grad lacks an input or an output\.\n  op:       op 1 \(clip_grad\)"),
        (nothing, [1, 1], r"operands of clip_grad do not fit together\.[\s\S]*Out@GRAD: dy  float32\[2\]"),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_misfits(change, dy, said, keep):
    program = clipped()
    change(program.desc.blocks[0])
    feed = {"x": np.ones(3, "float32"), "dy": np.array(dy, "float32")}
    with pytest.raises(FluidError, match=said):
        fluid.Executor().run(program, feed=feed, fetch_list=["dx"], scope=fluid.Scope(), keep_scopes=keep)
