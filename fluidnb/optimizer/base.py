"""Optimizer: from a loss to the operators that train; what all optimizers share."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from fluidnb.arguments import Checked, parameter_names, shown
from fluidnb.backward import Loss, append_backward
from fluidnb.backward.emit import Callback, all_or_nothing
from fluidnb.clip import BaseGradientClipAttr, append_gradient_clip_ops, error_clip_callback
from fluidnb.errors import FluidError, OpTypeError, OpValueError, near
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.creation import create_global_var
from fluidnb.op import get_op
from fluidnb.program import Block, Operator, OpRole, Parameter, Program, Variable, hooks, name_scope, unique_name
from fluidnb.program.defaults import default_main_program, default_startup_program, program_guard
from fluidnb.program.shared_docs import document
from fluidnb.regularizer import WeightDecayRegularizer, append_regularization_ops
from fluidnb.utils.garbage import collector_paused
from fluidnb.utils.representations import repr_html
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType, dtype_name

ParamGrad = tuple[Parameter, Variable]


class Minimized(tuple[list[Operator], list[ParamGrad]]):
    """The result of `minimize`: (operators, (parameter, gradient) pairs), with a one-line repr.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
        2 operators update fc_0.w_0, fc_0.b_0
        >>> w = fluid.layers.create_parameter([2], "float32", name="w")
        >>> fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(w))
        1 operator updates w
    """

    __slots__ = ()

    def __repr__(self) -> str:
        names = [parameter.name for parameter, _ in self[1]]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        verb = "operator updates" if len(self[0]) == 1 else "operators update"
        return f"{len(self[0])} {verb} {', '.join(names[:8])}{more}"

    _repr_html_ = repr_html


#: Arguments that mean the same in every optimizer; their texts are added to the docstrings.
SHARED = {
    "learning_rate": "a number, or a variable of shape [1] (for example a schedule).",
    "epsilon": "keeps the divisor from zero.",
    "regularization": "weight decay of parameters without a regularizer.",
    "name": "part of the names of accumulators.",
    "global_step": "a variable of shape [1], incremented by 1 after the updates of every step.",
}


class Optimizer(Checked):
    """The base of optimizers. One has accumulators and one operator for each parameter.

    A subclass declares `type` and `accumulators`, and sets the operator's attributes in ``__init__``; or it defines
    `create_accumulators` and `append_optimize_op`.

    Args:
        learning_rate: a number, or a variable of shape [1] (for example a schedule).
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 after the updates of every step.

    Source: developer guide, section on what happens at compile time.
    """

    #: The operator's type.
    type = ""
    #: Input slot of the operator -> name of the accumulator that it reads and updates.
    accumulators: Mapping[str, str] = {}
    #: What backward keeps where it computes activations a second time; None keeps all of them.
    _checkpoints: Sequence[Variable | str] | None = None
    #: Attribute of the operator -> argument of the optimizer, where their names differ.
    _argument_of: Mapping[str, str] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("fluidnb."):
            cls.__doc__ = document(cls.__doc__, parameter_names(cls.__init__), SHARED)

    def __init__(
        self, learning_rate: float | Variable, regularization: WeightDecayRegularizer | None = None,
        name: str | None = None, *, global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        if isinstance(learning_rate, bool):
            raise OpTypeError(
                f"learning rate should be float or Variable, got {type(learning_rate).__name__} here",
                expected="a float, or a Variable of shape [1]", received=repr(learning_rate),
                hint="for example SGD(learning_rate=0.01).",
            )  # fmt: skip
        self.regularization = regularization
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._name = name
        self._attrs: dict[str, Any] = {}
        #: accumulator -> its initial value, where that is not 0; a running power of a beta has shape [1]
        self._initial: dict[str, float] = {}
        #: program -> its learning rate variable
        self._learning_rates: dict[Program, Variable] = {}
        #: (accumulator, parameter's name) -> its variable
        self._kept: dict[tuple[str, str], Variable] = {}

    @property
    def _arguments(self) -> dict[str, Any]:
        """Arguments of the optimizer by name; optional ones that were left out are missing."""
        optional = {
            "regularization": self.regularization, "name": self._name, "global_step": self._global_step,
        }  # fmt: skip
        attrs = {
            self._argument_of.get(name, name): value[0] if isinstance(value, list) else value  # lists are of one number
            for name, value in self._attrs.items()
        }
        given = {name: value for name, value in optional.items() if value is not None}
        return {"learning_rate": self._learning_rate, **attrs, **given}

    def __repr__(self) -> str:
        texts = {k: v.name if isinstance(v, Variable) else repr(v) for k, v in self._arguments.items()}
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in texts.items())})"

    _repr_html_ = repr_html

    # What a subclass defines.

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        """Create the variables that the optimizer keeps for each parameter, with `add_accumulator`.

        Args:
            block: the global block of the main program.
            parameters: the parameters that will be optimized.
        """
        for param in parameters:
            for name in self.accumulators.values():
                shape = [1] if name.endswith("_pow_acc") else None
                self.add_accumulator(name, param, fill_value=self._initial.get(name, 0.0), shape=shape)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        """Append the operator that updates one parameter.

        Args:
            block: the global block of the main program.
            param_and_grad: the parameter and its gradient.

        Returns:
            The operator.
        """
        if not self.type:
            name = type(self).__name__
            raise NotImplementedError(f"{name} must define append_optimize_op(block, param_and_grad).")
        param, grad = param_and_grad
        kept = {slot: self.get_accumulator(name, param) for slot, name in self.accumulators.items()}
        slots = get_op(self.type).outputs
        updated = {f"{slot.replace('Accumulator', 'Accum')}Out": variable for slot, variable in kept.items()}
        return block.append_op(
            type=self.type,
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param), **kept},
            outputs={"ParamOut": param, **{slot: variable for slot, variable in updated.items() if slot in slots}},
            attrs=self._attrs,
        )

    def finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        """Append what must run once after all parameters are updated; nothing unless an optimizer says so."""

    # The parts of minimize.

    def backward(
        self, loss: Loss, startup_program: Program | None = None,
        parameter_list: Iterable[Variable | str] | None = None, no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> list[ParamGrad]:  # fmt: skip
        """The first part of `minimize`: gradients, with the error clips that variables have.

        Args:
            loss: what to make small.
            startup_program: kept for symmetry; gradients need no initial value.
            parameter_list: parameters or names; None for all trainable ones.
            no_grad_set: variables or names that get no gradient.
            callbacks: see `append_backward`.

        Returns:
            (parameter, gradient) pairs.
        """
        with program_guard(loss.block.program, startup_program) if isinstance(loss, Variable) else nullcontext():
            clips = [*(callbacks or ()), error_clip_callback]
            return append_backward(loss, parameter_list, no_grad_set, clips, self._checkpoints)

    def apply_gradients(
        self, params_grads: Sequence[ParamGrad], grad_clip: BaseGradientClipAttr | None = None
    ) -> list[Operator]:
        """The second part of `minimize`: gradient clips, weight decay and the operators that update parameters.

        Args:
            params_grads: (parameter, gradient) pairs.
            grad_clip: clip for parameters without one.

        Returns:
            All operators that it appended.

        Raises:
            OpValueError: there is nothing to optimize, or the program was optimized with this object before.
        """
        pairs = sorted(_with_gradient(params_grads), key=lambda pair: pair[0].name)
        main, startup = pairs[0][0].block.program, default_startup_program()
        rates, accumulators = dict(self._learning_rates), dict(self._kept)
        try:
            with program_guard(main, startup), all_or_nothing(main, startup):
                start = len(main.global_block().desc.ops)
                clipped = append_gradient_clip_ops(pairs, grad_clip)
                decayed = append_regularization_ops(clipped, self.regularization)
                self._optimize(main.global_block(), [(p, g) for p, g in decayed if g is not None])
                return list(main.global_block().ops[start:])
        except BaseException:
            self._learning_rates, self._kept = rates, accumulators
            raise

    def _optimize(self, block: Block, params_grads: list[ParamGrad]) -> None:
        self.create_global_learning_rate(block, params_grads[0][0].dtype)
        self.create_accumulators(block, [p for p, _ in params_grads])
        updates: list[tuple[Parameter, Operator]] = []
        for param, grad in params_grads:
            with block.program.optimized_guard([param, grad]), name_scope("optimizer"):
                updates.append((param, self.append_optimize_op(block, (param, grad))))
        with block.program.role_guard(OpRole.Optimize):
            self.finish_update(block, params_grads)
            if self._global_step is not None:
                block.append_op(
                    type="increment", inputs={"X": self._global_step}, outputs={"Out": self._global_step},
                    attrs={"step": 1.0},
                )  # fmt: skip
        for param, op in updates:
            param.optimize_op_attrs = {"type": op.type, **op.desc.attrs}

    def create_optimization_pass(
        self, parameters_and_grads: Sequence[ParamGrad], loss: Loss, startup_program: Program | None = None
    ) -> list[Operator]:
        """The operators that update parameters alone, without clips and decay, as versions 0.11 to 1.2 made them.

        Example:
            >>> x = fluid.layers.data("x", [13])
            >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False))
            >>> pairs = fluid.backward.append_backward(loss)
            >>> [op.type for op in fluid.optimizer.Adagrad(0.01).create_optimization_pass(pairs, loss)]
            ['adagrad']
        """
        main, startup = loss.block.program, default_startup_program() if startup_program is None else startup_program
        with program_guard(main, startup), all_or_nothing(main, startup):
            start = len(main.global_block().desc.ops)
            self._optimize(main.global_block(), _with_gradient(parameters_and_grads))
            return list(main.global_block().ops[start:])

    _create_optimization_pass = create_optimization_pass  # the name in version 1.0

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` into the programs of a loss."""
        with program_guard(loss.block.program, startup_program):
            return self.apply_gradients(params_grads)

    def minimize(
        self, loss: Loss, startup_program: Program | None = None,
        parameter_list: Iterable[Variable | str] | None = None, no_grad_set: Iterable[Variable | str] | None = None,
        grad_clip: BaseGradientClipAttr | None = None,
    ) -> tuple[list[Operator], list[ParamGrad]]:  # fmt: skip
        """Append all that one training step needs: backward, error clips, gradient clips, weight decay, updates.

        Args:
            loss: what to make small, shape [1], in the global block.
            startup_program: where learning rate and accumulators are initialized; None for the default one.
            parameter_list: parameters or names; None for all trainable ones.
            no_grad_set: variables or names that get no gradient.
            grad_clip: clip for parameters without one.

        Returns:
            (operators appended after backward, (parameter, gradient) pairs before clipping).

        Raises:
            OpValueError: see `append_backward` and `apply_gradients`. Both programs are then as they were.

        Example:
            >>> x = fluid.layers.data("x", [13])
            >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
            >>> ops, pairs = fluid.optimizer.SGD(0.01).minimize(loss)
            >>> [op.type for op in ops], [p.name for p, _ in pairs]
            (['sgd', 'sgd'], ['fc_0.w_0', 'fc_0.b_0'])
        """
        startup = default_startup_program() if startup_program is None else startup_program
        main = loss.block.program
        with program_guard(main, startup), collector_paused(), all_or_nothing(main, startup):
            params_grads = self.backward(loss, startup, parameter_list, no_grad_set)
            try:
                return Minimized((self.apply_gradients(params_grads, grad_clip), params_grads))
            except FluidError as error:
                raise error.with_context(slots=[("loss", loss.name, dtype_name(loss.dtype), loss.shape)]) from None

    # Variables of the optimizer: the learning rate of each program, accumulators of each parameter.

    @property
    def _accumulators(self) -> dict[str, dict[str, Variable]]:
        """Accumulator -> parameter's name -> its variable: where tests of Fluid look."""
        accumulators: dict[str, dict[str, Variable]] = {}
        for (name, param), variable in self._kept.items():
            accumulators.setdefault(name, {})[param] = variable
        return accumulators

    def add_accumulator(
        self, name: str, param: Parameter, dtype: Any = None, fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
    ) -> Variable:  # fmt: skip
        """A persistable variable for one parameter, which the startup program fills.

        Args:
            name: what it is, for example ``moment1``.
            param: the parameter.
            dtype: its dtype; None takes the parameter's.
            fill_value: its initial value.
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
                hint="create a separate optimizer for every loss.",
            )  # fmt: skip
        variable = default_main_program().global_block()._declared(
            unique_name.fresh(f"{param.name}_{name}"), VarType.LOD_TENSOR, param.shape if shape is None else shape,
            param.dtype if dtype is None else dtype, None, True, True,
        )  # fmt: skip
        LayerHelper(type(self).__name__).set_variable_initializer(variable, Constant(fill_value))
        self._kept[name, param.name] = variable
        return variable

    def get_accumulator(self, name: str, param: Parameter) -> Variable:
        """An accumulator that exists, by its name, for example ``moment1``, and its parameter."""
        if self._name is not None:
            name = f"{self._name}_{name}"
        accumulator = self._kept.get((name, param.name))
        if accumulator is None:
            raise OpValueError(f"Accumulator {name} does not exist for parameter {param.name}")
        return accumulator

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
            try:
                arrays[name] = np.asarray(stat_dict[name], dtypes.np_dtype(variable.dtype))
            except (TypeError, ValueError):
                raise OpValueError(
                    f"The value for {name} is no array of numbers.", received=shown(stat_dict[name]),
                    expected=f"an array of {dtype_name(variable.dtype)}, shape {list(variable.shape)}",
                ) from None  # fmt: skip
            if arrays[name].shape != tuple(variable.shape):
                raise OpValueError(
                    f"The value for {name} has another shape.", expected=list(variable.shape),
                    received=list(arrays[name].shape),
                )  # fmt: skip
        for name, array in arrays.items():
            hooks.set_value(name, array)

    def global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The learning rate's variable in a program, by default the main program; None before `minimize`."""
        return self._learning_rates.get(default_main_program() if program is None else program)

    def create_global_learning_rate(self, block: Block, dtype: Any) -> None:
        """Make sure that a program has a variable for the learning rate, which its startup program fills.

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
        """The learning rate of one parameter, [1]: the optimizer's times the parameter's own factor."""
        program = param.block.program
        rate = self._learning_rates.get(program)
        if rate is None:
            raise OpValueError(
                f"The optimizer has no learning rate in {program.short()} yet.", hint="minimize the loss first."
            )
        factor = param._rate_factor()
        if isinstance(factor, Variable):
            return factor
        if factor == 1.0:
            return rate
        with program.role_guard(OpRole.LRSched, program.op_role_var):
            helper = LayerHelper("learning_rate")
            scaled = helper.create_tmp_variable(rate.dtype, stop_gradient=True)
            helper.append_op(
                type="scale", inputs={"X": [rate]}, outputs={"Out": [scaled]}, attrs={"scale": factor}
            )
        return scaled


def _with_gradient(pairs: Sequence[tuple[Parameter, Variable | None]]) -> list[ParamGrad]:
    """The pairs that have a gradient; raises where there are none."""
    with_gradient = [(parameter, gradient) for parameter, gradient in pairs if gradient is not None]
    if not with_gradient:
        raise OpValueError(
            "There is nothing to optimize.", expected="a trainable parameter on which the loss depends",
            received="no parameter with a gradient",
            hint="the loss depends on no trainable parameter, or all of them have stop_gradient.",
        )  # fmt: skip
    return with_gradient
