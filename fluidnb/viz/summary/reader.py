"""Reads executors, optimizers, metrics, averages and places into a `Summary`."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fluidnb.average import WeightedAverage
from fluidnb.errors import FluidError
from fluidnb.memory import pools
from fluidnb.metrics import MetricBase
from fluidnb.optimizer import Optimizer
from fluidnb.optimizer.base import Minimized
from fluidnb.program import Variable
from fluidnb.runtime import Executor
from fluidnb.runtime.last_values import latest_held, summary
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.dtypes import dtype_name
from fluidnb.values.place import CPUPlace, Place
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.summary.model import Fact, Summary

#: Names that are listed; the rest is counted.
_MOST = 8


def read_executor(executor: Executor) -> Summary:
    """The place of an executor, and the program that it ran last."""
    facts = [Fact("place", repr(executor.place))]
    run = executor._hot
    if executor._closed:
        facts.append(Fact("state", "closed: it runs nothing from now on", "warn"))
    elif run is None:
        facts.append(Fact("compiled run", "none: nothing ran yet, or the last run failed", "dim"))
    else:
        feeds = [f"{name} {dtype_name(buffer.dtype)}{list(buffer.shape)}" for buffer, name, *_ in run.feeds]
        facts += [
            Fact("compiled run", plural(sum(len(block.ops) for block in run.desc.blocks), "operator")),
            Fact("feeds", _listed(feeds) or "none"), Fact("fetches", _listed(run.lowered.fetches) or "none"),
        ]  # fmt: skip
    return Summary("Executor", "bold", "runs programs", tuple(facts))


def read_optimizer(optimizer: Optimizer) -> Summary:
    """The arguments of an optimizer, and what it keeps for each parameter."""
    facts = [Fact(name, _argument(value)) for name, value in optimizer._arguments.items()]
    kept = optimizer._accumulators
    if kept:
        parameters = {name for variables in kept.values() for name in variables}
        facts += [Fact("accumulators", _listed(kept)), Fact("for", _listed(sorted(parameters)))]
    about = f"operator {optimizer.type}" if optimizer.type else ""
    return Summary(type(optimizer).__name__, "optimizer", about, tuple(facts))


def read_minimized(minimized: Minimized) -> Summary:
    """The operators that `minimize` appended by type, and the parameters with their gradients."""
    ops, pairs = minimized
    types = [op.type for op in ops]
    counts = [f"{types.count(kind)} {kind}" for kind in dict.fromkeys(types)]
    facts = [Fact(p.name, f"{dtype_name(p.dtype)}{list(p.shape)}  {grad.name}") for p, grad in pairs[:_MOST]]
    if len(pairs) > _MOST:
        facts.append(Fact(f"… {len(pairs) - _MOST} more", ""))
    return Summary(plural(len(ops), "operator"), "optimizer", ", ".join(counts), tuple(facts))


def read_metric(metric: MetricBase) -> Summary:
    """The current value of a metric, and its counts."""
    value = _evaluated(metric.eval)
    states = [Fact(name, _number(state), "dim") for name, state in metric._states().items()]
    name = str(metric)
    about = "" if name == type(metric).__name__ else name
    return Summary(type(metric).__name__, "bold", about, (value, *states))


def read_average(average: WeightedAverage) -> Summary:
    """The value of a weighted average, and the weight so far."""
    facts = (_evaluated(average.eval), Fact("weight", _number(average.denominator), "dim"))
    return Summary("WeightedAverage", "bold", "", facts)


def read_place(place: Place) -> Summary:
    """A place, with its device and memory if these are in use already."""
    facts = [Fact("kind", place.kind)]
    if place in pools.places():  # naming a device needs none: nothing is opened here
        context = DeviceContext.get(place)
        if context.name:
            facts.append(Fact("device", f"{context.name}  {context.backend}"))
        facts.append(Fact("memory", str(pools.stats(place)).partition(": ")[2]))
    elif not isinstance(place, CPUPlace):
        facts.append(Fact("state", "not in use yet", "dim"))
    return Summary(repr(place), "bold", "", tuple(facts))


def _evaluated(method: Callable[[], Any]) -> Fact:
    """The value that ``eval`` gives; the reason where it gives none."""
    try:
        return Fact("eval()", _number(method()), "bold")
    except (FluidError, NotImplementedError):
        return Fact("eval()", "none yet", "dim")
    except Exception as error:  # of a user's class; a representation does not raise
        return Fact("eval()", f"raises {type(error).__name__}: {error}", "warn")


def _number(value: Any) -> str:
    """A value of a metric as short text."""
    if isinstance(value, list | tuple):
        return ", ".join(_number(part) for part in value)
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"{dtype_name(value.dtype)}{list(value.shape)}, sum {value.sum():.6g}"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _argument(value: Any) -> str:
    """An argument of an optimizer: a variable with its last value, else as Python writes it."""
    if not isinstance(value, Variable):
        return repr(value)
    array = latest_held(value)
    return value.name if array is None else f"{value.name} = {summary(array)}"


def _listed(names: Iterable[str]) -> str:
    """Names, cut to a few."""
    all_names = list(names)
    more = f" and {len(all_names) - _MOST} more" if len(all_names) > _MOST else ""
    return ", ".join(all_names[:_MOST]) + more
