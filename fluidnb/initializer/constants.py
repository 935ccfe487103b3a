"""Initializers whose values are known: a number, an array, an interpolating kernel."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.initializer.base import Initializer
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declared

#: Whether constants are made on the CPU whatever the executor's place.
_on_cpu = False


def force_init_on_cpu() -> bool:
    """Whether constants are made on the CPU now, whatever the executor's place: inside `init_on_cpu`.

    Example:
        >>> force_init_on_cpu()
        False
    """
    return _on_cpu


@contextmanager
def init_on_cpu() -> Iterator[None]:
    """Constants that are written inside a ``with`` are made on the CPU, whatever the executor's place.

    Yields:
        Nothing.

    Example:
        >>> with init_on_cpu():
        ...     step = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
        >>> fluid.default_startup_program().global_block().ops[0].attr("force_cpu")
        True
    """
    global _on_cpu
    before, _on_cpu = _on_cpu, True
    try:
        yield
    finally:
        _on_cpu = before


class ConstantInitializer(Initializer):
    """Every element gets the same value.

    Args:
        value: the value.
        force_cpu: whether the operator runs on the CPU whatever the executor's place.

    Example:
        >>> Constant(2.0).operator((3,))
        ('fill_constant', {'value': 2.0, 'force_cpu': False})
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        self._value = value if isinstance(value, int) else float(value)
        self._force_cpu = bool(force_cpu)

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        on_cpu = self._force_cpu or force_init_on_cpu()
        return "fill_constant", {**number_attrs(self._value, dtype), "force_cpu": on_cpu}


def number_attrs(value: float, dtype: Any) -> dict[str, Any]:
    """The attributes of fill_constant for a number: a 32-bit float, and its text where that is not exact.

    Example:
        >>> number_attrs(0.1, "float32"), number_attrs(0.1, "float64")
        ({'value': 0.1}, {'value': 0.1, 'str_value': '0.1'})
    """
    if not hasattr(value, "__float__"):
        raise OpTypeError(
            "A constant is a number.", expected="a number", received=typed(value), hint="layers.assign takes an array."
        )
    if declared.binding and not dtypes.holds(dtypes.var_type(dtype), value):
        raise OpValueError(
            f"{dtypes.dtype_name(dtype)} has no number {value}.", expected="a number that the dtype has",
            received=typed(value), hint="round it, or choose another dtype.",
        )  # fmt: skip
    wide = dtypes.dtype_name(dtype) in ("float64", "int32", "int64", "uint64")
    exact = not wide or not math.isfinite(value) or float(np.float32(value)) == value
    text = str(int(value)) if isinstance(value, int | np.integer) else repr(float(value))
    return {"value": float(value)} if exact else {"value": float(value), "str_value": text}


class NumpyArrayInitializer(Initializer):
    """The values of an array, which the startup program carries in itself.

    Args:
        value: the array; its shape is the parameter's.

    Example:
        >>> w = fluid.layers.create_parameter([2], "float32", attr=NumpyArrayInitializer(np.array([1.0, 2.0])))
        >>> fluid.default_startup_program().global_block().ops[0].attr("fp32_values")
        [1.0, 2.0]
    """

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self._value = value

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        if self._value.shape != shape:
            raise OpValueError(
                "The array has another shape than the parameter.", expected=list(shape),
                received=list(self._value.shape),
            )  # fmt: skip
        return "assign_value", array_attrs(self._value, dtype)


#: dtype -> the attribute of assign_value that holds values of this dtype
_VALUES = {
    "bool": "bool_values", "float32": "fp32_values", "float64": "fp64_values", "int32": "int32_values",
    "int64": "int64_values",
}  # fmt: skip
#: The most elements that a program may carry; more belong into a file.
_MOST = 1024 * 1024


def array_attrs(array: np.ndarray[Any, Any], dtype: Any) -> dict[str, Any]:
    """The attributes of assign_value for an array.

    Example:
        >>> array_attrs(np.array([4, 5]), "int32")
        {'shape': [2], 'dtype': 2, 'int32_values': [4, 5]}
    """
    name = dtypes.dtype_name(dtype)
    if name not in _VALUES:
        raise OpValueError(
            f"A program cannot carry values of dtype {name}.", expected=", ".join(_VALUES), received=name
        )
    _check_size(array.size)
    try:
        values = array.astype(dtypes.np_dtype(dtype)).ravel().tolist()
    except (TypeError, ValueError, OverflowError):
        raise OpValueError(
            f"The array has elements that are no numbers of {name}.", expected=f"numbers of {name}",
            received=repr(array)[:200],
        ) from None  # fmt: skip
    return {
        "shape": list(array.shape),
        "dtype": int(dtypes.var_type(dtype)),
        _VALUES[name]: [int(v) for v in values] if name == "bool" else values,
    }


def _check_size(count: int) -> None:
    """Raise where a program cannot carry so many elements."""
    if count > _MOST:
        raise OpValueError(
            "The size of input is too big.", expected=f"at most {_MOST} elements", received=count,
            hint="save the array to a .npy file and read it with layers.load().",
        )  # fmt: skip


class BilinearInitializer(Initializer):
    """A kernel that enlarges images by interpolation, for the weight of a transposed convolution.

    With stride ``s`` and kernel size ``2·s - s % 2`` every channel is enlarged ``s`` times on its own, where the
    convolution has as many groups as channels.

    Example:
        >>> w = fluid.layers.create_parameter([1, 1, 4, 4], "float32", default_initializer=Bilinear())
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(fluid.default_startup_program(), fetch_list=[w.name])[0][0, 0, 1]
        array([0.1875, 0.5625, 0.5625, 0.1875], dtype=float32)

    Source: Long, Shelhamer, Darrell: "Fully convolutional networks for semantic segmentation" (2015).
    """

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        if len(shape) != 4:
            raise OpValueError(
                "the length of shape must be 4.", expected="[out, in, size, size]", received=list(shape),
                hint="this initializer is for weights of transposed convolutions.",
            )  # fmt: skip
        size = shape[3]
        if shape[2] != size:
            raise OpValueError("shape[2] must be equal to shape[3].", expected=size, received=shape[2])
        _check_size(math.prod(shape))
        half = (size + 1) // 2
        centre = (2 * half - 1 - half % 2) / (2 * half)
        line = 1 - abs(np.arange(size) / half - centre)
        return "assign_value", array_attrs(np.broadcast_to(np.outer(line, line), shape), dtype)


Constant = ConstantInitializer
Bilinear = BilinearInitializer
