"""Base class of metrics, and several metrics as one."""

import copy
import inspect
from typing import Any

import numpy as np

from fluidnb.arguments import Checked, shown
from fluidnb.errors import OpValueError
from fluidnb.program.shared_docs import document
from fluidnb.utils.representations import repr_html


class MetricBase(Checked):
    """The base of metrics. What a metric counts are its attributes without a leading underscore.

    Args:
        name: its name; None for that of the class.

    Example:
        >>> class Largest(fluid.metrics.MetricBase):
        ...     def __init__(self):
        ...         super().__init__(None)
        ...         self.value = 0.0
        ...     def update(self, preds, labels):
        ...         self.value = max(self.value, float(preds.max()))
        ...     def eval(self):
        ...         return self.value
        >>> metric = Largest()
        >>> metric.update(np.array([1.0, 3.0]), None)
        >>> metric.eval(), metric.reset(), metric.eval()
        (3.0, None, 0.0)
    """

    #: What a message says where one is expected.
    argument_hint = "for example fluid.metrics.Accuracy()."

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("fluidnb."):
            cls.__doc__ = document(cls.__doc__, inspect.signature(cls.__init__).parameters, {"name": "its name."})

    def __init__(self, name: str | None = None) -> None:
        self._name = type(self).__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        name = [] if self._name == type(self).__name__ else [f"name={self._name!r}"]
        numbers = {key: value for key, value in self._states().items() if isinstance(value, int | float | np.generic)}
        states = [f"{key}={np.asarray(value).item()!r}" for key, value in numbers.items()]
        return f"{type(self).__name__}({', '.join(name + states)})"

    _repr_html_ = repr_html

    def _states(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def reset(self) -> None:
        """Set every count to zero: numbers and arrays by their kind, anything else to None."""
        for name, value in self._states().items():
            if isinstance(value, int | float):
                zero: Any = type(value)(0)
            else:
                zero = np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else None
            setattr(self, name, zero)

    def get_config(self) -> dict[str, Any]:
        """The metric's name and a copy of its counts.

        Returns:
            ``{"name": …, "states": {attribute: value}}``.
        """
        return {"name": self._name, "states": copy.deepcopy(self._states())}

    def update(self, preds: Any, labels: Any) -> None:
        """Take a batch in.

        Args:
            preds: what the program predicted.
            labels: what would have been right.
        """
        raise NotImplementedError(f"{self} must define update(preds, labels).")

    def eval(self) -> Any:
        """The current value of the metric."""
        raise NotImplementedError(f"{self} must define eval().")


class CompositeMetric(MetricBase):
    """Several metrics over the same predictions.

    Example:
        >>> both = fluid.metrics.CompositeMetric()
        >>> both.add_metric(fluid.metrics.Precision())
        >>> both.add_metric(fluid.metrics.Recall())
        >>> both.update(np.array([[0.9], [0.8], [0.2]]), np.array([[1], [0], [1]]))
        >>> both.eval()
        [0.5, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._metrics))})"

    def add_metric(self, metric: MetricBase) -> None:
        """Add a metric.

        Args:
            metric: it.
        """
        self._metrics.append(metric)

    def reset(self) -> None:
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: Any, labels: Any) -> None:
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        """The value of each metric, in the order in which they were added."""
        return [metric.eval() for metric in self._metrics]


def check_numbers(name: str, value: object) -> None:
    """Raise unless a value is an array of numbers."""
    if not isinstance(value, np.ndarray):
        raise OpValueError(
            f"The '{name}' must be a numpy ndarray.", received=shown(value),
            hint="Executor.run gives arrays unless return_numpy=False.",
        )  # fmt: skip
    if value.dtype.kind not in "biuf":
        raise OpValueError(f"The '{name}' must be numbers.", received=f"an array of {value.dtype}")


def share(part: float, whole: float) -> float:
    """A quotient that is 0 where there is nothing to divide by."""
    return float(part) / whole if whole else 0.0
