"""Optimizer: from a loss to the operators that train; what all optimizers share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from fluidnb.backward import append_backward
from fluidnb.backward.emit import Callback, all_or_nothing
from fluidnb.clip import BaseGradientClipAttr, append_gradient_clip_ops, error_clip_callback
from fluidnb.errors import FluidError, OpTypeError, OpValueError
from fluidnb.optimizer.state import OptimizerState
from fluidnb.program import (
    Block,
    Operator,
    OpRole,
    Parameter,
    Program,
    Variable,
    default_startup_program,
    name_scope,
    program_guard,
)
from fluidnb.regularizer import append_regularization_ops
from fluidnb.values.dtypes import dtype_name

ParamGrad = tuple[Parameter, Variable]


class Minimized(tuple[list[Operator], list[ParamGrad]]):
    """What `minimize` gives: (operators, (parameter, gradient) pairs), which shows itself in one line.

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


class Optimizer(OptimizerState):
    """The base of optimizers. One has a row of accumulators (`accumulators`) and one operator for each parameter.

    Args:
        learning_rate: a number, or a variable of shape [1] (for example a schedule).
        regularization: weight decay of parameters that have none of their own.
        name: part of the names of accumulators.
        global_step: a variable of shape [1] that goes on by 1 in every step, after the updates.

    Raises:
        OpTypeError: the learning rate, or the global step, is something else.

    Source: developer guide, section on what happens at compile time.
    """

    #: The operator's type.
    type = ""

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        """Create the variables that the optimizer keeps for each parameter, with `add_accumulator`.

        Args:
            block: the global block of the main program.
            parameters: the parameters that will be optimized.
        """

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        """Append the operator that updates one parameter.

        Args:
            block: the global block of the main program.
            param_and_grad: the parameter and its gradient.

        Returns:
            The operator.
        """
        raise NotImplementedError(f"{type(self).__name__} must define append_optimize_op(block, param_and_grad).")

    def finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        """Append what must run once after all parameters are updated; nothing unless an optimizer says so."""

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Variable | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> list[ParamGrad]:
        """The first part of `minimize`: gradients, with the error clips that variables have.

        Args:
            loss: what to make small.
            startup_program: kept for symmetry; gradients need no first value.
            parameter_list: parameters or names; None for all trainable ones.
            no_grad_set: variables or names that get no gradient.
            callbacks: see `append_backward`.

        Returns:
            (parameter, gradient) pairs.
        """
        with program_guard(loss.block.program, startup_program) if isinstance(loss, Variable) else nullcontext():
            return append_backward(loss, parameter_list, no_grad_set, [*(callbacks or ()), error_clip_callback])

    def apply_gradients(
        self, params_grads: Sequence[ParamGrad], grad_clip: BaseGradientClipAttr | None = None
    ) -> list[Operator]:
        """The second part of `minimize`: gradient clips, weight decay and the operators that update parameters.

        Args:
            params_grads: (parameter, gradient) pairs.
            grad_clip: clip for parameters without one of their own.

        Returns:
            All operators that it appended.

        Raises:
            OpValueError: there is nothing to optimize, or the program was optimized with this object before.
        """
        pairs = sorted(((p, g) for p, g in params_grads if g is not None), key=lambda pair: pair[0].name)
        if not pairs:
            raise OpValueError(
                "There is nothing to optimize.", expected="a trainable parameter on which the loss depends",
                received="no parameter with a gradient",
                hint="the loss depends on no trainable parameter, or all of them have stop_gradient.",
            )  # fmt: skip
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
        for param, grad in params_grads:
            with block.program.optimized_guard([param, grad]), name_scope("optimizer"):
                op = self.append_optimize_op(block, (param, grad))
                param.optimize_op_attrs = {"type": op.type, **op.desc.attrs}
        with block.program.role_guard(OpRole.Optimize):
            self.finish_update(block, params_grads)
            if self._global_step is not None:
                block.append_op(
                    type="increment", inputs={"X": self._global_step}, outputs={"Out": self._global_step},
                    attrs={"step": 1.0},
                )  # fmt: skip

    def create_optimization_pass(
        self, parameters_and_grads: Sequence[ParamGrad], loss: Variable, startup_program: Program | None = None
    ) -> list[Operator]:
        """The operators that update parameters alone, without clips and decay, as versions 0.11 to 1.2 made them.

        Args:
            parameters_and_grads: (parameter, gradient) pairs.
            loss: the loss; the operators go into its program.
            startup_program: where accumulators get their first values; None for the default one.

        Returns:
            All operators that it appended.

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
            self._optimize(main.global_block(), [(p, g) for p, g in parameters_and_grads if g is not None])
            return list(main.global_block().ops[start:])

    _create_optimization_pass = create_optimization_pass  # the name in version 1.0

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` into the programs of a loss.

        Args:
            loss: the loss.
            startup_program: where accumulators get their first values; None for the default one.
            params_grads: (parameter, gradient) pairs.

        Returns:
            All operators that it appended.
        """
        with program_guard(loss.block.program, startup_program):
            return self.apply_gradients(params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Variable | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        grad_clip: BaseGradientClipAttr | None = None,
    ) -> tuple[list[Operator], list[ParamGrad]]:
        """Append all that one training step needs: backward, error clips, gradient clips, weight decay, updates.

        Args:
            loss: what to make small, shape [1], in the global block.
            startup_program: where learning rate and accumulators get their first values; None for the default one.
            parameter_list: parameters or names; None for all trainable ones.
            no_grad_set: variables or names that get no gradient.
            grad_clip: clip for parameters without one of their own.

        Returns:
            (operators appended after backward, (parameter, gradient) pairs before clipping).

        Raises:
            OpTypeError: the loss is not a Variable.
            OpValueError: see `append_backward` and `apply_gradients`. Both programs are then as they were.

        Example:
            >>> x = fluid.layers.data("x", [13])
            >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
            >>> ops, pairs = fluid.optimizer.SGD(0.01).minimize(loss)
            >>> [op.type for op in ops], [p.name for p, _ in pairs]
            (['sgd', 'sgd'], ['fc_0.w_0', 'fc_0.b_0'])
        """
        if not isinstance(loss, Variable):
            raise OpTypeError(
                "loss should be a Variable.", expected="a Variable", received=f"{loss!r} ({type(loss).__name__})",
                hint="minimize takes what a layer gave, for example layers.mean(cost).",
            )  # fmt: skip
        startup = default_startup_program() if startup_program is None else startup_program
        with program_guard(loss.block.program, startup), all_or_nothing(loss.block.program, startup):
            params_grads = self.backward(loss, startup, parameter_list, no_grad_set)
            try:
                return Minimized((self.apply_gradients(params_grads, grad_clip), params_grads))
            except FluidError as error:
                raise error.with_context(slots=[("loss", loss.name, dtype_name(loss.dtype), loss.shape)]) from None
