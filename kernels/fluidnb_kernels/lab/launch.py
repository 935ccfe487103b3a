"""A user's CUDA text as a kernel that binds: slots and attributes become arguments, and its lines become launches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np

from fluidnb.errors import FluidError, NotFound, OpValueError, near
from fluidnb.op import GRAD, Array, Binder, OpDef
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels.cuda import BLOCKS, CTYPES, THREADS, ctype
from fluidnb_kernels.lab.cuda_text import DTYPES, CudaText, Parameter, Part, Setting

#: Settings that say how a kernel is launched; others are arguments.
_HOW = ("grid", "block", "shared")


@dataclass(frozen=True, slots=True)
class Facts:
    """Shape and dtype of an operand for expressions; no values, since a binding serves all of them."""

    shape: tuple[int, ...]  # sizes
    dtype: Any  # numpy dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Launcher:
    """Binds a user's CUDA text."""

    def __init__(self, text: CudaText, options: Sequence[Setting] = (), dtypes: Sequence[str] = ("float32",)) -> None:
        self.text, self.dtypes, self._options = text, tuple(dtypes), tuple(options)
        self.source = text.source([CTYPES[d] for d in dtypes])

    def __call__(self, b: Binder) -> None:
        """Emit the launches."""
        arrays, held = operands(b), dict[str, Any]()
        for i, part in enumerate(self.text.parts):
            names = _names(b, part, arrays) | held
            for setting in (*(self._options if i == 0 else ()), *part.settings):
                names[setting.name] = held[setting.name] = _value(setting, names)
            self._launch(b, part, arrays, names)
            for word in _HOW:  # they count for one kernel, unless they are options
                if word in held and all(o.name != word for o in self._options):
                    del held[word]

    def _launch(self, b: Binder, part: Part, arrays: Mapping[str, Array], names: Mapping[str, Any]) -> None:
        dtype = _dtype(part, arrays, self.dtypes)
        n = names["n"]
        if n == 0:
            return
        block = _sizes(names.get("block", THREADS))
        grid = _sizes(names["grid"]) if "grid" in names else (min(BLOCKS, -(-n // prod(block))),)
        if 0 in grid:
            return
        args = [_argument(b, p, part, names, arrays, dtype) for p in part.parameters]
        b(self.source[part.instance(CTYPES[dtype])], grid, block, int(names.get("shared", 0)), *args)


def operands(b: Binder) -> dict[str, Array]:
    """The arrays of a binder, or None, under C++ names: ``X@GRAD`` is called ``X_GRAD``."""
    definition = b.definition
    slots = dict.fromkeys([*definition.inputs, *definition.outputs, *b.inputs, *b.outputs])
    return {slot.replace(GRAD, "_GRAD"): b[slot] for slot in slots}


def may_be_called(definition: OpDef, slots: Sequence[str] = ()) -> list[str]:
    """The names that a kernel's parameters may have for an operator.

    Example:
        >>> from fluidnb.op import get_op
        >>> may_be_called(get_op("leaky_relu"))
        ['X', 'Out', 'alpha', 'n']
    """
    found = [*definition.inputs, *definition.outputs, *slots]
    return [*dict.fromkeys(s.replace(GRAD, "_GRAD") for s in found), *definition.attrs, "n"]


def _names(b: Binder, part: Part, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The names that the expressions of a kernel can use."""
    facts = {name: None if a is None else Facts(tuple(a.shape), a.dtype) for name, a in arrays.items()}
    written = [facts.get(p.name) for p in part.parameters if p.written]
    every = [f for f in (*written, *facts.values()) if f is not None]
    known = dict.fromkeys([*b.definition.attrs, *b.attrs])

    def workspace(shape: Any, dtype: str) -> Array:
        return b.tmp(shape, np_dtype(dtype))

    return {
        "ceil": ceil, "prod": prod, "workspace": workspace, "n": every[0].size if every else 0,
        **{name: b.attr(name) for name in known}, **facts,
    }  # fmt: skip


def _dtype(part: Part, arrays: Mapping[str, Array], dtypes: Sequence[str]) -> str:
    """The dtype for which a kernel is made: that of its first operand that depends on it."""
    found = (arrays.get(p.name) for p in part.parameters if p.pointer and p.type == part.template)
    return next((a.dtype.name for a in found if a is not None), dtypes[0])


def _value(setting: Setting, names: Mapping[str, Any]) -> Any:
    try:
        return eval(setting.expression, dict(names))
    except FluidError:
        raise
    except Exception as error:
        at = f"line {setting.line}: " if setting.line else ""
        raise OpValueError(
            f"{at}{setting.name} = {setting.expression} has no value: {type(error).__name__}: {error}",
            expected="Python over shapes", received=setting.expression,
            hint="it sees slots (X.shape, X.size, X.dtype), attributes, n, ceil, prod and workspace(shape, dtype).",
        ) from None  # fmt: skip


def _sizes(given: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in (given if isinstance(given, tuple | list) else (given,)))


def _argument(
    b: Binder, p: Parameter, part: Part, names: Mapping[str, Any], arrays: Mapping[str, Array], dtype: str
) -> Any:
    """The argument for a parameter."""
    held = arrays.get(p.name) if isinstance(names.get(p.name), Facts) else names.get(p.name)
    if p.name not in names:
        known = may_be_called(b.definition, [*b.inputs, *b.outputs])
        raise NotFound(
            f"Kernel {part.name} has a parameter {p.name}, and {b.definition.type} has nothing of that name.",
            expected=", ".join(known), received=p.name,
            hint=near(p.name, known) or f"a line above the kernel gives it a value: //! {p.name} = X.shape[0]",
        )  # fmt: skip
    if not p.pointer:
        return np_dtype(DTYPES.get(p.type, dtype)).type(held)
    if held is None:
        return np.uint64(0)
    wanted = np_dtype(DTYPES.get(p.type, dtype))
    if held.dtype != wanted:
        raise OpValueError(
            f"Kernel {part.name} takes {p.name} as {ctype(wanted)}*, and it holds {held.dtype}.",
            expected=f"const {ctype(held.dtype)}* {p.name}", received=f"{p.type}* {p.name}",
            hint="template <class T> __global__ void ... serves several dtypes; --dtype says which.",
        )  # fmt: skip
    return held
