"""The variables that an optimizer keeps: the learning rate of each program, accumulators of each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError, near
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.tensor import create_global_var
from fluidnb.program import Block, OpRole, Parameter, Program, Variable, default_main_program, hooks, unique_name
from fluidnb.regularizer import WeightDecayRegularizer
from fluidnb.values import dtypes


class OptimizerState:
    """Learning rates and accumulators; see `Optimizer`.

    Args:
        learning_rate: a number, or a variable of shape [1].
        regularization: weight decay of parameters that have none of their own.
        name: part of the names of accumulators.
        global_step: a variable of shape [1] that goes on by 1 in every step, after the updates.

    Raises:
        OpTypeError: the learning rate, or the global step, is something else.
    """

    def __init__(
        self,
        learning_rate: float | Variable,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, float | int | Variable):
            raise OpTypeError(
                f"learning rate should be float or Variable, got {type(learning_rate).__name__} here",
                expected="a float, or a Variable of shape [1]", received=repr(learning_rate),
                hint="for example SGD(learning_rate=0.01).",
            )  # fmt: skip
        if not isinstance(global_step, Variable | None):
            raise OpTypeError(
                "global_step should be a Variable.", expected="a Variable of shape [1]",
                received=f"{global_step!r} ({type(global_step).__name__})",
                hint="layers.create_global_var([1], 0, 'int64', persistable=True) makes one.",
            )  # fmt: skip
        self.regularization = regularization
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._name = name
        #: program -> its learning rate variable
        self._learning_rates: dict[Program, Variable] = {}
        #: (accumulator, parameter's name) -> its variable
        self._kept: dict[tuple[str, str], Variable] = {}

    @property
    def _accumulators(self) -> dict[str, dict[str, Variable]]:
        """Accumulator -> parameter's name -> its variable: where tests of Fluid look."""
        found: dict[str, dict[str, Variable]] = {}
        for (name, param), variable in self._kept.items():
            found.setdefault(name, {})[param] = variable
        return found

    def add_accumulator(
        self,
        name: str,
        param: Parameter,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
    ) -> Variable:
        """A persistable variable for one parameter, which the startup program fills.

        Args:
            name: what it is, for example ``moment1``.
            param: the parameter.
            dtype: its dtype; None takes the parameter's.
            fill_value: its first value.
            shape: its shape; None takes the parameter's.

        Returns:
            The variable, called ``<parameter>_<name>_0``.

        Raises:
            OpValueError: it exists already.

        Example:
            >>> w = fluid.layers.create_parameter([2], "float32", name="w")
            >>> fluid.optimizer.SGD(0.1).add_accumulator("velocity", w).name
            'w_velocity_0'
        """
        if self._name is not None:
            name = f"{self._name}_{name}"
        known = self._kept.get((name, param.name))
        if known is not None and known.lives:  # one that went with its cell does not count
            raise OpValueError(
                f"Accumulator {name} already exists for parameter {param.name}",
                hint="make an optimizer of its own for every loss.",
            )  # fmt: skip
        helper = LayerHelper(type(self).__name__)
        variable = helper.create_global_variable(
            persistable=True,
            name=unique_name.generate(f"{param.name}_{name}"),
            dtype=param.dtype if dtype is None else dtype,
            shape=param.shape if shape is None else shape,
            stop_gradient=True,
        )
        helper.set_variable_initializer(variable, Constant(fill_value))
        self._kept[name, param.name] = variable
        return variable

    def get_accumulator(self, name: str, param: Parameter) -> Variable:
        """An accumulator that exists.

        Args:
            name: what it is.
            param: the parameter.

        Raises:
            OpValueError: there is none.
        """
        if self._name is not None:
            name = f"{self._name}_{name}"
        found = self._kept.get((name, param.name))
        if found is None:
            raise OpValueError(f"Accumulator {name} does not exist for parameter {param.name}")
        return found

    def get_opti_var_name_list(self) -> list[str]:
        """The names of all variables that the optimizer keeps."""
        return [v.name for v in (*self._learning_rates.values(), *self._kept.values())]

    def load(self, stat_dict: Mapping[str, Any]) -> None:
        """Give the variables that the optimizer keeps their values, for example those of another process.

        Args:
            stat_dict: name -> array, at least for each persistable variable of `get_opti_var_name_list`.

        Raises:
            OpValueError: before `minimize`, before the startup program ran, or when a name is missing or an array has
                another shape; nothing has changed then.

        Example:
            >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1, bias_attr=False))
            >>> momentum = fluid.optimizer.Momentum(0.1, 0.9)
            >>> ops, pairs = momentum.minimize(loss)
            >>> out = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
            >>> momentum.load({"learning_rate_0": np.array([0.05]), "fc_0.w_0_velocity_0": np.ones((2, 1))})
            >>> np.array(fluid.global_scope().find_var("learning_rate_0").get_tensor())
            array([0.05], dtype=float32)
        """
        kept = {v.name: v for v in (*self._learning_rates.values(), *self._kept.values()) if v.persistable}
        if not kept or hooks.set_value is None:
            raise OpValueError(
                "The optimizer keeps no variables that could be loaded yet.",
                hint="minimize the loss and run the startup program first.",
            )
        arrays = {}
        for name, variable in kept.items():
            if name not in stat_dict:
                raise OpValueError(
                    f"There is no value for {name}.", expected=", ".join(kept),
                    received=", ".join(map(str, stat_dict))[:200], hint=near(name, map(str, stat_dict)),
                )  # fmt: skip
            arrays[name] = np.asarray(stat_dict[name], dtypes.np_dtype(variable.dtype))
            if arrays[name].shape != tuple(variable.shape):
                raise OpValueError(
                    f"The value for {name} has another shape.", expected=list(variable.shape),
                    received=list(arrays[name].shape),
                )  # fmt: skip
        for name, array in arrays.items():
            hooks.set_value(name, array)

    def global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The learning rate's variable in a program.

        Args:
            program: the program; None for the default main program.

        Returns:
            The variable, or None before `minimize`.
        """
        return self._learning_rates.get(default_main_program() if program is None else program)

    def create_global_learning_rate(self, block: Block, dtype: Any) -> None:
        """Make sure that a program has a variable for the learning rate, which its startup program fills.

        Args:
            block: the global block of the program.
            dtype: the variable's dtype.

        Raises:
            OpValueError: the learning rate is a variable of another program.
        """
        known = self._learning_rates.get(block.program)
        if known is not None and known.lives:
            return
        rate = self._learning_rate
        if isinstance(rate, Variable):
            if rate.block.program is not block.program:
                raise OpValueError(
                    "The learning rate is a variable of another program than the loss.",
                    slots=[("learning_rate", rate.name, dtypes.dtype_name(rate.dtype), rate.shape)],
                    hint="make it, and the loss, under one program_guard.",
                )  # fmt: skip
        else:
            name = unique_name.generate("learning_rate")
            rate = create_global_var([1], float(rate), dtype, persistable=True, name=name)
        self._learning_rates[block.program] = rate

    def param_learning_rate(self, param: Parameter) -> Variable:
        """The learning rate of one parameter: the optimizer's times the parameter's own factor.

        Args:
            param: the parameter.

        Returns:
            A variable of shape [1].
        """
        factor = param.optimize_attr["learning_rate"]
        rate = self._learning_rates[param.block.program]
        if isinstance(factor, Variable):
            return factor
        if factor == 1.0:
            return rate
        program = param.block.program
        with program.role_guard(OpRole.LRSched, program.op_role_var):
            helper = LayerHelper("learning_rate")
            scaled = helper.create_tmp_variable(rate.dtype, stop_gradient=True)
            helper.append_op(
                type="scale", inputs={"X": [rate]}, outputs={"Out": [scaled]}, attrs={"scale": float(factor)}
            )
        return scaled
