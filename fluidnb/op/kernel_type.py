"""Kernel type of an operator: place, data type, layout and library."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fluidnb.values import dtypes

#: Layouts that a kernel may require. NCHW is how every variable is stored; the others are reached by a transform.
LAYOUTS = ("ANY_LAYOUT", "NCHW", "NHWC", "nChw8c")


class OpKernelType(NamedTuple):
    """The key under which a kernel is registered and looked up.

    Example:
        >>> str(OpKernelType("float32", "ANY_LAYOUT", "cpu", "PLAIN"))
        'data_type[float32]:data_layout[ANY_LAYOUT]:place[cpu]:library_type[PLAIN]'
    """

    data_type: str  # dtype's name, for example ``float32``
    data_layout: str = "ANY_LAYOUT"  # ``ANY_LAYOUT``, ``NCHW``, ``NHWC`` or ``nChw8c``
    place: str = "cpu"  # the place's kind, for example ``cpu``
    library_type: str = "PLAIN"  # ``PLAIN``, ``CUDNN``, ``MKLDNN`` or a name of the user's own

    def __str__(self) -> str:
        return (
            f"data_type[{self.data_type}]:data_layout[{self.data_layout}]"
            f":place[{self.place}]:library_type[{self.library_type}]"
        )


class Kernel(NamedTuple):
    """One registered kernel: a function that binds, and its key."""

    function: Callable[[Any], Any]  # ``function(b)`` emits calls to the binder ``b``
    place: str = "cpu"  # the place's kind
    dtypes: tuple[str, ...] | None = None  # dtype names that it takes, or None for every dtype
    layout: str = "ANY_LAYOUT"  # the layout in which it wants 4-D tensors
    library: str = "PLAIN"  # its library

    def takes(self, dtype: str) -> bool:
        """Whether it computes tensors of this dtype (by name)."""
        return self.dtypes is None or dtype in self.dtypes

    def types(self) -> list[OpKernelType]:
        """Its keys, one for each dtype (``any`` where it takes every one)."""
        return [OpKernelType(d, self.layout, self.place, self.library) for d in self.dtypes or ("any",)]


def dtype_names(names: Sequence[Any] | None) -> tuple[str, ...] | None:
    """Dtypes in any spelling as a tuple of names; None stays None.

    Example:
        >>> dtype_names(["float32", "int64"])
        ('float32', 'int64')
    """
    return None if names is None else tuple(dtypes.dtype_name(n) for n in names)
