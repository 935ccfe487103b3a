"""Lamb and LarsMomentum: steps that follow the size of each parameter."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.adam import AdamOptimizer
from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class LambOptimizer(AdamOptimizer):
    """Adam's direction, with a step as long as the parameter says (You et al. 2019).

    ``r = (m1 / (1-beta1^t)) / (sqrt(m2 / (1-beta2^t)) + epsilon) + lamb_weight_decay · param;
    param -= learning_rate · |param| / |r| · r``, with the running means m1 and m2 of Adam.

    Args:
        learning_rate: a number, or a variable of shape [1].
        lamb_weight_decay: how much of the parameter is added to the direction.
        beta1: exponential decay rate of the first moment.
        beta2: the share of the mean square that stays.
        epsilon: keeps the divisor from zero.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Raises:
        OpValueError: a beta is not in [0, 1).

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Lamb(learning_rate=0.01, lamb_weight_decay=0.5).minimize(loss)
        >>> ops[0].type, ops[0].attr("weight_decay")
        ('lamb', 0.5)
    """

    type = "lamb"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, regularization, name, global_step=global_step)
        self._weight_decay = float(lamb_weight_decay)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        kept = {
            "Moment1": self.get_accumulator("moment1", param),
            "Moment2": self.get_accumulator("moment2", param),
            "Beta1Pow": self.get_accumulator("beta1_pow_acc", param),
            "Beta2Pow": self.get_accumulator("beta2_pow_acc", param),
        }
        return block.append_op(
            type="lamb",
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param), **kept},
            outputs={"ParamOut": param, **{f"{slot}Out": v for slot, v in kept.items()}},
            attrs={
                "beta1": self._beta1,
                "beta2": self._beta2,
                "epsilon": self._epsilon,
                "weight_decay": self._weight_decay,
            },
        )


class LarsMomentumOptimizer(Optimizer):
    """Momentum whose learning rate follows the sizes of parameter and gradient (You, Gitman, Ginsburg 2017).

    ``rate = learning_rate · lars_coeff · |param| / (|grad| + lars_weight_decay · |param|);
    v = momentum · v + rate · (grad + lars_weight_decay · param); param -= v``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        momentum: the share of the velocity that stays.
        lars_coeff: how far to trust the ratio of sizes.
        lars_weight_decay: weight decay.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.LarsMomentum(learning_rate=0.01, momentum=0.9).minimize(loss)
        >>> ops[0].input("Velocity")
        ['fc_0.w_0_velocity_0']
    """

    type = "lars_momentum"

    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._momentum = float(momentum)
        self._lars_coeff, self._lars_weight_decay = float(lars_coeff), float(lars_weight_decay)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._velocity_acc_str, param)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        velocity = self.get_accumulator(self._velocity_acc_str, param)
        return block.append_op(
            type="lars_momentum",
            inputs={
                "Param": [param],
                "Grad": [grad],
                "Velocity": [velocity],
                "LearningRate": [self.param_learning_rate(param)],
            },
            outputs={"ParamOut": [param], "VelocityOut": [velocity]},
            attrs={
                "mu": self._momentum,
                "lars_coeff": self._lars_coeff,
                "lars_weight_decay": [self._lars_weight_decay],
            },
        )
