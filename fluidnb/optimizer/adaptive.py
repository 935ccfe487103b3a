"""Adadelta, RMSProp and Adamax: steps scaled by running measures of the gradient."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class AdadeltaOptimizer(Optimizer):
    """Steps as large as those of the past, whatever the gradient's unit (Zeiler 2012).

    ``a = rho · a + (1 - rho) · grad²; step = sqrt((u + epsilon) / (a + epsilon)) · grad;
    u = rho · u + (1 - rho) · step²; param -= learning_rate · step``.

    Fluid 1.x took its steps whole, whatever the learning rate; here it counts, as in Paddle 2. Say 1.0 for the former.

    Args:
        learning_rate: a number, or a variable of shape [1].
        epsilon: keeps the divisor from zero.
        rho: the share of both means that stays.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adadelta(learning_rate=1.0).minimize(loss)
        >>> ops[0].input("AvgSquaredUpdate")
        ['fc_0.w_0__avg_squared_update_0']
    """

    type = "adadelta"

    _avg_squared_grad_acc_str = "_avg_squared_grad"
    _avg_squared_update_acc_str = "_avg_squared_update"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1e-06,
        rho: float = 0.95,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._epsilon, self._rho = float(epsilon), float(rho)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._avg_squared_grad_acc_str, param)
            self.add_accumulator(self._avg_squared_update_acc_str, param)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        kept = {
            "AvgSquaredGrad": self.get_accumulator(self._avg_squared_grad_acc_str, param),
            "AvgSquaredUpdate": self.get_accumulator(self._avg_squared_update_acc_str, param),
        }
        return block.append_op(
            type="adadelta",
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param), **kept},
            outputs={"ParamOut": param, **{f"{slot}Out": v for slot, v in kept.items()}},
            attrs={"epsilon": self._epsilon, "rho": self._rho},
        )


class RMSPropOptimizer(Optimizer):
    """Steps scaled by a running mean of the gradient's square, with momentum (Hinton's lecture 6.5, 2012).

    ``s = rho · s + (1 - rho) · grad²; v = momentum · v + learning_rate · grad / sqrt(s - a² + epsilon); param -= v``,
    where ``a`` is 0, or with ``centered`` the running mean of the gradient.

    Args:
        learning_rate: a number, or a variable of shape [1].
        rho: the share of the means that stays.
        epsilon: keeps the divisor from zero.
        momentum: the share of the step that stays.
        centered: whether to divide by the deviation from the mean gradient.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.RMSProp(learning_rate=0.1, centered=True).minimize(loss)
        >>> ops[0].input("MeanSquare"), ops[0].attr("centered")
        (['fc_0.w_0_mean_square_0'], True)
    """

    type = "rmsprop"

    _momentum_acc_str = "momentum"
    _mean_square_acc_str = "mean_square"
    _mean_grad_acc_str = "mean_grad"

    def __init__(
        self,
        learning_rate: float | Variable,
        rho: float = 0.95,
        epsilon: float = 1e-06,
        momentum: float = 0.0,
        centered: bool = False,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._rho, self._epsilon, self._momentum = float(rho), float(epsilon), float(momentum)
        self._centered = bool(centered)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            for what in ("momentum", "mean_square", "mean_grad"):
                self.add_accumulator(what, param)

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        kept = {
            "Moment": self.get_accumulator(self._momentum_acc_str, param),
            "MeanSquare": self.get_accumulator(self._mean_square_acc_str, param),
            "MeanGrad": self.get_accumulator(self._mean_grad_acc_str, param),
        }
        return block.append_op(
            type="rmsprop",
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param), **kept},
            outputs={"ParamOut": param, **{f"{slot}Out": v for slot, v in kept.items()}},
            attrs={
                "epsilon": self._epsilon,
                "decay": self._rho,
                "momentum": self._momentum,
                "centered": self._centered,
            },
        )


class AdamaxOptimizer(Optimizer):
    """Adam with the largest gradient in place of the mean square (Kingma, Ba 2014).

    ``m = beta1·m + (1-beta1)·g; n = max(beta2·n + epsilon, |g|); param -= learning_rate / (1-beta1^t) · m / n``.

    Args:
        learning_rate: a number, or a variable of shape [1].
        beta1: exponential decay rate of the first moment.
        beta2: the share of the largest gradient that stays.
        epsilon: keeps the divisor from zero.
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.
        global_step: a variable of shape [1], incremented by 1 in every step.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adamax(learning_rate=0.01).minimize(loss)
        >>> [op.type for op in ops]
        ['adamax', 'scale']
    """

    type = "adamax"

    _moment_acc_str = "moment"
    _inf_norm_acc_str = "inf_norm"
    _beta1_pow_acc_str = "beta1_pow_acc"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        for param in parameters:
            self.add_accumulator(self._moment_acc_str, param)
            self.add_accumulator(self._inf_norm_acc_str, param)
            self.add_accumulator(self._beta1_pow_acc_str, param, fill_value=self._beta1, shape=[1])

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        kept = {
            "Moment": self.get_accumulator(self._moment_acc_str, param),
            "InfNorm": self.get_accumulator(self._inf_norm_acc_str, param),
        }
        return block.append_op(
            type="adamax",
            inputs={
                "Param": param,
                "Grad": grad,
                "LearningRate": self.param_learning_rate(param),
                "Beta1Pow": self.get_accumulator(self._beta1_pow_acc_str, param),
                **kept,
            },
            outputs={"ParamOut": param, **{f"{slot}Out": v for slot, v in kept.items()}},
            attrs={"beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon},
        )

    def finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        for param, _ in parameters_and_grads:
            power = self.get_accumulator(self._beta1_pow_acc_str, param)
            block.append_op(type="scale", inputs={"X": power}, outputs={"Out": power}, attrs={"scale": self._beta1})
