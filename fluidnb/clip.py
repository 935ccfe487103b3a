"""Clipping of gradients: of activations inside backward (error clip), of parameters after it (gradient clip)."""

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb import layers
from fluidnb.arguments import Checked, checked
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layers.one_op import one_op
from fluidnb.program import Block, OpRole, Parameter, Program, Variable, default_main_program
from fluidnb.program import layer_calls as naming
from fluidnb.utils.source_location import warn
from fluidnb.values.dtypes import VarType

__all__ = [
    "BaseErrorClipAttr", "BaseGradientClipAttr", "ErrorClipByValue", "GradientClipByGlobalNorm",
    "GradientClipByNorm", "GradientClipByValue", "append_gradient_clip_ops", "error_clip_callback",
    "set_gradient_clip",
]  # fmt: skip

ParamGrad = tuple[Parameter, Variable | None]


def _bounds(who: str, max: float, min: float | None) -> tuple[float, float]:
    """(min, max) from Fluid's order, max first; min is -max when left out; a wrong order is righted with a warning."""
    low, high = (-abs(float(max)), abs(float(max))) if min is None else (float(min), float(max))
    if low > high:
        warn(f"{who}({max}, {min}): max comes first, then min; they are swapped.")
        low, high = high, low
    return low, high


class BaseErrorClipAttr(Checked):
    """The base of error clips: appends the operator that clips one gradient."""

    def append_clip_op(self, block: Block, grad_name: str) -> None:
        """Append the operator.

        Args:
            block: where the gradient was just written.
            grad_name: the gradient's name; it is changed in place.
        """
        raise NotImplementedError(f"{type(self).__name__} must define append_clip_op(block, grad_name).")


class ErrorClipByValue(BaseErrorClipAttr):
    """Limits the gradient of an activation to [min, max] before it flows on.

    Args:
        max: upper bound.
        min: lower bound; None for ``-max``.

    Example:
        >>> h = fluid.layers.fc(fluid.layers.data("x", [13]), 4)
        >>> h.set_error_clip(ErrorClipByValue(max=0.1))
        >>> ops, _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))
        >>> [op.type for op in fluid.default_main_program().global_block().ops].count("clip")
        1
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.min, self.max = _bounds("ErrorClipByValue", max, min)

    def __repr__(self) -> str:
        return f"ErrorClipByValue(max={self.max}, min={self.min})"

    def append_clip_op(self, block: Block, grad_name: str) -> None:
        block.append_op(
            type="clip", inputs={"X": [grad_name]}, outputs={"Out": [grad_name]},
            attrs={"min": self.min, "max": self.max},
        )  # fmt: skip


@checked
def error_clip_callback(block: Block, context: Mapping[Any, Any]) -> None:
    """Callback of `append_backward` that applies the error clips that users set on variables.

    Args:
        block: the block to which a gradient operator was just appended.
        context: name of a gradient -> name of its variable.

    Example:
        >>> h = fluid.layers.fc(fluid.layers.data("x", [13]), 4)
        >>> pairs = fluid.backward.append_backward(fluid.layers.mean(h), callbacks=[error_clip_callback])
    """
    # The mapping grows with the program and comes back for each operator: to check its keys would take quadratic time.
    for grad_name in block.ops[-1].output_arg_names:
        if grad_name not in context:
            continue
        var = block.var_recursive(context[grad_name])
        clip = getattr(var, "error_clip", None)
        if clip is None:
            continue
        if not isinstance(clip, BaseErrorClipAttr):
            raise OpTypeError(
                f"The error clip of {var.name} is no error clip.",
                expected="ErrorClipByValue or another BaseErrorClipAttr", received=typed(clip),
            )  # fmt: skip
        clip.append_clip_op(block, grad_name)


class BaseGradientClipAttr(Checked):
    """The base of gradient clips. All gradients are shown first, then each is changed."""

    #: What a message says where one is expected.
    argument_hint = "for example fluid.clip.GradientClipByGlobalNorm(1.0)."

    def process_context(self, context: dict[Any, Any], param: Parameter, grad: Variable) -> None:
        """See one gradient; what clips of one group must share goes into ``context``.

        Args:
            context: shared by all clips of one call.
            param: the parameter.
            grad: its gradient.
        """

    def create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        """Append the operators that clip one gradient.

        Args:
            param: the parameter.
            grad: its gradient.

        Returns:
            (the parameter, its clipped gradient).
        """
        raise NotImplementedError(f"{type(self).__name__} must define create_operators(param, grad).")


class GradientClipByValue(BaseGradientClipAttr):
    """Limits each element of a gradient to [min, max].

    Args:
        max: upper bound.
        min: lower bound; None for ``-max``. When the two come the wrong way round they are swapped, with a warning.

    Example:
        >>> attr = fluid.ParamAttr(gradient_clip=GradientClipByValue(0.1))
        >>> y = fluid.layers.fc(fluid.layers.data("x", [13]), 1, param_attr=attr, bias_attr=False)
        >>> ops, _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        >>> [op.type for op in ops]
        ['clip', 'sgd']

    Source: developer guide, section on a parameter's own initialisation.
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.min, self.max = _bounds("GradientClipByValue", max, min)

    def __repr__(self) -> str:
        return f"GradientClipByValue(max={self.max}, min={self.min})"

    def create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        return param, layers.clip(x=grad, min=self.min, max=self.max)


class GradientClipByNorm(BaseGradientClipAttr):
    """Scales a gradient whose norm is above a bound, so that it is the bound: ``g · clip_norm / max(clip_norm, |g|)``.

    Args:
        clip_norm: the bound, above 0.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> set_gradient_clip(GradientClipByNorm(0.5))
        >>> ops, _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> [op.type for op in ops]
        ['clip_by_norm', 'sgd']
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _bound(clip_norm)

    def __repr__(self) -> str:
        return f"GradientClipByNorm(clip_norm={self.clip_norm})"

    def create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        return param, layers.clip_by_norm(x=grad, max_norm=self.clip_norm)


def _bound(clip_norm: float) -> float:
    if not clip_norm > 0:
        raise OpValueError("clip_norm must be above 0.", expected="a number above 0", received=clip_norm)
    return float(clip_norm)


@naming.layer
def _sum_of_squares(grad: Variable) -> Variable:
    if grad.type == VarType.SELECTED_ROWS:  # a row that comes twice counts with the sum of both
        grad = one_op("get_tensor_from_selected_rows", {"X": one_op("merge_selected_rows", {"X": grad})})
    return one_op("squared_l2_norm", {"X": grad})


class GradientClipByGlobalNorm(BaseGradientClipAttr):
    """Scales all gradients of a group alike, so that the norm over all of them is at most a bound.

    Each becomes ``g · clip_norm / max(clip_norm, sqrt(sum of all squares))``.

    Args:
        clip_norm: the bound, above 0.
        group_name: the group; clips of one group must have one bound.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1))
        >>> set_gradient_clip(GradientClipByGlobalNorm(0.5))
        >>> ops, _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> [op.type for op in ops]  # doctest: +NORMALIZE_WHITESPACE
        ['squared_l2_norm', 'squared_l2_norm', 'sum', 'sqrt', 'fill_constant', 'elementwise_max', 'elementwise_div',
         'elementwise_mul', 'elementwise_mul', 'sgd', 'sgd']
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        self.clip_norm = _bound(clip_norm)
        self.group_name = group_name

    def __repr__(self) -> str:
        return f"GradientClipByGlobalNorm(clip_norm={self.clip_norm}, group_name={self.group_name!r})"

    def process_context(self, context: dict[Any, Any], param: Parameter, grad: Variable) -> None:
        group = context.setdefault(self.group_name, {"clip_norm": self.clip_norm, "squares": [], "factor": None})
        if group["clip_norm"] != self.clip_norm:
            raise OpValueError(
                "All parameters' 'clip_norm' of a same group should be the same",
                slots=[("Param", param.name, None, param.shape)],
                expected=f"clip_norm {group['clip_norm']} in {self.group_name!r}", received=self.clip_norm,
                hint="give the other one a different group_name.",
            )  # fmt: skip
        group["squares"].append(_sum_of_squares(grad))
        self._group = group

    def create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        factor = self._group["factor"]
        if factor is None:
            factor = self._group["factor"] = self._append_factor()
        grad.block.append_op(type="elementwise_mul", inputs={"X": [grad], "Y": [factor]}, outputs={"Out": [grad]})
        return param, grad

    def _append_factor(self) -> Variable:
        norm = layers.sqrt(layers.sums(self._group["squares"]))
        bound = layers.fill_constant(shape=[1], dtype=norm.dtype, value=self.clip_norm)
        return layers.elementwise_div(x=bound, y=layers.elementwise_max(x=bound, y=norm))


@checked
def set_gradient_clip(
    clip: BaseGradientClipAttr, param_list: Sequence[Parameter | str] | None = None, program: Program | None = None
) -> None:
    """Set how parameters' gradients are clipped, before ``minimize``.

    Args:
        clip: the clip.
        param_list: parameters or their names; None for all.
        program: their program; None for the default main program.

    Example:
        >>> w = fluid.layers.create_parameter([2], "float32", name="w")
        >>> set_gradient_clip(GradientClipByValue(1.0), param_list=["w"])
        >>> w.gradient_clip_attr
        GradientClipByValue(max=1.0, min=-1.0)
    """
    block = (default_main_program() if program is None else program).global_block()
    listed = block.all_parameters() if param_list is None else param_list
    params = [block.var(p) if isinstance(p, str) else p for p in listed]
    for p in params:
        if not isinstance(p, Parameter):
            raise OpTypeError("'param_list' should be a list of Parameter or of their names.", received=repr(p))
    updates = (op for op in block.desc.ops if op.attrs.get("op_role") == OpRole.Optimize)
    optimized = {name for op in updates for name in op.ins.get("Param", ())}
    late = [p.name for p in params if p.name in optimized]
    if late:
        warn(
            f"minimize has written the update of {', '.join(late)} already: set_gradient_clip changes it no more. "
            "Call it before minimize."
        )
    for p in params:
        p.gradient_clip_attr = clip


@checked
def append_gradient_clip_ops(
    param_grads: Sequence[ParamGrad], clip: BaseGradientClipAttr | None = None
) -> list[ParamGrad]:
    """Append the operators that clip gradients.

    Args:
        param_grads: (parameter, gradient) pairs; a gradient may be None.
        clip: for parameters without a clip.

    Returns:
        The pairs with the clipped gradients.

    Raises:
        OpValueError: clips of one group differ.

    Example:
        >>> append_gradient_clip_ops([])
        []
    """
    context: dict[Any, Any] = {}
    plan: list[tuple[Parameter, Variable | None, BaseGradientClipAttr | None]] = []
    for param, grad in param_grads:
        chosen = clip if param.gradient_clip_attr is None else param.gradient_clip_attr
        if chosen is not None and not isinstance(chosen, BaseGradientClipAttr):
            raise OpTypeError(
                f"clip attribute of {param.name} should be an instance of BaseGradientClipAttr",
                expected="for example GradientClipByValue(1.0)", received=typed(chosen),
            )  # fmt: skip
        plan.append((param, grad, chosen))
    for param, grad, chosen in plan:
        if grad is not None and chosen is not None:
            with param.block.program.optimized_guard([param, grad]):
                chosen.process_context(context, param, grad)
    clipped: list[ParamGrad] = []
    for param, grad, chosen in plan:
        if grad is not None and chosen is not None:
            with param.block.program.optimized_guard([param, grad]):
                clipped.append(chosen.create_operators(param, grad))
        else:
            clipped.append((param, grad))
    return clipped
