"""The part of LayerHelper that makes names, parameters and variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpTypeError, OpValueError, near
from fluidnb.initializer import Initializer, check_initializer, default_bias_initializer, default_weight_initializer
from fluidnb.param_attr import ParamAttr, ParamAttrLike, WeightNormParamAttr, described_by
from fluidnb.program import Block, Operator, Parameter, Program, Variable, hooks, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.program.defaults import default_main_program, default_startup_program


@checked
class LayerHelperBase:
    """Names, programs, parameters and variables of a layer; see `LayerHelper`.

    Args:
        layer_type: the layer's type, or the function's ``locals()``.
        kwargs: the layer's arguments.
    """

    def __init__(self, layer_type: str | Mapping[str, Any], **kwargs: Any) -> None:
        if not isinstance(layer_type, str):
            kwargs = {**layer_type, **kwargs}
            layer_type = sys._getframe(2).f_code.co_name  # 1 is the check of the arguments
        for role in ("main_program", "startup_program"):
            if kwargs.get(role) is not None and not isinstance(kwargs[role], Program):
                raise OpTypeError(
                    f"{role} of {layer_type} must be a Program or None.", expected="a Program or None",
                    received=shown(kwargs[role]),
                )  # fmt: skip
        if kwargs.get("name") is not None and not isinstance(kwargs["name"], str):
            raise OpTypeError(
                f"name of {layer_type} must be a text or None.", expected="a text or None",
                received=shown(kwargs["name"]), hint="left out, the layer is numbered.",
            )  # fmt: skip
        self.layer_type = layer_type
        self.kwargs = kwargs
        self._current_attr: ParamAttr | None = None
        self._name: str | None = kwargs.get("name")

    @property
    def name(self) -> str:
        """The layer's name: the one given, the one under which the user assigns the result, or a numbered one."""
        if self._name is None:
            self._name = naming.layer_name(self.layer_type)
        return self._name

    @property
    def main_program(self) -> Program:
        """The program that the layer adds to."""
        program: Program | None = self.kwargs.get("main_program")
        return default_main_program() if program is None else program

    @property
    def startup_program(self) -> Program:
        """The program that initialises the layer's parameters."""
        program: Program | None = self.kwargs.get("startup_program")
        return default_startup_program() if program is None else program

    @property
    def block(self) -> Block:
        """The block that the layer adds to."""
        return self.main_program.current_block()

    def _temporary(self, dtype: Any, stop_gradient: bool = False) -> Variable:
        """A variable for an operator's output."""
        return self.block._temporary(self.name, dtype, stop_gradient)

    def append_op(
        self,
        type: str,
        inputs: Any = None,  # append_op.describe checks these three
        outputs: Any = None,
        attrs: Any = None,
    ) -> Operator:
        """Append an operator to the current block; arguments as for ``Block.append_op``."""
        return self.block._appended(type, inputs, outputs, attrs)

    @property
    def param_attr(self) -> ParamAttr | None:
        """The layer's ``param_attr``; None for no parameter."""
        return described_by(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> ParamAttr | None:
        """The layer's ``bias_attr``; None for no bias."""
        return described_by(self.kwargs.get("bias_attr"))

    def create_parameter(
        self, attr: ParamAttrLike = None, shape: Sequence[int] | None = None, dtype: Any = "float32",
        is_bias: bool = False, default_initializer: Initializer | None = None,
    ) -> Parameter:  # fmt: skip
        """Create a parameter in the main program, and the operator that initialises it in the startup program.

        Args:
            attr: its description; None takes the layer's own.
            shape: its shape, all sizes known.
            dtype: its dtype.
            is_bias: whether it is a bias: another default name and initializer.
            default_initializer: the initializer when ``attr`` names none.

        Returns:
            The parameter; the existing one when ``attr`` names one that exists with this shape and dtype.

        Raises:
            OpValueError: no shape, an unknown size in it, or one that differs from the existing parameter's.
        """
        if attr is None:
            attr = self.bias_attr if is_bias else self._current_attr or self.param_attr
        described = described_by(attr)
        if described is None:
            raise OpValueError(
                f"{self.layer_type} cannot do without this parameter.",
                received="False where the parameter is described",
            )
        if not shape:
            raise OpValueError("Parameter must set shape and dtype", received=f"shape {shape!r}")
        if described.name is None:
            described.name = unique_name.fresh(f"{self.name}.{'b' if is_bias else 'w'}")
        initializer = default_initializer if described.initializer is None else described.initializer
        if initializer is not None:
            check_initializer(initializer)
        else:
            initializer = default_bias_initializer() if is_bias else default_weight_initializer()
        if isinstance(described, WeightNormParamAttr):
            return self._normalized(described, shape, dtype, initializer)
        facts = described.to_kwargs()
        startup, name = self.startup_program.global_block(), facts.pop("name")
        with naming.all_or_nothing():
            parameter = self.main_program.global_block()._parameter_of_layer(name, shape, dtype, facts)
            if startup._declared_var(name) is None:
                initializer(parameter._copied(startup, facts), startup)
        return parameter

    def _normalized(self, attr: WeightNormParamAttr, shape: Sequence[int], dtype: Any, first: Any) -> Parameter:
        """A weight of two parameters, which takes the place of one although it is a variable like others."""
        assert hooks.normalized_weight is not None, "fluidnb.layers is imported"

        def make(part: ParamAttr, sizes: Sequence[int], initializer: Any) -> Parameter:
            part.initializer = initializer or first
            return self.create_parameter(part, sizes, dtype)

        return cast(Parameter, hooks.normalized_weight(attr, shape, make))

    def get_parameter(self, name: str) -> Parameter:
        """A parameter that exists already."""
        block = self.main_program.global_block()
        parameter = block.var(name) if block.has_var(name) else None
        if not isinstance(parameter, Parameter):
            raise OpValueError(
                f"no Parameter name {name} found", hint=near(name, [p.name for p in block.all_parameters()])
            )
        return parameter

    def create_variable(self, *args: Any, **kwargs: Any) -> Variable:
        """A variable of the current block; arguments as for ``Block.create_var``."""
        return self.block.create_var(*args, **kwargs)

    def create_global_variable(self, persistable: bool = False, **kwargs: Any) -> Variable:
        """A variable of block 0; arguments as for ``Block.create_var``, and a name is generated where there is none."""
        if kwargs.get("name") is None:
            kwargs["name"] = unique_name.generate(f"{self.name}.tmp")
        return self.main_program.global_block().create_var(persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name: str, **kwargs: Any) -> tuple[Variable, bool]:
        """A variable of block 0 by name, and whether it is new; arguments as for `create_global_variable`."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Initializes a persistable variable in the startup program.

        Args:
            var: the variable.
            initializer: what fills it.

        Returns:
            The startup program's variable of the same name.
        """
        startup = self.startup_program.global_block()
        with naming.all_or_nothing():
            there = startup._declared(var.name, var.type, var.shape, var.dtype, None, True, True)
            initializer(there, startup)
        return there
