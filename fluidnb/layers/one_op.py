"""The layer of one operator, which most layers are, and families of such layers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from fluidnb.errors import OpTypeError, typed
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import input_spec
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.program.defaults import default_main_program

Inputs = Mapping[str, Variable | list[Variable] | None]
P = ParamSpec("P")
R = TypeVar("R")


def one_op(
    op_type: str, inputs: Inputs, attrs: Mapping[str, Any] | None = None, *, slot: str = "Out", dtype: Any = None,
    out: Variable | None = None, out_name: str | None = None, name: str | None = None, act: Any = None,
    stop_gradient: bool = False,
) -> Variable:  # fmt: skip
    """Append one operator, with a variable for its output, and the activation if there is one.

    Args:
        inputs: slot -> variables; those that are None are left out.
        attrs: those that are None are left out.
        dtype: dtype of the output; None takes that of the first input.
        out: an existing variable to write; None creates one.
    """
    lists = _lists(op_type, inputs)
    for s, variables in lists.items():
        if not variables:
            raise OpTypeError(
                f"{s} of {op_type} must have at least one Variable.", expected="a list of Variables", received="[]",
                hint="what fills the list found none.",
            )  # fmt: skip
    block = default_main_program().current_block()
    if out is None:
        if dtype is None:
            dtype = next(iter(lists.values()))[0].dtype
        if out_name:
            out = LayerHelper(op_type).create_variable(name=out_name, dtype=dtype, stop_gradient=stop_gradient)
        else:
            name = naming.layer_name(op_type) if name is None else name
            out = block._temporary(name, dtype, stop_gradient)
    block._appended(op_type, lists, {slot: [out]}, attrs)
    return out if act is None else LayerHelper(op_type, name=name, act=act).append_activation(out)


def several(
    op_type: str, inputs: Inputs, outputs: Mapping[str, Any], attrs: Mapping[str, Any] | None = None, *,
    name: str | None = None, constant: tuple[str, ...] = (), helper: LayerHelper | None = None,
) -> list[Variable]:  # fmt: skip
    """Append one operator, with a variable for each of its outputs; inputs and attributes as for `one_op`.

    Args:
        outputs: slot -> dtype, or an existing variable to write.
        constant: slots through which no gradient passes.
        helper: that of a layer with parameters, a bias or an activation.
    """
    helper = helper or LayerHelper(op_type, name=name)
    lists = _lists(op_type, inputs)
    results = {
        slot: each if isinstance(each, Variable) else helper._temporary(each, slot in constant)
        for slot, each in outputs.items()
    }
    written = {slot: [variable] for slot, variable in results.items()}
    helper.block._appended(op_type, lists, written, attrs)
    return list(results.values())


def _lists(op_type: str, inputs: Inputs) -> dict[str, list[Variable]]:
    lists = {s: v if isinstance(v, list) else [v] for s, v in inputs.items() if v is not None}
    for slot, variables in lists.items():
        for v in variables:
            check_variable(v, slot, op_type)
    return lists


def as_input(value: object) -> Variable | None:
    """An argument that may be a variable, for the slot that takes it."""
    return value if isinstance(value, Variable) else None


def as_attr(value: object) -> object:
    """An argument that may be a variable, for the attribute that takes it otherwise."""
    return None if isinstance(value, Variable) else list(value) if isinstance(value, list | tuple) else value


def check_variable(value: object, argument: str, layer: str) -> None:
    """Raise unless an argument of a layer is a Variable."""
    if not isinstance(value, Variable):
        raise OpTypeError(
            f"{argument} of {layer} must be a Variable.", expected="a Variable", received=typed(value),
            hint="layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.",
            argument=argument,
        )  # fmt: skip


def family(template: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """Turn a function of an operator's type, and of a layer's arguments, into a maker of layers.

    Args:
        template: its docstring is that of each layer, with fields in braces: ``{name}`` for the layer's name,
            ``{summary}``, and others with a text for each layer.

    Returns:
        ``make(op_type, summary, takes=None, name=None, **texts)``, which gives the layer; ``takes`` is for
        `fluidnb.op.takes`, ``name`` for a layer that has another name than its operator.

    Example:
        >>> @family
        ... def _function(op_type, value):
        ...     "{summary} of {of}."
        ...     return one_op(op_type, {"X": value})
        >>> relu = _function("relu", "Rectifier", of="each element")
        >>> relu.__doc__
        'Rectifier of each element.'
        >>> relu(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    signature = inspect.signature(template)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])

    def make(
        op_type: str, summary: str, takes: Mapping[str, str | tuple[str, ...]] | None = None, name: str | None = None,
        **texts: str,
    ) -> Callable[P, R]:  # fmt: skip
        @wraps(template)
        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            return template(op_type, *args, **kwargs)

        function.__name__ = function.__qualname__ = name or op_type
        if template.__doc__ is not None:
            function.__doc__ = template.__doc__.format(name=name or op_type, summary=summary, **texts)
        function.__signature__ = own  # type: ignore[attr-defined]
        function.op_type = op_type  # type: ignore[attr-defined]
        return naming.layer(input_spec.takes(**takes or {})(function))

    return make
