"""Training with less memory: activations are computed a second time instead of being kept."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from fluidnb.backward import Loss, append_backward
from fluidnb.backward.emit import Callback
from fluidnb.clip import BaseGradientClipAttr, error_clip_callback
from fluidnb.errors import OpValueError
from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Operator, Program, Variable, program_guard

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
        self._checkpoints: list[Variable | str] | None = None

    @property
    def _arguments(self) -> dict[str, Any]:
        return {"optimizer": self._optimizer}

    def _set_checkpoints(self, checkpoints: Names) -> None:
        """Say which variables are kept; the name is Fluid's.

        Args:
            checkpoints: variables of the main program, or their names.
        """
        self._checkpoints = list(checkpoints)

    def backward(
        self, loss: Loss, startup_program: Program | None = None,
        parameter_list: Names | None = None, no_grad_set: Names | None = None,
        callbacks: Sequence[Callback] | None = None, checkpoints: Names | None = None,
    ) -> list[ParamGrad]:  # fmt: skip
        """The first part of `minimize`: gradients, with recomputation.

        Args:
            loss: what to make small.
            startup_program: kept for symmetry; gradients need no initial value.
            parameter_list: parameters or names; None for all trainable ones.
            no_grad_set: variables or names that get no gradient.
            callbacks: see `append_backward`.
            checkpoints: variables or names that are kept; None for those of ``_set_checkpoints``.

        Returns:
            (parameter, gradient) pairs.

        Raises:
            OpValueError: there are no checkpoints, or see `append_backward`.
        """
        kept = self._checkpoints if checkpoints is None else list(checkpoints)
        if not kept:
            raise OpValueError(
                "RecomputeOptimizer has no checkpoints.", expected="at least one variable that is kept",
                received="none", hint="call _set_checkpoints([h, ...]) with results of layers before minimize().",
            )  # fmt: skip
        with program_guard(loss.block.program, startup_program) if isinstance(loss, Variable) else nullcontext():
            clips = [*(callbacks or ()), error_clip_callback]
            return append_backward(loss, parameter_list, no_grad_set, clips, kept)

    def apply_gradients(
        self, params_grads: Sequence[ParamGrad], grad_clip: BaseGradientClipAttr | None = None
    ) -> list[Operator]:
        """As the wrapped optimizer's.

        Args:
            params_grads: (parameter, gradient) pairs.
            grad_clip: clip for parameters without one.

        Returns:
            All operators that it appended.
        """
        return self._optimizer.apply_gradients(params_grads, grad_clip)

    def get_opti_var_name_list(self) -> list[str]:
        """The names of all variables that the wrapped optimizer keeps."""
        return self._optimizer.get_opti_var_name_list()

    def load(self, stat_dict: Mapping[str, Any]) -> None:
        """Give the variables that the wrapped optimizer keeps their values; see `Optimizer.load`."""
        self._optimizer.load(stat_dict)
