"""Launches of plain arithmetic of tensors of one shape."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, ctype, each, elements, of_dtype, vector, wide_dtype, widths
from fluidnb_kernels.cuda.element_kernels import ElementKernel, describe
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.emit import FLOATS

#: How many terms one launch adds up.
_TERMS = 8


def _kernels() -> Iterator[str]:
    for dtype in elements(NUMBERS):
        for width in widths(dtype):
            for kernel in ("scale", "clip", "sign", "total", *(["clip_grad"] if dtype.name in FLOATS else [])):
                yield f"{kernel}<{ctype(dtype)}, {width}>"


CUDA = Source(__file__, "same_shape.cu", _kernels)
_HELD = "number<{T}>({low_at}, {low}), number<{T}>({high_at}, {high})"
describe(
    "scale",
    ElementKernel(
        "T N", "x factor_at out factor bias first", "x",
        {"out": "line({x}, number<{T}>({factor_at}, {factor}), {bias}, {first})"}, pointers="factor_at",
    ),
)  # fmt: skip
describe(
    "clip",
    ElementKernel(
        "T N", "x low_at high_at out low high", "x", {"out": f"limited({{x}}, {_HELD})"}, pointers="low_at high_at"
    ),
)
describe(
    "clip_grad",
    ElementKernel(
        "T N", "x g low_at high_at dx low high", "x g", {"dx": f"between({{x}}, {_HELD}, {{g}})"},
        pointers="low_at high_at",
    ),
)  # fmt: skip
describe("sign", ElementKernel("T N", "x out", "x", {"out": "sign_of({x})"}))
_SOME = " ".join(f"x{i}" for i in range(_TERMS))
describe(
    "total",
    ElementKernel(
        "T N", f"{_SOME} out count", _SOME,
        {"out": f"first_of({{count}}, {', '.join(f'{{{name}}}' for name in _SOME.split())})"},
    ),
)  # fmt: skip


def launch(b: Binder, kernel: str, arrays: Sequence[Array], beside: Sequence[Any], *numbers: Any) -> None:
    """Emit a launch of a kernel of ``same_shape.cu``."""
    *read, out = arrays
    width = vector(*arrays)
    name = f"{kernel}<{ctype(out.dtype)}, {width}>"
    each(b, CUDA, name, out.size, *read, *beside, out, *numbers, per_thread=width)


def scaled(
    b: Binder, x: Array, out: Array, factor: float = 1, bias: float = 0, *, first: bool = False, by: Array | None = None
) -> None:
    """Emit ``out = x · factor + bias``."""
    numbers = (b.const(n, wide_dtype(x.dtype))[()] for n in (factor, bias))
    beside = None if by is None else of_dtype(b, by, x.dtype)
    launch(b, "scale", [x, out], [beside], *numbers, np.int32(first))


def bounds(b: Binder, dtype: Any) -> tuple[list[Array | None], Any, Any]:
    """Min and Max in a dtype, None where there is none, and the attributes min and max as numpy scalars."""
    given = [of_dtype(b, b[slot], dtype) if b.has(slot) else None for slot in ("Min", "Max")]
    low, high = (b.const(b.attr(name), wide_dtype(dtype))[()] for name in ("min", "max"))
    return given, low, high


def held_between(b: Binder, kernel: str, *arrays: Array) -> None:
    """Emit clip or its gradient; the bounds are inputs where they are given, else attributes."""
    given, *numbers = bounds(b, arrays[0].dtype)
    launch(b, kernel, arrays, given, *numbers)


def added(b: Binder, terms: Sequence[Array], out: Array) -> None:
    """Emit the sum of tensors, eight of them at a time."""
    left, between = list(terms), b.like(out) if len(terms) > _TERMS else out
    while left:
        some, left = left[:_TERMS], left[_TERMS:]
        target = between if left else out
        launch(b, "total", [*some, *[some[0]] * (_TERMS - len(some)), target], [], np.int32(len(some)))
        left = [target, *left] if left else []
