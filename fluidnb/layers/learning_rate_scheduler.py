"""Schedules: learning rates that the program computes anew in every step from a counter of steps.

Each schedule appends a few operators and gives the rate, a variable of shape [1], for an optimizer's
``learning_rate``. The schedules of a program share one counter, ``@LR_DECAY_COUNTER@``, which the first of them makes;
it is persistable, so that training resumes where it was saved. ``clone(for_test=True)`` reads it, but does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers import creation as tensor
from fluidnb.layers.activation import ceil, cos, exp, floor, sqrt, square
from fluidnb.layers.control_flow.switch import Switch
from fluidnb.layers.math import elementwise_max, elementwise_min, reduce_sum
from fluidnb.layers.one_op import family
from fluidnb.program import OpRole, Parameter, Variable, default_main_program, unique_name
from fluidnb.program import layer_calls as naming

__all__ = [
    "append_LARS", "autoincreased_step_counter", "cosine_decay", "exponential_decay", "inverse_time_decay",
    "linear_lr_warmup", "natural_exp_decay", "noam_decay", "piecewise_decay", "polynomial_decay",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

_COUNTER = "@LR_DECAY_COUNTER@"


@naming.layer
def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """A counter that is incremented at the start of every run of the main program.

    Args:
        counter_name: its name; None for ``@STEP_COUNTER@``. A counter that exists already is given back as it is.
        begin: its value in the first run.
        step: the increment per run.

    Returns:
        Int64 [1], persistable; the startup program sets it back.

    Raises:
        OpValueError: the counter exists with a different ``step``.

    Example:
        >>> counter = fluid.layers.autoincreased_step_counter(begin=0)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program())
        >>> [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)]
        [0, 1, 2]
    """
    name = counter_name or "@STEP_COUNTER@"
    if abs(step) >= 2**63 or int(np.float32(step)) != step:
        raise OpValueError(
            "The step of a counter is a 32-bit float.", expected="a number that it has, as all up to 2^24",
            received=step, hint="multiply the counter by the step instead.",
        )  # fmt: skip
    helper = LayerHelper("global_step_counter")
    block = helper.main_program.global_block()
    counter, is_new = helper.create_or_get_global_variable(
        name, dtype="int64", shape=[1], persistable=True, stop_gradient=True
    )
    if is_new:
        helper.set_variable_initializer(counter, Constant(int(begin) - int(step), force_cpu=True))
        block.prepend_op(
            type="increment", inputs={"X": [counter]}, outputs={"Out": [counter]}, attrs={"step": float(step)}
        )
    for op in block.desc.ops:
        if op.optype == "increment" and op.output("Out") == [name] and op.attr("step") != step:
            raise OpValueError(
                f"The counter {name} already exists with a different step.", expected=f"step={op.attr('step')}",
                received=f"step={step}", hint="give this one a different counter_name.",
            )  # fmt: skip
    return counter


def _schedule(function: Callable[P, R]) -> Callable[P, R]:
    """Make what a function appends part of the schedule, not of the model."""

    @wraps(function)
    def scheduled(*args: P.args, **kwargs: P.kwargs) -> R:
        with default_main_program().role_guard(OpRole.LRSched):
            return function(*args, **kwargs)

    return scheduled


def _decay_step_counter(begin: int = 0) -> Variable:
    """The number of the step that runs, from the counter that schedules share, as float32."""
    return tensor.cast(autoincreased_step_counter(_COUNTER, begin=begin), "float32")


def _periods(decay_steps: int, staircase: bool) -> Variable:
    """The number of periods of ``decay_steps`` steps, an integer for a staircase."""
    _check_above_zero(decay_steps=decay_steps)
    periods = _decay_step_counter() / decay_steps
    return floor(periods) if staircase else periods


def _check_above_zero(**arguments: object) -> None:
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, float | int | Variable):
            raise OpTypeError(f"{name} of a schedule is a number.", expected="a number above 0", received=repr(value))
        if not isinstance(value, Variable) and not value > 0:
            raise OpValueError(f"{name} of a schedule must be above 0.", expected="a number above 0", received=value)


def _global_rate(name: str) -> Variable:
    """A variable for a rate that branches write."""
    if LayerHelper(name).main_program.global_block().has_var(name):
        name = unique_name.generate(name)
    return tensor.create_global_var([1], 0.0, "float32", persistable=True, name=name)


@naming.layer
@_schedule
def noam_decay(
    d_model: float | Variable, warmup_steps: float | Variable, learning_rate: float | Variable = 1.0
) -> Variable:
    """Grows for ``warmup_steps`` steps, then falls with the square root of the step (Vaswani et al. 2017).

    ``learning_rate · d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)``, the first step being 1.

    Args:
        d_model: width of the model.
        warmup_steps: how many steps it grows.
        learning_rate: factor on the whole.

    Returns:
        Float32 [1].

    Example:
        >>> rate = fluid.layers.noam_decay(d_model=512, warmup_steps=4000)
        >>> optimizer = fluid.optimizer.Adam(learning_rate=rate)
        >>> rate.shape
        (1,)
    """
    _check_above_zero(d_model=d_model, warmup_steps=warmup_steps)
    step = _decay_step_counter(begin=1)
    try:
        slope = warmup_steps**-1.5
    except OverflowError:
        raise OpValueError(
            "warmup_steps of a schedule is too small.", expected="a number of steps", received=warmup_steps
        ) from None
    falling, growing = step**-0.5, slope * step
    return learning_rate * d_model**-0.5 * elementwise_min(falling, growing)


@family
@_schedule
def _decay(
    name: str, learning_rate: float | Variable, decay_steps: int, decay_rate: float | Variable, staircase: bool = False
) -> Variable:
    """{summary}.

    Args:
        learning_rate: the rate at step 0.
        decay_steps: see above.
        decay_rate: see above.
        staircase: whether the rate keeps its value for ``decay_steps`` steps instead of falling in each.

    Returns:
        Float32 [1].

    Example:
        >>> fluid.layers.{name}(0.1, decay_steps=100, decay_rate=0.5).shape
        (1,)
    """
    periods = _periods(decay_steps, staircase)
    if name == "exponential_decay":
        return learning_rate * decay_rate**periods
    if name == "natural_exp_decay":
        return learning_rate * exp(-1 * decay_rate * periods)
    return learning_rate / (1 + decay_rate * periods)


exponential_decay = _decay(
    "exponential_decay",
    "Multiplied by ``decay_rate`` every ``decay_steps`` steps: ``learning_rate · decay_rate^(step / decay_steps)``",
)
natural_exp_decay = _decay(
    "natural_exp_decay", "Falls by powers of e: ``learning_rate · exp(-decay_rate · step / decay_steps)``"
)
inverse_time_decay = _decay(
    "inverse_time_decay", "Falls like one over the step: ``learning_rate / (1 + decay_rate · step / decay_steps)``"
)


@naming.layer
@_schedule
def polynomial_decay(
    learning_rate: float | Variable, decay_steps: int, end_learning_rate: float | Variable = 0.0001, power: float = 1.0,
    cycle: bool = False,
) -> Variable:  # fmt: skip
    """Falls to an end value along a power of the share of steps that are left.

    ``(learning_rate - end_learning_rate) · (1 - step / decay_steps)^power + end_learning_rate``.

    Args:
        learning_rate: the rate at step 0.
        decay_steps: after so many steps the rate is ``end_learning_rate``.
        end_learning_rate: see above.
        power: see above.
        cycle: whether it then decays again from a higher rate, over ``decay_steps`` more steps, instead of staying.

    Returns:
        Float32 [1].

    Example:
        >>> fluid.layers.polynomial_decay(0.1, decay_steps=100, end_learning_rate=0.01, power=2.0).shape
        (1,)
    """
    _check_above_zero(decay_steps=decay_steps)
    step = _decay_step_counter()
    if cycle:
        begun = ceil(step / decay_steps)
        one = tensor.fill_constant([1], "float32", 1.0)
        passed = step / (elementwise_max(begun, one) * decay_steps)
    else:
        last = tensor.fill_constant([1], "float32", float(decay_steps))
        passed = elementwise_min(step, last) / decay_steps
    return (learning_rate - end_learning_rate) * (1 - passed) ** power + end_learning_rate


@naming.layer
@_schedule
def cosine_decay(learning_rate: float | Variable, step_each_epoch: int, epochs: int) -> Variable:
    """Falls to 0 along half a cosine, epoch by epoch (Loshchilov, Hutter 2016).

    ``learning_rate / 2 · (cos(π · epoch / epochs) + 1)``, where ``epoch = floor(step / step_each_epoch)``.

    Args:
        learning_rate: the rate in the first epoch.
        step_each_epoch: steps of an epoch.
        epochs: after so many epochs the rate is 0.

    Returns:
        Float32 [1].

    Example:
        >>> fluid.layers.cosine_decay(0.1, step_each_epoch=1000, epochs=90).shape
        (1,)
    """
    _check_above_zero(step_each_epoch=step_each_epoch, epochs=epochs)
    epoch = _periods(step_each_epoch, staircase=True)
    return learning_rate * 0.5 * (cos(epoch * math.pi / epochs) + 1)


@naming.layer
@_schedule
def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Variable:
    """A number for each stretch of steps.

    Args:
        boundaries: rising numbers of steps; a step of that number belongs to the stretch that it begins.
        values: the rate before the first boundary, between the first and the second, …, from the last one on.

    Returns:
        Float32 [1], persistable.

    Raises:
        OpValueError: there is not one value more than boundaries, or the boundaries do not rise.

    Example:
        >>> rate = fluid.layers.piecewise_decay(boundaries=[1, 3], values=[0.5, 0.25, 0.125])
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program())
        >>> [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(5)]
        [0.5, 0.25, 0.25, 0.125, 0.125]
    """
    if len(values) - len(boundaries) != 1:
        raise OpValueError(
            "len(values) - len(boundaries) should be 1", expected=f"{len(boundaries) + 1} values", received=len(values),
            hint="one value before the first boundary, and one after each.",
        )  # fmt: skip
    if not boundaries:
        raise OpValueError("piecewise_decay takes at least one boundary.", hint="a rate that stays is a plain number.")
    if any(a > b for a, b in zip(boundaries[:-1], boundaries[1:], strict=True)):
        raise OpValueError("The boundaries of piecewise_decay must rise.", received=list(boundaries))
    step, rate = _decay_step_counter(), _global_rate("learning_rate")
    with Switch() as switch:
        for boundary, value in zip(boundaries, values[:-1], strict=True):
            end = tensor.fill_constant([1], "float32", float(boundary), force_cpu=True)
            with switch.case(step < end):
                tensor.fill_constant([1], "float32", float(value), out=rate)
        with switch.default():
            tensor.fill_constant([1], "float32", float(values[-1]), out=rate)
    return rate


@naming.layer
@_schedule
def linear_lr_warmup(learning_rate: float | Variable, warmup_steps: int, start_lr: float, end_lr: float) -> Variable:
    """Goes in a straight line from one rate to another in the first steps, and then follows another schedule.

    Args:
        learning_rate: the rate after the warm-up: a number, or what another schedule gave.
        warmup_steps: how many steps the line takes.
        start_lr: the rate at step 0.
        end_lr: the rate that the line would reach at step ``warmup_steps``.

    Returns:
        Float32 [1], persistable.

    Example:
        >>> rate = fluid.layers.linear_lr_warmup(0.5, warmup_steps=2, start_lr=0.0, end_lr=0.5)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program())
        >>> [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(4)]
        [0.0, 0.25, 0.5, 0.5]
    """
    _check_above_zero(warmup_steps=warmup_steps)
    if not isinstance(learning_rate, Variable):
        learning_rate = tensor.fill_constant([1], "float32", float(learning_rate))
    rate, step = _global_rate("learning_rate_warmup"), _decay_step_counter()
    end = tensor.fill_constant([1], "float32", float(warmup_steps))
    with Switch() as switch:
        with switch.case(step < end):
            tensor.assign((end_lr - start_lr) * (step / warmup_steps) + start_lr, output=rate)
        with switch.default():
            tensor.assign(learning_rate, output=rate)
    return rate


@checked
def append_LARS(
    params_grads: Sequence[tuple[Parameter, Variable]], learning_rate: float | Variable, weight_decay: float
) -> None:
    """Gives each parameter a learning rate that follows the sizes of parameter and gradient.

    The rate is ``learning_rate · |param| / (|grad| + weight_decay · |param|)``, times the parameter's own factor; it
    takes the place of this factor. Call it between ``backward`` and ``apply_gradients``.

    Args:
        params_grads: parameters with their gradients, as ``optimizer.backward(loss)`` gives them.
        learning_rate: the rate before: a number, or what a schedule gave.
        weight_decay: how much the size of the parameter counts beside that of the gradient.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1, bias_attr=False))
        >>> optimizer = fluid.optimizer.SGD(0.1)
        >>> pairs = optimizer.backward(loss)
        >>> fluid.layers.append_LARS(pairs, 0.1, weight_decay=0.01)
        >>> ops = optimizer.apply_gradients(pairs)
        >>> [op.type for op in fluid.default_main_program().global_block().ops][-2:]
        ['elementwise_div', 'sgd']
    """
    for param, grad in params_grads:
        program, factor = param.block.program, param._rate_factor()
        with program.optimized_guard([param, grad]):
            if isinstance(learning_rate, Variable):
                rate = learning_rate
            else:
                rate = tensor.fill_constant([1], param.dtype, float(learning_rate))
            size, slope = (sqrt(reduce_sum(square(v))) for v in (param, grad))
            whole = slope + (size if weight_decay == 1 else size * weight_decay)
            if isinstance(factor, Variable) or factor != 1.0:
                rate = rate * factor
            param.optimize_attr["learning_rate"] = (rate * size) / whole
