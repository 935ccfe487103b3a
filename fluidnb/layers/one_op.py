"""The layer of one operator with one output, which most layers are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidnb.errors import OpTypeError
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Variable

Inputs = Mapping[str, Variable | list[Variable]]


def one_op(
    op_type: str,
    inputs: Inputs,
    attrs: Mapping[str, Any] | None = None,
    *,
    slot: str = "Out",
    dtype: Any = None,
    out: Variable | None = None,
    out_name: str | None = None,
    name: str | None = None,
    act: Any = None,
    stop_gradient: bool = False,
) -> Variable:
    """Append one operator, with a variable for its output, and the activation if there is one.

    Args:
        op_type: the operator's type.
        inputs: slot -> variable or list of variables.
        attrs: its attributes.
        slot: its output slot.
        dtype: dtype of the output; None takes that of the first input.
        out: an existing variable to write; None makes one.
        out_name: name of the new variable itself.
        name: name of the layer, from which the new variable's name is made.
        act: activation, as for `LayerHelper.append_activation`.
        stop_gradient: whether gradients end at the new variable.

    Returns:
        The output, or the activation's.

    Raises:
        OpTypeError: an input is not a Variable, or a list of none.

    Example:
        >>> y = one_op("relu", {"X": fluid.layers.data("x", [3])})
        >>> y.shape
        (-1, 3)
    """
    helper = LayerHelper(op_type, name=name, act=act)
    lists = {s: v if isinstance(v, list) else [v] for s, v in inputs.items()}
    for s, variables in lists.items():
        if not variables:
            raise OpTypeError(
                f"{s} of {op_type} must have at least one Variable.", expected="a list of Variables", received="[]",
                hint="what fills the list found none.",
            )  # fmt: skip
        for v in variables:
            check_variable(v, s, op_type)
    if out is None:
        if dtype is None:
            dtype = next(iter(lists.values()))[0].dtype
        if out_name:
            out = helper.create_variable(name=out_name, dtype=dtype, stop_gradient=stop_gradient)
        else:
            out = helper.create_tmp_variable(dtype, stop_gradient)
    helper.append_op(type=op_type, inputs=lists, outputs={slot: [out]}, attrs=attrs or {})
    return helper.append_activation(out)


def check_variable(value: object, argument: str, layer: str) -> None:
    """Raise unless an argument of a layer is a Variable.

    Args:
        value: the argument.
        argument: its name.
        layer: the layer's name.

    Raises:
        OpTypeError: it is something else.

    Example:
        >>> check_variable(3, "x", "relu")
        Traceback (most recent call last):
        fluidnb.errors.OpTypeError: x of relu must be a Variable.
          expected: a Variable
          received: 3 (int)
          hint:     layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.
    """
    if not isinstance(value, Variable):
        raise OpTypeError(
            f"{argument} of {layer} must be a Variable.", expected="a Variable",
            received=f"{value!r} ({type(value).__name__})",
            hint="layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.",
            argument=argument,
        )  # fmt: skip
