"""Example programs of the lesson on backward, and the forward part of a user's program."""

from collections.abc import Callable
from dataclasses import dataclass

from fluidnb import layers
from fluidnb.errors import NotFound
from fluidnb.op import GRAD, get_op, has_op
from fluidnb.program import OpRole, Program, Variable
from fluidnb.program.constants import role_of
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType
from fluidnb.viz.lessons.common import isolated_programs


@dataclass(frozen=True, slots=True)
class Example:
    """An example program."""

    words: str  # what it shows
    build: Callable[[], Variable]  # appends its operators and returns its loss


def _named(variable: Variable, name: str) -> Variable:
    return variable.block.rename_var(variable.name, name)


def _shared() -> Variable:
    x, y = layers.data("x", [4]), layers.data("y", [1])
    h = _named(layers.fc(x, 3, act="tanh", bias_attr=False), "h")
    left, right = _named(layers.square(h), "left"), _named(layers.scale(h, 2.0), "right")
    both = _named(left + right, "both")
    guess = _named(layers.fc(both, 1, bias_attr=False), "guess")
    _named(layers.reduce_max(both), "largest")
    return _named(layers.mean(_named(layers.square(_named(guess - y, "error")), "cost")), "loss")


def _loop() -> Variable:
    x, limit = layers.data("x", [1, 3], append_batch_size=False), layers.fill_constant([1], "int64", 4)
    w = layers.create_parameter([3, 3], "float32", name="w")
    h, step = _named(layers.scale(x, 1.0), "h"), _named(layers.zeros([1], "int64"), "step")
    more = _named(layers.less_than(step, limit), "more")
    with layers.While(more).block():
        layers.assign(layers.tanh(layers.mul(h, w)), h)
        layers.increment(step)
        layers.less_than(step, limit, cond=more)
    return _named(layers.mean(h), "loss")


def _recurrent() -> Variable:
    x = layers.data("x", [5, 2, 3], append_batch_size=False)
    start = _named(layers.zeros([2, 4], "float32"), "start")
    rnn = layers.StaticRNN()
    with rnn.step():
        word, before = rnn.step_input(x), rnn.memory(init=start)
        hidden = layers.fc([word, before], 4, act="tanh", bias_attr=False)
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    states = rnn()
    assert isinstance(states, Variable), "of one output"
    return _named(layers.mean(states), "loss")


#: name -> program
EXAMPLES = {
    "shared": Example("h is read twice, so its gradient is a sum; y needs none; largest has no consumer.", _shared),
    "loop": Example("A while loop: a gradient block runs through it in reverse and sums the gradient of w.", _loop),
    "recurrent": Example("A recurrent network of equal steps: a gradient block for its step net.", _recurrent),
}


def example(name: str) -> tuple[Program, Variable]:
    """Builds an example program."""
    with isolated_programs() as (main, _):
        return main, EXAMPLES[name].build()


def forward_part(program: Program) -> Program:
    """A copy of a program without backward and optimizer operators and the variables that only these write."""
    copy = program.clone()
    block = copy.global_block()
    written: set[str] = set()
    for index in range(len(block.desc.ops) - 1, -1, -1):
        op = block.desc.ops[index]
        if role_of(op) != "forward":
            written.update(op.output_arg_names())
            block.remove_op(index)
    used = {name for b in copy.desc.blocks for op in b.ops for name in (*op.input_arg_names(), *op.output_arg_names())}
    for name in written - used:
        var = block.desc.vars.get(name)
        if var is not None and not var.persistable():
            block.remove_var(name)
    return copy


def find_loss(program: Program, name: str | None = None) -> str:
    """Finds the loss of a program, by name if it is given."""
    block = program.global_block()
    if name is not None and not block.desc.has_var(name):
        raise NotFound(f"the program has no variable {name}.", received=name, hint="%fluid show lists them.")
    loss = name or likely_loss(program)
    if loss is not None:
        return loss
    raise NotFound(
        "There is no loss in this program.", expected="one float that is computed from the rest",
        received=f"{len(block.desc.ops)} operators",
        hint="layers.mean() creates one; --loss NAME selects one; --example shared shows an example.",
    )  # fmt: skip


def likely_loss(program: Program) -> str | None:
    """The loss of a program: where backward began, else the last float that nothing reads; None without one."""
    block = program.global_block()
    read = {n for op in block.desc.ops if role_of(op) == "forward" for n in op.input_arg_names()}
    loss = None
    for op in block.desc.ops:
        role = op.attrs.get("op_role", 0)
        if role & OpRole.Loss and role & OpRole.Backward:
            return op.output_arg_names()[0].partition(GRAD)[0]
        if role_of(op) == "forward" and has_op(op.optype) and get_op(op.optype).grad is not None:
            loss = next((n for n in op.output_arg_names() if n not in read and _is_one_float(block.desc, n)), loss)
    return loss


def _is_one_float(block: object, name: str) -> bool:
    var = block.find_var_recursive(name)  # type: ignore[attr-defined]
    if var is None or var.type() != VarType.LOD_TENSOR:
        return False
    return tuple(var.shape()) in ((), (1,)) and dtypes.is_floating(var.dtype())
