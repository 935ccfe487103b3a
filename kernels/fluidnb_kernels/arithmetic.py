"""Formulas of arrays in plain numpy: each function of a `Value` is emitted as a call of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fluidnb.op import Array, Binder
from fluidnb.op.masked_copy import masked_copy
from fluidnb_kernels.emit import apply

#: A `Value` in a formula: the types of numpy's functions know no operands but arrays.
Operand = Any


class Value(NDArrayOperatorsMixin):
    """An array of a kernel: ``1 / (1 + np.exp(-x))`` emits four calls, ``t += 1`` one that works in place.

    Numbers become constants of the dtype of the array beside them. The newest call of all values of a formula is
    emitted when the next one comes, or by `into`, which lets it write an output.

    Args:
        newest: [the value whose call is not emitted yet], shared by the values of a formula; empty if there is none.
    """

    def __init__(self, b: Binder, array: Array, newest: list[Value]) -> None:
        self.binder, self._array, self._newest = b, array, newest
        self._emit: Callable[[Array], Array] | None = None  # emits its call into an array, or None for a workspace

    @property
    def array(self) -> Array:
        """Its array, after all calls so far."""
        if self._newest:
            value = self._newest.pop()
            assert value._emit is not None
            value._array, value._emit = value._emit(None), None
        return self._array

    def into(self, out: Array) -> None:
        """Let its call write an output, which is its array from then on."""
        if self._emit is None:
            self.binder(np.copyto, out, self.array)
        else:
            self._newest.clear()
            self._array, self._emit = self._emit(out), None

    def _next(self, emit: Callable[[Array], Array]) -> Value:
        value = Value(self.binder, None, self._newest)
        value._emit = emit
        self._newest.append(value)
        return value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Value:
        out: tuple[Value, ...] = how.get("out", ())
        arrays = [v.array if isinstance(v, Value) else v for v in (*inputs, *out)]
        if any(v is None for v in arrays):
            raise TypeError("an operand of a formula is NoneType")  # the runtime names the slot
        dtype = next(v.dtype for v in arrays if hasattr(v, "dtype"))
        operands = [v if hasattr(v, "dtype") else self.binder.const(v, dtype) for v in arrays[: len(inputs)]]

        def emit(to: Array) -> Array:
            to = arrays[-1] if to is None and out else to
            if to is None:
                return apply(self.binder, ufunc, *operands)
            self.binder(ufunc, *operands, out=to)
            return to

        return self._next(emit)

    def reduced(self, ufunc: np.ufunc, axis: Any) -> Value:
        """It, reduced along an axis or axes, which stay with size 1."""
        x = self.array
        gone = {i % max(x.ndim, 1) for i in ((axis,) if isinstance(axis, int) else axis)}

        def emit(to: Array) -> Array:
            to = self.binder.tmp([1 if i in gone else n for i, n in enumerate(x.shape)], x.dtype) if to is None else to
            self.binder(ufunc.reduce, x, axis, None, to, True)
            return to

        return self._next(emit)

    def sum(self, axis: Any) -> Value:
        """Its sum along an axis or axes, which stay with size 1."""
        return self.reduced(np.add, axis)

    def through(self, function: Callable[[Array, Array], None]) -> Value:
        """The result of a function that writes its second argument."""
        x = self.array

        def emit(to: Array) -> Array:
            to = self.binder.like(x) if to is None else to
            self.binder(function, x, to)
            return to

        return self._next(emit)

    def put(self, value: Value | float, where: Value) -> None:
        """Overwrite it where a mask holds."""
        source = value.array if isinstance(value, Value) else self.binder.const(value, self.array.dtype)
        self.binder(masked_copy, self.array, source, where.array)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute of the operator."""
        return self.binder.attr(name, default)

    def slot(self, name: str) -> Value:
        """Another operand of the operator."""
        return Value(self.binder, self.binder[name], self._newest)


def values(b: Binder, *arrays: Array) -> list[Operand]:
    """Arrays as the values of one formula."""
    newest: list[Value] = []
    return [Value(b, array, newest) for array in arrays]


def formula(
    inputs: str, outputs: str, read: Callable[[Binder, str], Array] = Binder.__getitem__
) -> Callable[[Callable[..., Any]], Callable[[Binder], None]]:
    """Decorator: a kernel from a formula of input slots, which returns an output or yields several one by one."""
    slots = outputs.split()

    def decorate(function: Callable[..., Any]) -> Callable[[Binder], None]:
        @wraps(function)
        def emit(b: Binder) -> None:
            results = function(*values(b, *(read(b, slot) for slot in inputs.split())))
            for slot, value in zip(slots, [results] if isinstance(results, Value) else results, strict=True):
                if b.wants(slot):
                    value.into(b[slot])

        return emit

    return decorate
