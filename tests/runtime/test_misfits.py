"""Errors that shape rules do not find, and programs changed after they were made: operator and slot are named."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.proto.desc import OpDesc
from tests.tools.refused import refused


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
        (
            nothing,
            [1, 1],
            r"Input\(Out@GRAD\) of clip_grad does not have the shape and dtype of what clip computes\."
            r"[\s\S]*Out@GRAD: dy  float32\[2\]",
        ),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_misfits(change, dy, said, keep):
    program = clipped()
    change(program.desc.blocks[0])
    feed = {"x": np.ones(3, "float32"), "dy": np.array(dy, "float32")}
    with refused(FluidError, said):
        fluid.Executor().run(program, feed=feed, fetch_list=["dx"], scope=fluid.Scope(), keep_scopes=keep)


def loops() -> fluid.Program:
    """A loop in a loop."""
    with fluid.fresh() as (program, _):
        n = fluid.layers.fill_constant([1], "int64", 2)
        i = fluid.layers.zeros([1], "int64")
        around = fluid.layers.less_than(i, n)
        outer = fluid.layers.While(around)
        with outer.block():
            j = fluid.layers.zeros([1], "int64")
            more = fluid.layers.less_than(j, n)
            inner = fluid.layers.While(more)
            with inner.block():
                fluid.layers.increment(j)
                fluid.layers.less_than(j, n, cond=more)
            fluid.layers.increment(i)
            fluid.layers.less_than(i, n, cond=around)
    return program


@pytest.mark.parametrize(("block", "runs", "named"), [(1, 1, 1), (0, 0, 0), (1, 0, 0)])
@pytest.mark.parametrize("keep", [False, True])
def test_a_block_that_runs_itself_is_refused(block: int, runs: int, named: int, keep: bool) -> None:
    program = loops()
    (loop,) = [op for op in program.desc.blocks[block].ops if op.optype == "while"]
    loop.set_attr("sub_block", runs, loop.attr_type("sub_block"))
    with pytest.raises(FluidError, match=rf"Block {named} runs itself without end\.\n  op: +op \d+ \(while\)"):
        fluid.Executor(fluid.CPUPlace()).run(program, keep_scopes=keep, scope=fluid.Scope())


@pytest.mark.parametrize("names", [[], ["@EMPTY@"]])
def test_a_gradient_of_an_array_that_nobody_wants(names: list[str]) -> None:
    program = fluid.Program()
    block = program.global_block()
    with fluid.program_guard(program):
        x = fluid.layers.data("x", [2, 3], append_batch_size=False)
        array = fluid.layers.create_array("float32")
        fluid.layers.array_write(x, fluid.layers.zeros([1], "int64"), array)
        out, _ = fluid.layers.tensor_array_to_tensor(array)
    block.create_var(name="seed", shape=[2, 3], dtype="float32")
    ins = {"X": [array.name], "Out@GRAD": ["seed"]}
    block.desc.append_op(OpDesc("tensor_array_to_tensor_grad", ins, {"X@GRAD": names}, {"axis": 0, "use_stack": False}))
    given, scope = np.ones((2, 3), "float32"), fluid.Scope()
    (found,) = fluid.Executor(fluid.CPUPlace()).run(
        program, feed={"x": given, "seed": given}, fetch_list=[out.name], scope=scope
    )
    assert (found == given).all() and scope.find_var("@EMPTY@") is None
