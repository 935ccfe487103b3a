"""Stochastic gradient descent, plain and with momentum."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class SGDOptimizer(Optimizer):
    """Stochastic gradient descent: ``param -= learning_rate · grad``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        regularization: weight decay of parameters without a regularizer.
        name: kept for symmetry; the optimizer has no accumulators to name.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1))
        >>> ops, pairs = fluid.optimizer.SGD(learning_rate=0.001).minimize(loss)
        >>> ops[0].input("LearningRate")[0].startswith("learning_rate_")
        True

    Source: developer guide, section on what happens at compile time.
    """

    type = "sgd"

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        return block.append_op(
            type="sgd",
            inputs={"Param": [param], "Grad": [grad], "LearningRate": [self.param_learning_rate(param)]},
            outputs={"ParamOut": [param]},
        )


class MomentumOptimizer(Optimizer):
    """Gradient descent with a velocity: ``v = momentum · v + grad; param -= learning_rate · v``.

    With Nesterov's form the step is ``learning_rate · (grad + momentum · v)``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        momentum: the share of the velocity that stays.
        use_nesterov: whether to use Nesterov's form.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9).minimize(loss)
        >>> ops[0].input("Velocity")
        ['fc_0.w_0_velocity_0']
    """

    type = "momentum"

    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        use_nesterov: bool = False,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._momentum, self._use_nesterov = float(momentum), bool(use_nesterov)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._velocity_acc_str, param)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        velocity = self.get_accumulator(self._velocity_acc_str, param)
        return block.append_op(
            type="momentum",
            inputs={
                "Param": [param],
                "Grad": [grad],
                "Velocity": [velocity],
                "LearningRate": [self.param_learning_rate(param)],
            },
            outputs={"ParamOut": [param], "VelocityOut": [velocity]},
            attrs={"mu": self._momentum, "use_nesterov": self._use_nesterov},
        )
