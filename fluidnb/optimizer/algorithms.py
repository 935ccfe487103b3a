"""Optimizers, each its accumulators and the attributes of its operator, and its short name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Variable, name_scope
from fluidnb.regularizer import WeightDecayRegularizer


class SGDOptimizer(Optimizer):
    """Stochastic gradient descent: ``param -= learning_rate · grad``.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1))
        >>> ops, pairs = fluid.optimizer.SGD(learning_rate=0.001).minimize(loss)
        >>> ops[0].input("LearningRate")[0].startswith("learning_rate_")
        True

    Source: developer guide, section on what happens at compile time.
    """

    type = "sgd"


SGD = SGDOptimizer


class MomentumOptimizer(Optimizer):
    """Gradient descent with a velocity: ``v = momentum · v + grad; param -= learning_rate · v``.

    With Nesterov's form the step is ``learning_rate · (grad + momentum · v)``.

    Args:
        momentum: the share of the velocity that stays.
        use_nesterov: whether to use Nesterov's form.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9).minimize(loss)
        >>> ops[0].input("Velocity")
        ['fc_0.w_0_velocity_0']
    """

    type = "momentum"
    _velocity_acc_str = "velocity"
    accumulators = {"Velocity": _velocity_acc_str}
    _argument_of = {"mu": "momentum"}

    def __init__(
        self, learning_rate: float | Variable, momentum: float, use_nesterov: bool = False,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"mu": float(momentum), "use_nesterov": bool(use_nesterov)}


Momentum = MomentumOptimizer


class AdagradOptimizer(Optimizer):
    """Steps scaled by the squares of all gradients so far (Duchi, Hazan, Singer 2011).

    ``moment = moment + grad²; param -= learning_rate · grad / (sqrt(moment) + epsilon)``.

    Args:
        initial_accumulator_value: initial value of the moment.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adagrad(learning_rate=0.2).minimize(loss)
        >>> ops[0].type, ops[0].input("Moment")
        ('adagrad', ['fc_0.w_0_moment_0'])
    """

    type = "adagrad"
    _moment_acc_str = "moment"
    accumulators = {"Moment": _moment_acc_str}

    def __init__(
        self, learning_rate: float | Variable, epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None,
        initial_accumulator_value: float = 0.0, *, global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"epsilon": float(epsilon)}
        self._initial = {self._moment_acc_str: float(initial_accumulator_value)}


Adagrad = AdagradOptimizer


class DecayedAdagradOptimizer(Optimizer):
    """Steps scaled by the squares of gradients, the older ones fading.

    ``moment = decay · moment + (1 - decay) · grad²; param -= learning_rate · grad / (sqrt(moment) + epsilon)``.

    Args:
        decay: the share of the moment that stays.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.DecayedAdagrad(learning_rate=0.2).minimize(loss)
        >>> ops[0].attr("decay")
        0.949999988079071
    """

    type = "decayed_adagrad"
    _moment_acc_str = "moment"
    accumulators = {"Moment": _moment_acc_str}

    def __init__(
        self, learning_rate: float | Variable, decay: float = 0.95, epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"epsilon": float(epsilon), "decay": float(decay)}


DecayedAdagrad = DecayedAdagradOptimizer


class AdadeltaOptimizer(Optimizer):
    """Steps as large as those of the past, whatever the gradient's unit (Zeiler 2012).

    ``a = rho · a + (1 - rho) · grad²; step = sqrt((u + epsilon) / (a + epsilon)) · grad;
    u = rho · u + (1 - rho) · step²; param -= learning_rate · step``.

    Fluid 1.x took its steps whole, whatever the learning rate; here it counts, as in Paddle 2. Say 1.0 for the former.

    Args:
        rho: the share of both means that stays.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Adadelta(learning_rate=1.0).minimize(loss)
        >>> ops[0].input("AvgSquaredUpdate")
        ['fc_0.w_0__avg_squared_update_0']
    """

    type = "adadelta"
    _avg_squared_grad_acc_str = "_avg_squared_grad"
    _avg_squared_update_acc_str = "_avg_squared_update"
    accumulators = {"AvgSquaredGrad": _avg_squared_grad_acc_str, "AvgSquaredUpdate": _avg_squared_update_acc_str}

    def __init__(
        self, learning_rate: float | Variable, epsilon: float = 1e-06, rho: float = 0.95,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"epsilon": float(epsilon), "rho": float(rho)}


Adadelta = AdadeltaOptimizer


class RMSPropOptimizer(Optimizer):
    """Steps scaled by a running mean of the gradient's square, with momentum (Hinton's lecture 6.5, 2012).

    ``s = rho · s + (1 - rho) · grad²; v = momentum · v + learning_rate · grad / sqrt(s - a² + epsilon); param -= v``,
    where ``a`` is 0, or with ``centered`` the running mean of the gradient.

    Args:
        rho: the share of the means that stays.
        momentum: the share of the step that stays.
        centered: whether to divide by the deviation from the mean gradient.

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
    accumulators = {"Moment": _momentum_acc_str, "MeanSquare": _mean_square_acc_str, "MeanGrad": _mean_grad_acc_str}
    _argument_of = {"decay": "rho"}

    def __init__(
        self, learning_rate: float | Variable, rho: float = 0.95, epsilon: float = 1e-06,
        momentum: float = 0.0, centered: bool = False,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {
            "epsilon": float(epsilon), "decay": float(rho), "momentum": float(momentum), "centered": bool(centered),
        }  # fmt: skip


RMSProp = RMSPropOptimizer


class AdamaxOptimizer(Optimizer):
    """Adam with the largest gradient in place of the mean square (Kingma, Ba 2014).

    ``m = beta1·m + (1-beta1)·g; n = max(beta2·n + epsilon, |g|); param -= learning_rate / (1-beta1^t) · m / n``.

    Args:
        beta1: exponential decay rate of the first moment.
        beta2: the share of the largest gradient that stays.

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
    accumulators = {"Moment": _moment_acc_str, "InfNorm": _inf_norm_acc_str, "Beta1Pow": _beta1_pow_acc_str}

    def __init__(
        self, learning_rate: float | Variable = 0.001, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float = 1e-08,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        self._initial = {self._beta1_pow_acc_str: float(beta1)}

    def finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        for param, grad in parameters_and_grads:
            power = self.get_accumulator(self._beta1_pow_acc_str, param)
            with block.program.optimized_guard([param, grad]), name_scope("adamx"):  # Fluid's own spelling
                block.append_op(
                    type="scale", inputs={"X": power}, outputs={"Out": power}, attrs={"scale": self._attrs["beta1"]}
                )


Adamax = AdamaxOptimizer


class AdamOptimizer(Optimizer):
    """Steps scaled by running means of the gradient and of its square (Kingma, Ba 2014).

    ``m1 = beta1·m1 + (1-beta1)·g; m2 = beta2·m2 + (1-beta2)·g²;
    param -= learning_rate · sqrt(1-beta2^t) / (1-beta1^t) · m1 / (sqrt(m2) + epsilon)``.

    Args:
        beta1: exponential decay rate of the first moment.
        beta2: exponential decay rate of the second moment.
        lazy_mode: whether rows without a gradient stay as they are (for sparse gradients).

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
    accumulators = {
        "Moment1": _moment1_acc_str, "Moment2": _moment2_acc_str, "Beta1Pow": _beta1_pow_acc_str,
        "Beta2Pow": _beta2_pow_acc_str,
    }  # fmt: skip

    def __init__(
        self, learning_rate: float | Variable = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, lazy_mode: bool = False, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {
            "beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon), "lazy_mode": bool(lazy_mode),
        }  # fmt: skip
        self._initial = {self._beta1_pow_acc_str: float(beta1), self._beta2_pow_acc_str: float(beta2)}


Adam = AdamOptimizer


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: parameters of no use stay at zero (McMahan et al. 2013).

    Args:
        l1: weight of the sum of absolute values.
        l2: weight of the sum of squares; it counts twice.
        lr_power: how the learning rate falls with the sum of squared gradients.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Ftrl(learning_rate=0.1, l1=0.5).minimize(loss)
        >>> ops[0].input("SquaredAccumulator"), ops[0].attr("l1")
        (['fc_0.w_0_squared_0'], 0.5)
    """

    type = "ftrl"
    _squared_acc_str = "squared"
    _linear_acc_str = "linear"
    accumulators = {"SquaredAccumulator": _squared_acc_str, "LinearAccumulator": _linear_acc_str}

    def __init__(
        self, learning_rate: float | Variable, l1: float = 0.0, l2: float = 0.0, lr_power: float = -0.5,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {"l1": float(l1), "l2": float(l2), "lr_power": float(lr_power)}


Ftrl = FtrlOptimizer


class LambOptimizer(AdamOptimizer):
    """Adam's direction, with a step as long as the parameter says (You et al. 2019).

    ``r = (m1 / (1-beta1^t)) / (sqrt(m2 / (1-beta2^t)) + epsilon) + lamb_weight_decay · param;
    param -= learning_rate · |param| / |r| · r``, with the running means m1 and m2 of Adam.

    Args:
        lamb_weight_decay: how much of the parameter is added to the direction.
        beta1: exponential decay rate of the first moment.
        beta2: exponential decay rate of the second moment.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.Lamb(learning_rate=0.01, lamb_weight_decay=0.5).minimize(loss)
        >>> ops[0].type, ops[0].attr("weight_decay")
        ('lamb', 0.5)
    """

    type = "lamb"
    _argument_of = {"weight_decay": "lamb_weight_decay"}

    def __init__(
        self, learning_rate: float | Variable = 0.001, lamb_weight_decay: float = 0.01, beta1: float = 0.9,
        beta2: float = 0.999, epsilon: float = 1e-06,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, regularization, name, global_step=global_step)
        del self._attrs["lazy_mode"]
        self._attrs["weight_decay"] = float(lamb_weight_decay)


Lamb = LambOptimizer


class LarsMomentumOptimizer(Optimizer):
    """Momentum whose learning rate follows the sizes of parameter and gradient (You, Gitman, Ginsburg 2017).

    ``rate = learning_rate · lars_coeff · |param| / (|grad| + lars_weight_decay · |param|);
    v = momentum · v + rate · (grad + lars_weight_decay · param); param -= v``.

    Args:
        momentum: the share of the velocity that stays.
        lars_coeff: how far to trust the ratio of sizes.
        lars_weight_decay: weight decay.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.LarsMomentum(learning_rate=0.01, momentum=0.9).minimize(loss)
        >>> ops[0].input("Velocity")
        ['fc_0.w_0_velocity_0']
    """

    type = "lars_momentum"
    _velocity_acc_str = "velocity"
    accumulators = {"Velocity": _velocity_acc_str}
    _argument_of = {"mu": "momentum"}

    def __init__(
        self, learning_rate: float | Variable, momentum: float, lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        regularization: WeightDecayRegularizer | None = None, name: str | None = None, *,
        global_step: Variable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, regularization, name, global_step=global_step)
        self._attrs = {
            "mu": float(momentum), "lars_coeff": float(lars_coeff), "lars_weight_decay": [float(lars_weight_decay)],
        }  # fmt: skip


LarsMomentum = LarsMomentumOptimizer

if not TYPE_CHECKING:  # type checkers see the classes of this file without a list
    __all__ = [name for name, value in globals().items() if getattr(value, "__module__", "") == __name__]
