"""Every recorded case of real PaddlePaddle, run by both walkers and with gradients of our own making."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.op import make_grad
from fluidnb.proto.desc import ProgramDesc
from fluidnb.runtime import Executor, Scope
from fluidnb.testing.compare import assert_same
from tests.ops.goldens import cases

CASES = {case.id: case for case in cases()}
DIFFERENTIABLE = [c.id for c in CASES.values() if c.gradients() and c.check == "close"]
#: Attributes that Paddle adds to an operator by itself: they say how to compute it on other hardware.
ADDED = {"use_mkldnn", "use_cudnn", "use_quantizer", "mkldnn_data_type", "Scale_x", "Scale_y", "Scale_out",
         "force_fp32_output", "scale_x", "scale_y", "scale_out", "with_quant_attr"}  # fmt: skip


def test_there_are_cases():
    assert len(CASES) >= 152 and len(DIFFERENTIABLE) > 90


@pytest.mark.parametrize("id", CASES)
def test_the_recorded_program(id):
    case = CASES[id]
    program = fluid.Program.parse_from_string(case.program)
    names = [f["var"] for f in case.fetches]
    exe, scope = Executor(), Scope()
    runs = [
        exe.run(program, feed=case.feed(), fetch_list=names, scope=scope, return_numpy=False, keep_scopes=keep)
        for keep in (False, False, False, True)
    ]
    for row, value in zip(case.fetches, runs[0], strict=True):
        case.compare(value, row)
    for how, values in zip(("again", "once more", "by the machine"), runs[1:], strict=True):
        assert_same(dict(zip(names, runs[0], strict=True)), dict(zip(names, values, strict=True)), how)


@pytest.mark.parametrize("id", DIFFERENTIABLE)
def test_gradients_of_our_own(id):
    case = CASES[id]
    desc = ProgramDesc.parse_from_string(case.program)
    desc.block(0).remove_op(case.forward_ops, desc.block(0).op_size())
    program = fluid.Program.parse_from_string(desc.serialize_to_string())
    block = program.global_block()
    cotangents = [f["var"] for f in case.feeds if f["var"].endswith("_cot")]
    wrt = case.gradients()
    for name in wrt.values():
        block.var(name).stop_gradient = False
    for row in case.feeds:
        if not block.has_var(row["var"]):
            block.create_var(name=row["var"], shape=row["shape"], dtype=row["dtype"])
    with fluid.program_guard(program):
        made = fluid.gradients(
            [block.var(n.removesuffix("_cot")) for n in cotangents or ["loss"]],
            [block.var(n) for n in wrt.values()],
            [block.var(n) for n in cotangents] or None,
        )
    values = Executor().run(program, feed=case.feed(), fetch_list=made, scope=Scope(), return_numpy=False)
    rows = {f["var"]: f for f in case.fetches}
    for name, value in zip(wrt, values, strict=True):
        case.compare(value, rows[name])


@pytest.mark.parametrize("id", [i for i in DIFFERENTIABLE if CASES[i].forward_ops == 1])
def test_our_gradient_operators_have_the_slots_and_attributes_of_paddles(id):
    """Real Paddle gives a gradient operator no defaults: what its kernel needs must be in its description."""
    ops = ProgramDesc.parse_from_string(CASES[id].program).block(0).ops
    made, recorded = make_grad(ops[0]), ops[1:]
    assert [m.optype for m in made] == [r.optype for r in recorded]
    for ours, theirs in zip(made, recorded, strict=True):
        for mine, paddles in ((ours.ins, theirs.ins), (ours.outs, theirs.outs)):
            assert {s for s, n in mine.items() if n} == {s for s, n in paddles.items() if n}
        for name, value in theirs.attrs.items():
            if name not in ADDED and not name.startswith("op_"):
                assert ours.attrs[name] == value, name
                assert ours.attr_type(name) == theirs.attr_type(name), name


def test_a_dropout_keeps_or_drops():
    for case in CASES.values():
        if case.check == "dropout":
            program = fluid.Program.parse_from_string(case.program)
            out, mask = Executor().run(program, feed=case.feed(), fetch_list=["out_Out", "out_Mask"], scope=Scope())
            x, stays = case.array(case.feeds[0]["key"]), mask.astype(bool)
            assert (out[~stays] == 0).all() and np.ptp(out[stays] / x[stays]) < 1e-9
