"""Training with less memory: activations are computed a second time instead of being kept."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.backward import Loss
from fluidnb.backward.emit import Callback
from fluidnb.backward.path import names_of
from fluidnb.clip import BaseGradientClipAttr
from fluidnb.errors import OpValueError
from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Operator, Parameter, Program, Variable

Names = Iterable[Variable | str]


class RecomputeOptimizer(Optimizer):
    """Another optimizer, whose gradients compute the activations between checkpoints a second time.

    Only checkpoints live from forward to backward, and what must not be computed twice: random numbers, loops and
    branches, values that operators overwrite. The parameters after a step are the same, bit for bit.

    Args:
        optimizer: the optimizer that updates the parameters.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> h = fluid.layers.fc(fluid.layers.fc(x, 64, act="tanh"), 64, act="tanh")
        >>> g = fluid.layers.fc(h, 64, act="relu")
        >>> loss = fluid.layers.mean(fluid.layers.fc(g, 1))
        >>> sgd = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.01))
        >>> sgd._set_checkpoints([h, g])
        >>> ops, pairs = sgd.minimize(loss)
        >>> ops = fluid.default_main_program().global_block().ops
        >>> [op.type for op in ops if "subprog" in str(op.output_arg_names)]
        ['mul', 'elementwise_add', 'tanh']

    Source: fluid.optimizer.RecomputeOptimizer; Chen et al., "Training deep nets with sublinear memory cost", 2016.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer._learning_rate, optimizer.regularization, optimizer._name)
        self._optimizer = optimizer

    @property
    def _arguments(self) -> dict[str, Any]:
        return {"optimizer": self._optimizer}

    @checked
    def _set_checkpoints(self, checkpoints: Names | Variable) -> None:
        """Say which variables are kept; the name is Fluid's.

        Args:
            checkpoints: one or more variables of the main program, or their names.
        """
        self._checkpoints = list(names_of(checkpoints, "checkpoints"))

    def backward(
        self, loss: Loss, startup_program: Program | None = None,
        parameter_list: Names | None = None, no_grad_set: Names | None = None,
        callbacks: Sequence[Callback] | None = None, checkpoints: Names | None = None,
    ) -> list[ParamGrad]:  # fmt: skip
        """As `Optimizer.backward`, with recomputation between ``checkpoints``; None for those of ``_set_checkpoints``.

        Raises:
            OpValueError: there are no checkpoints, or see `append_backward`.
        """
        if checkpoints is not None:
            self._set_checkpoints(checkpoints)
        if not self._checkpoints:
            raise OpValueError(
                "RecomputeOptimizer has no checkpoints.", expected="at least one variable that is kept",
                received="none", hint="call _set_checkpoints([h, ...]) with results of layers before minimize().",
            )  # fmt: skip
        return super().backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    # What updates parameters, and what it keeps for them, is the wrapped optimizer's.

    def apply_gradients(
        self, params_grads: Sequence[ParamGrad], grad_clip: BaseGradientClipAttr | None = None
    ) -> list[Operator]:
        """As the wrapped optimizer's."""
        return self._optimizer.apply_gradients(params_grads, grad_clip)

    def create_optimization_pass(
        self, parameters_and_grads: Sequence[ParamGrad], loss: Loss, startup_program: Program | None = None
    ) -> list[Operator]:
        """As the wrapped optimizer's."""
        return self._optimizer.create_optimization_pass(parameters_and_grads, loss, startup_program)

    _create_optimization_pass = create_optimization_pass  # the name in version 1.0

    @property
    def _accumulators(self) -> dict[str, dict[str, Variable]]:
        return self._optimizer._accumulators

    def get_accumulator(self, name: str, param: Parameter) -> Variable:
        """An accumulator of the wrapped optimizer."""
        return self._optimizer.get_accumulator(name, param)

    def global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The learning rate's variable in a program; see `Optimizer.global_learning_rate`."""
        return self._optimizer.global_learning_rate(program)

    def get_opti_var_name_list(self) -> list[str]:
        """The names of all variables that the wrapped optimizer keeps."""
        return self._optimizer.get_opti_var_name_list()

    def load(self, stat_dict: Mapping[str, Any]) -> None:
        """Give the variables that the wrapped optimizer keeps their values; see `Optimizer.load`."""
        self._optimizer.load(stat_dict)
