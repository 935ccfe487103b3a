"""Our backward and optimizers on the forward parts of programs that real Paddle wrote give what real Paddle gave."""

from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.proto.desc import ProgramDesc

FOLDER = Path(__file__).parents[1] / "golden" / "backward"
optim, clip = fluid.optimizer, fluid.clip
#: program -> (optimizer, gradient clip)
MODELS = {
    "fit_a_line": (lambda: optim.SGD(0.05), None),
    "opt_momentum": (lambda: optim.Momentum(0.1, 0.9), None),
    "opt_adam": (lambda: optim.Adam(0.1), None),
    "opt_sgd_l2": (lambda: optim.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)), None),
    "opt_clip_gnorm": (lambda: optim.SGD(0.1), clip.GradientClipByGlobalNorm(0.5)),
    "digits_mlp": (lambda: optim.Adam(0.1), None),
}
#: Temporaries between gradient and parameter have other names there.
TEMPORARY = ("_generated_var_", "add_n_", "elementwise_", "squared_l2_norm_", "sqrt_", "fill_constant_", "sum_")


def rows(desc):
    """Each operator as (type, inputs, outputs, attributes), temporaries called by their order."""
    called = {}

    def name(n):
        return called.setdefault(n, f"t{len(called)}") if n.startswith(TEMPORARY) or "_decay_" in n else n

    out = []
    for op in desc.blocks[0].ops:
        slots = [
            {s: [name(n) for n in names] for s, names in side.items() if names and names != ["@EMPTY@"]}
            for side in (op.ins, op.outs)
        ]
        out.append((op.optype, *slots, op.attrs))
    return out


def forward_of(name):
    """The program without what its role says is backward or optimization."""
    desc = ProgramDesc.parse_from_string((FOLDER / f"{name}.pb").read_bytes())
    block = desc.blocks[0]
    block.remove_op(next(i for i, op in enumerate(block.ops) if op.attr("op_role") & 1), len(block.ops))
    used = {n for op in block.ops for n in (*op.input_arg_names(), *op.output_arg_names())}
    for unused in [n for n in block.vars if n not in used]:
        block.remove_var(unused)
    return fluid.Program(desc)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_operators_in_the_same_order(model):
    optimizer, gradient_clip = MODELS[model]
    want = rows(ProgramDesc.parse_from_string((FOLDER / f"{model}.pb").read_bytes()))
    program = forward_of(model)
    block = program.global_block()
    [loss] = next(op for op in block.ops if op.attr("op_role") == 256).output_arg_names
    with fluid.unique_name.guard(), fluid.program_guard(program, fluid.Program()):
        if gradient_clip is not None:
            clip.set_gradient_clip(gradient_clip)
        optimizer().minimize(block.var(loss))
    got = rows(program.desc)
    assert [r[:3] for r in got] == [r[:3] for r in want]
    for (op, _, _, ours), (_, _, _, theirs) in zip(got, want, strict=True):
        common = {
            n: v for n, v in ours.items() if n in theirs and n not in ("op_namescope", "str_value", "op_role_var")
        }
        assert common == {n: theirs[n] for n in common}, op
        if op.endswith("_grad") or op in ("sgd", "momentum", "adam"):
            assert ours.get("op_role_var", []) == theirs.get("op_role_var", []), op


@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_declared_alike(model):
    theirs = ProgramDesc.parse_from_string((FOLDER / f"{model}.pb").read_bytes()).blocks[0].vars
    program = forward_of(model)
    block = program.global_block()
    [loss] = next(op for op in block.ops if op.attr("op_role") == 256).output_arg_names
    with fluid.program_guard(program, fluid.Program()):
        fluid.backward.append_backward(block.var(loss))
    gradients = [n for n in block.desc.vars if n.endswith("@GRAD")]
    assert set(gradients) == {n for n in theirs if n.endswith("@GRAD")}
    for n in gradients:
        assert (block.var(n).shape, int(block.var(n).dtype)) == (tuple(theirs[n].shape()), theirs[n].dtype())
