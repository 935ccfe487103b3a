"""WeightedAverage: a mean over batches of different sizes, kept on the Python side."""

from typing import Any, NoReturn

import numpy as np

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpValueError, typed
from fluidnb.utils.representations import repr_html

__all__ = ["WeightedAverage"]


@checked
class WeightedAverage:
    """The mean of numbers that count by a weight, for example of losses by the rows of their batches.

    Example:
        >>> average = fluid.average.WeightedAverage()
        >>> average.add(value=2.0, weight=1)
        >>> average.add(value=4.0, weight=3)
        >>> average.eval()
        3.5
    """

    def __init__(self) -> None:
        self.reset()

    def __repr__(self) -> str:
        value = self.eval() if self.denominator else "none yet"
        return f"WeightedAverage(value {value}, weight {self.denominator})"

    _repr_html_ = repr_html

    def reset(self) -> None:
        """Forget all numbers."""
        self.numerator: Any = 0.0
        self.denominator = 0.0

    def add(self, value: Any, weight: float) -> None:
        """Take a number in.

        Args:
            value: a number, or an array, which is averaged element by element.
            weight: how much it counts.
        """
        check_number(value, "value", array=True)
        check_number(weight, "weight")
        try:
            self.numerator = self.numerator + value * weight
        except (OverflowError, ValueError) as e:
            refuse_sum(self.numerator, value, e)
        self.denominator += weight

    def eval(self) -> Any:
        """The average so far.

        Returns:
            A number, or an array where arrays were added.
        """
        if not self.denominator:
            raise OpValueError(
                "There is no data to be averaged in WeightedAverage.", hint="add(value, weight) takes a number in."
            )
        return self.numerator / self.denominator


def refuse_sum(total: Any, value: object, error: Exception) -> NoReturn:
    """Refuse a value that cannot be added: an array of another shape, a number that no float can have."""
    raise OpValueError(
        "The 'value' cannot be added to those before.", expected=f"a number, or shape {list(np.shape(total))}",
        received=shown(value), hint=str(error),
    ) from None  # fmt: skip


def check_number(value: object, argument: str, array: bool = False) -> None:
    """Raise unless an argument is a number."""
    if isinstance(value, float | int | np.number | np.bool_):
        return
    if isinstance(value, np.ndarray) and (array or value.size == 1) and value.dtype.kind in "biuf":
        return
    kinds = "number(int, float) or a numpy ndarray" if array else "number(int, float)"
    raise OpValueError(
        f"The '{argument}' must be a {kinds}.", received=typed(value),
        hint="Executor.run gives arrays unless return_numpy=False.",
    )  # fmt: skip
