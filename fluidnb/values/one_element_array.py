"""Arrays that users get in compat mode: one element converts to a number, as in numpy before 2.4."""

from typing import Any

import numpy as np

from fluidnb.values import strict_feeds as declared


class OldArray(np.ndarray[Any, Any]):
    """An array that converts to a number when it has one element: ``float``, ``round``, ``format``, ``%``.

    Example:
        >>> loss = np.array([0.5], dtype="float32").view(OldArray)
        >>> float(loss), "%.2f" % loss, f"{loss:.1f}", round(loss, 1), loss
        (0.5, '0.50', '0.5', 0.5, array([0.5], dtype=float32))
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.item(), ndigits) if self.size == 1 else self.round(ndigits or 0)

    def __format__(self, spec: str) -> str:
        if spec and self.size == 1:
            return format(self.item(), spec)
        return self.view(np.ndarray).__format__(spec)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of a ufunc or a reduction: a scalar where ndarray gives one."""
        return array[()] if return_scalar else array.view(OldArray)

    def __reduce__(self) -> Any:
        """Pickled as an ndarray, for readers without this package."""
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def for_user(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as users get it: an `OldArray` while Paddle's names are installed."""
    return array if declared.binding else array.view(OldArray)
