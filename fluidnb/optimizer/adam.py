"""Adam."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class AdamOptimizer(Optimizer):
    """Steps scaled by running means of the gradient and of its square (Kingma, Ba 2014).

    ``m1 = beta1·m1 + (1-beta1)·g; m2 = beta2·m2 + (1-beta2)·g²;
    param -= learning_rate · sqrt(1-beta2^t) / (1-beta1^t) · m1 / (sqrt(m2) + epsilon)``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        beta1: exponential decay rate of the first moment.
        beta2: the share of the mean square that stays.
        epsilon: keeps the divisor from zero.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.
        lazy_mode: whether rows without a gradient stay as they are (for sparse gradients).

    Raises:
        OpValueError: a beta is not in [0, 1).

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)
        >>> ops[0].output("Moment1Out"), ops[0].output("Beta1PowOut")
        (['fc_0.w_0_moment1_0'], ['fc_0.w_0_beta1_pow_acc_0'])
    """

    type = "adam"

    _moment1_acc_str = "moment1"
    _moment2_acc_str = "moment2"
    _beta1_pow_acc_str = "beta1_pow_acc"
    _beta2_pow_acc_str = "beta2_pow_acc"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)
        self._lazy_mode = bool(lazy_mode)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._moment1_acc_str, param)
            self.add_accumulator(self._moment2_acc_str, param)
            self.add_accumulator(self._beta1_pow_acc_str, param, fill_value=self._beta1, shape=[1])
            self.add_accumulator(self._beta2_pow_acc_str, param, fill_value=self._beta2, shape=[1])

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        kept = {
            "Moment1": self.get_accumulator(self._moment1_acc_str, param),
            "Moment2": self.get_accumulator(self._moment2_acc_str, param),
            "Beta1Pow": self.get_accumulator(self._beta1_pow_acc_str, param),
            "Beta2Pow": self.get_accumulator(self._beta2_pow_acc_str, param),
        }
        return block.append_op(
            type="adam",
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param), **kept},
            outputs={"ParamOut": param, **{f"{slot}Out": v for slot, v in kept.items()}},
            attrs={"beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon, "lazy_mode": self._lazy_mode},
        )
