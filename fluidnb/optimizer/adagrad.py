"""Adagrad, with and without decay."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class _Scaled(Optimizer):
    """Shared base of two optimizers with one accumulator, the moment."""

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float,
        regularization: WeightDecayRegularizer | None,
        name: str | None,
        first: float,
        global_step: Variable | None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._epsilon, self._first = float(epsilon), float(first)
        self._attrs = {"epsilon": self._epsilon}

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator("moment", param, fill_value=self._first)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        moment = self.get_accumulator("moment", param)
        return block.append_op(
            type=self.type,
            inputs={
                "Param": [param],
                "Grad": [grad],
                "Moment": [moment],
                "LearningRate": [self.param_learning_rate(param)],
            },
            outputs={"ParamOut": [param], "MomentOut": [moment]},
            attrs=self._attrs,
        )


class AdagradOptimizer(_Scaled):
    """Steps scaled by the squares of all gradients so far (Duchi, Hazan, Singer 2011).

    ``moment = moment + grad²; param -= learning_rate · grad / (sqrt(moment) + epsilon)``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        epsilon: keeps the divisor from zero.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        initial_accumulator_value: initial value of the moment.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adagrad(learning_rate=0.2).minimize(loss)
        >>> ops[0].type, ops[0].input("Moment")
        ('adagrad', ['fc_0.w_0_moment_0'])
    """

    type = "adagrad"

    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, epsilon, regularization, name, initial_accumulator_value, global_step)


class DecayedAdagradOptimizer(_Scaled):
    """Steps scaled by the squares of gradients, the older ones fading.

    ``moment = decay · moment + (1 - decay) · grad²; param -= learning_rate · grad / (sqrt(moment) + epsilon)``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        decay: the share of the moment that stays.
        epsilon: keeps the divisor from zero.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.DecayedAdagrad(learning_rate=0.2).minimize(loss)
        >>> ops[0].attr("decay")
        0.949999988079071
    """

    type = "decayed_adagrad"

    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: float | Variable,
        decay: float = 0.95,
        epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, epsilon, regularization, name, 0.0, global_step)
        self._attrs["decay"] = float(decay)
