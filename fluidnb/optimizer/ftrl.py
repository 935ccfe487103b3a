"""Follow the regularized leader."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: parameters of no use stay at zero (McMahan et al. 2013).

    Args:
        learning_rate: a number, or a variable of shape [1].
        l1: weight of the sum of absolute values.
        l2: weight of the sum of squares; it counts twice.
        lr_power: how the learning rate falls with the sum of squared gradients.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Ftrl(learning_rate=0.1, l1=0.5).minimize(loss)
        >>> ops[0].input("SquaredAccumulator"), ops[0].attr("l1")
        (['fc_0.w_0_squared_0'], 0.5)
    """

    type = "ftrl"

    _squared_acc_str = "squared"
    _linear_acc_str = "linear"

    def __init__(
        self,
        learning_rate: float | Variable,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._l1, self._l2, self._lr_power = float(l1), float(l2), float(lr_power)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._squared_acc_str, param)
            self.add_accumulator(self._linear_acc_str, param)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        squared = self.get_accumulator(self._squared_acc_str, param)
        linear = self.get_accumulator(self._linear_acc_str, param)
        return block.append_op(
            type="ftrl",
            inputs={
                "Param": param,
                "Grad": grad,
                "SquaredAccumulator": squared,
                "LinearAccumulator": linear,
                "LearningRate": self.param_learning_rate(param),
            },
            outputs={"ParamOut": param, "SquaredAccumOut": squared, "LinearAccumOut": linear},
            attrs={"l1": self._l1, "l2": self._l2, "lr_power": self._lr_power},
        )
