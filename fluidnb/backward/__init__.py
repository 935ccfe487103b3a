"""Backward: rewrite a program so that it computes gradients too.

>>> x = fluid.layers.data("x", [13])
>>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
>>> pairs = fluid.backward.append_backward(loss)
>>> [(p.name, g.name) for p, g in pairs]
[('fc_0.w_0', 'fc_0.w_0@GRAD'), ('fc_0.b_0', 'fc_0.b_0@GRAD')]
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any

from fluidnb.arguments import Rule, checked
from fluidnb.backward.emit import Callback, all_or_nothing, emit, free_name
from fluidnb.backward.path import Wanted, dependents, is_floating, names_of
from fluidnb.backward.recompute import recompute
from fluidnb.backward.walk import Part, Walk
from fluidnb.errors import NotBuiltYet, OpTypeError, OpValueError, typed
from fluidnb.op import GRAD, check_desc, get_op
from fluidnb.program import Block, Parameter, Variable, layer_calls, origin
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import OpDesc
from fluidnb.utils.garbage import collector_paused
from fluidnb.utils.source_location import warn
from fluidnb.values import dtypes

__all__ = ["all_or_nothing", "append_backward", "calc_gradient", "gradients"]

Names = Iterable[Variable | str]

#: The variable that training minimizes.
Loss = Annotated[
    Variable,
    Rule(
        "a Variable",
        hint="for example layers.mean(cost); program.global_block().var(name) gives the Variable of a name.",
    ),
]


@checked
def append_backward(
    loss: Loss, parameter_list: Names | None = None, no_grad_set: Names | None = None,
    callbacks: Sequence[Callback] | None = None, checkpoints: Names | None = None,
) -> list[tuple[Parameter, Variable]]:  # fmt: skip
    """Append the operators that compute the gradient of a loss with respect to the parameters.

    Every variable ``x`` on the way gets a gradient ``x@GRAD``; where several operators read ``x`` their contributions
    are summed. A second call on the same program gives its gradients new names.

    Args:
        loss: the variable to differentiate, shape [1] or a scalar, in the global block.
        parameter_list: parameters, other variables, or names; None for all trainable parameters.
        no_grad_set: variables or names that get no gradient and propagate none, beside those with ``stop_gradient``.
        callbacks: ``callback(block, context)`` is called after each gradient operator, with ``context`` mapping the
            name of a gradient to the name of its variable; for example `error_clip_callback`.
        checkpoints: variables or names that are kept until their gradients need them. What lies between them is
            computed a second time: less memory, more time. None keeps everything.

    Returns:
        (parameter, gradient) for each parameter on which the loss depends, in the order of ``parameter_list``, else in
        that of the program.

    Raises:
        OpValueError: the loss is not one float, nothing computes it, an operator on the way has no gradient, or a value
            that a gradient needs is overwritten, or a checkpoint is not in the global block; the program is then as it
            was.
        NotBuiltYet: the loss is computed inside a loop or branch.

    Source: developer guide, section on what happens at compile time.
    """
    block = _check_loss(loss)
    chosen = None if parameter_list is None else names_of(parameter_list, "parameter_list")
    no_grad = names_of(no_grad_set, "no_grad_set")
    origin.saw_list(block.program)
    # Callbacks are the user's and may edit anything, for which it takes a copy of the program.
    undo = all_or_nothing(block.program) if callbacks else layer_calls.all_or_nothing()
    with collector_paused(), undo:
        walk = Walk(block.desc, Wanted(block.desc, no_grad, chosen or (), None), free_name(block.desc))
        seed = _fill(walk, loss, 1.0)
        seed.set_attr("op_role", int(OpRole.Backward | OpRole.Loss))
        walk.run()
        if checkpoints is not None:
            recompute(walk, names_of(checkpoints, "checkpoints"))
        emit(block, walk, callbacks or ())
        pairs = _pairs(block, walk, chosen)
        if loss.op is not None:
            layer_calls.note_edit(loss.op.desc)
            loss.op.set_attr("op_role", int(OpRole.Forward | OpRole.Loss))
    return pairs


append_backward_ops = append_backward  # version 0.10's name


@checked
def gradients(
    targets: Variable | Sequence[Variable], inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None, no_grad_set: Names | None = None,
) -> list[Variable | None]:  # fmt: skip
    """Append the operators that compute the gradient of some variables with respect to others.

    Args:
        targets: the variables to differentiate, of any shape; several are summed.
        inputs: the others; their own ``stop_gradient`` does not count.
        target_gradients: for each target the factor of its gradient, of its shape; None for ones.
        no_grad_set: variables or names that propagate no gradient.

    Returns:
        For each input its gradient, or None when no target depends on it.

    Raises:
        OpValueError: as `append_backward`.

    Example:
        >>> x = fluid.layers.data("x", [3], append_batch_size=False)
        >>> [dx] = fluid.gradients(fluid.layers.square(x), x); dx.name, dx.shape
        ('x@GRAD', (3,))
    """
    target_list, input_list = _variables(targets, "targets"), _variables(inputs, "inputs")
    starts: list[Variable | None] = (
        [None] * len(target_list) if target_gradients is None
        else [target_gradients] if isinstance(target_gradients, Variable) else list(target_gradients)
    )  # fmt: skip
    block = _check_targets(target_list, input_list, starts)
    no_grad, wanted = names_of(no_grad_set, "no_grad_set"), {v.name for v in input_list}
    origin.saw_list(block.program)
    with all_or_nothing(block.program):
        reachable = dependents(block.desc.ops, wanted)
        walk = Walk(block.desc, Wanted(block.desc, no_grad, wanted, reachable), free_name(block.desc))
        for target, gradient in zip(target_list, starts, strict=True):
            if gradient is not None:
                walk.seed(target.name, Part(gradient.name))
            else:
                _fill(walk, target, 1.0)
        walk.run()
        emit(block, walk, ())
        names = [walk.gradient_of.get(v.name) for v in input_list]
        return [None if name is None else block.var(name) for name in names]


@checked
def calc_gradient(
    targets: Variable | Sequence[Variable], inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None, no_grad_set: Names | None = None,
) -> Variable | list[Variable | None] | None:  # fmt: skip
    """As `gradients`, with the gradient itself, or None, where there is one input.

    Source: fluid.backward.calc_gradient.
    """
    result = gradients(targets, inputs, target_gradients, no_grad_set)
    return result[0] if len(result) == 1 else result


_NOT_INSIDE = "gradients inside loops and branches are not part of fluidnb yet."


def _check_loss(loss: object) -> Block:
    if not isinstance(loss, Variable):
        raise OpTypeError(
            "loss should be a Variable.", expected="a Variable", received=typed(loss),
            hint="program.global_block().var(name) gives the Variable of a name.",
        )  # fmt: skip
    slots = [("loss", loss.name, dtypes.dtype_name(loss.dtype), loss.shape)]
    if loss.block.idx != 0:
        raise NotBuiltYet(
            f"{loss.name} is in block {loss.block.idx}: {_NOT_INSIDE}", slots=slots,
            hint="compute the loss in the global block, after the loop.",
        )  # fmt: skip
    if loss.shape not in ((), (1,)):
        raise OpValueError(
            "The loss must be one number.", slots=slots, expected="shape [1] or a scalar", received=list(loss.shape),
            hint="layers.mean() or layers.reduce_sum() joins the losses of a batch.",
        )  # fmt: skip
    if not is_floating(loss.block.desc, loss.name):
        raise OpValueError(
            "The loss must be a floating number.", slots=slots, expected="float32 or another float",
            received=slots[0][2], hint='layers.cast(loss, "float32") makes it one.',
        )  # fmt: skip
    if loss.op is None:
        raise OpValueError(
            f"No operator computes {loss.name}, so it has no gradient.", slots=slots,
            expected="the result of a layer", received="a variable that is fed, or a parameter",
            hint="take the mean of a cost: layers.mean(layers.square_error_cost(prediction, label)).",
        )  # fmt: skip
    return loss.block


def _check_targets(targets: list[Variable], inputs: list[Variable], starts: list[Variable | None]) -> Block:
    block = targets[0].block
    if any(t.block is not block for t in targets):
        raise OpValueError(
            "all targets must be in the same block",
            received=", ".join(f"{t.name} in block {t.block.idx}" for t in targets),
        )
    if block.idx != 0:
        raise NotBuiltYet(f"The targets are in block {block.idx}: {_NOT_INSIDE}")
    if len(starts) != len(targets):
        raise OpValueError(
            "Should have the same number of target_gradients as targets", expected=len(targets), received=len(starts)
        )
    for what, v in [*(("input", v) for v in inputs), *(("target_gradient", g) for g in starts)]:
        if v is not None and v.block.program is not block.program:
            raise OpValueError(
                f"{what} must be in the same program as targets",
                slots=[("variable", v.name, dtypes.dtype_name(v.dtype), v.shape)],
                expected=f"a variable of {block.program.short()}", received=f"one of {v.block.program.short()}",
            )  # fmt: skip
    for v in [*targets, *inputs]:
        if not is_floating(block.desc, v.name):
            raise OpValueError(
                f"{v.name} cannot have a gradient: it is not of a floating dtype.",
                slots=[("variable", v.name, dtypes.dtype_name(v.dtype), v.shape)],
            )  # fmt: skip
    for t, g in zip(targets, starts, strict=True):
        if g is not None and not _fits(g.shape, t.shape):
            raise OpValueError(
                f"{g.name} cannot be the gradient of {t.name}: the shapes differ.",
                slots=[("target", t.name, None, t.shape), ("target_gradient", g.name, None, g.shape)],
            )  # fmt: skip
    return block


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes may be the same at run time; a scalar counts as one element."""
    a, b = a or (1,), b or (1,)
    return len(a) == len(b) and all(m == n or -1 in (m, n) for m, n in zip(a, b, strict=True))


def _variables(value: Variable | Sequence[Variable], argument: str) -> list[Variable]:
    variables = [value] if isinstance(value, Variable) else list(value)
    for v in variables:
        if not isinstance(v, Variable):
            raise OpTypeError(f"{argument} holds Variables.", expected="a Variable", received=typed(v))
    if not variables:
        raise OpValueError(f"{argument} is empty.", expected="at least one Variable")
    return variables


def _fill(walk: Walk, target: Variable, value: float) -> OpDesc:
    """Start from a target's gradient filled with a number."""
    name = target.name + GRAD
    if -1 in target.shape:
        fill = OpDesc("fill_any_like", {"X": [target.name]}, {"Out": [name]}, {"value": value})
    else:
        fill = OpDesc("fill_constant", {}, {"Out": [name]}, {"shape": list(target.shape), "value": value})
        fill.set_attr("dtype", int(target.dtype))
    check_desc(get_op(fill.optype), fill)
    walk.seed(target.name, Part(name, fill, "Out", 0))
    return fill


def _pairs(block: Block, walk: Walk, chosen: Collection[str] | None) -> list[tuple[Parameter, Variable]]:
    """The parameters, or the chosen variables, with their gradients; sets op_role_var of the last writers of these."""
    writers = {name: desc for desc in walk.ops for name in desc.output_arg_names()}
    pairs: list[tuple[Any, Variable]] = []
    if chosen is None:
        wanted: list[Any] = [p for p in block.program.all_parameters() if p.trainable]
    else:
        wanted = [v for v in map(block.find_var_recursive, chosen) if v is not None]
    for parameter in wanted:
        name = walk.gradient_of.get(parameter.name)
        if name is not None:
            pairs.append((parameter, block.var(name)))
            if not isinstance(parameter, Parameter):
                continue
            writer = writers[name]
            before = writer.attrs.get("op_role_var", [])
            writer._set_texts({"op_role_var": [parameter.name, name, *before]})
    missing = sorted(set(chosen or ()) - {p.name for p, _ in pairs})
    if missing:
        warn(f"The loss does not depend on {', '.join(missing)}: no gradient.")
    return pairs
