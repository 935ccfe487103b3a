"""Learning-rate schedules as plain data: name -> (function, arguments), where an argument may be a schedule itself."""

from __future__ import annotations

from typing import Any

STEPS = 14

SCHEDULES: dict[str, list[Any]] = {
    "noam": ["noam_decay", 64, 5],
    "exponential": ["exponential_decay", 0.1, 4, 0.5],
    "exponential_stairs": ["exponential_decay", 0.1, 4, 0.5, True],
    "natural_exp": ["natural_exp_decay", 0.1, 3, 0.7],
    "natural_exp_stairs": ["natural_exp_decay", 0.1, 3, 0.7, True],
    "inverse_time": ["inverse_time_decay", 0.1, 3, 0.5],
    "inverse_time_stairs": ["inverse_time_decay", 0.1, 3, 0.5, True],
    "polynomial": ["polynomial_decay", 0.1, 6, 0.01, 2.0],
    "polynomial_linear": ["polynomial_decay", 0.1, 10],
    "polynomial_cycle": ["polynomial_decay", 0.1, 4, 0.01, 0.5, True],
    "cosine": ["cosine_decay", 0.1, 3, 4],
    "piecewise": ["piecewise_decay", [3, 7, 8], [0.3, 0.2, 0.1, 0.05]],
    "warmup": ["linear_lr_warmup", 0.1, 5, 0.01, 0.08],
    "warmup_piecewise": ["linear_lr_warmup", ["piecewise_decay", [6, 9], [0.3, 0.2, 0.1]], 4, 0.0, 0.25],
    "warmup_noam": ["linear_lr_warmup", ["noam_decay", 64, 5], 4, 0.0, 0.25],
}


def make(module: Any, schedule: Any) -> Any:
    """Append a schedule to the default program.

    Args:
        module: has the functions.
        schedule: a value of `SCHEDULES`, or a plain argument, which is given back.

    Returns:
        The rate.
    """
    if not (isinstance(schedule, list) and isinstance(schedule[0], str)):
        return schedule
    return getattr(module, schedule[0])(*(make(module, argument) for argument in schedule[1:]))
