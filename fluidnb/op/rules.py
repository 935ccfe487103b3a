"""Shape rules that many operators share. A rule runs twice: on descriptions while building, on arrays while running."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluidnb.op.context import Context

#: A shape rule: reads inputs from a context and sets outputs.
Rule = Callable[["Context"], None]


def same(src: str = "X", dst: str = "Out") -> Rule:
    """Rule: output ``dst`` has the shape, dtype and LoD of input ``src``."""

    def infer(c: Context) -> None:
        x = c[src]
        c.set(dst, x.shape, x.dtype, c.lod(src))

    return infer


def aliases(pairs: dict[str, str]) -> Rule:
    """Rule: each output slot has shape, dtype and LoD of the input slot that it updates (``{"ParamOut": "Param"}``)."""

    def infer(c: Context) -> None:
        for out, src in pairs.items():
            if c.wants(out):
                x = c[src]
                c.set(out, x.shape, x.dtype, c.lod(src))

    return infer


def like_forward(c: Context) -> None:
    """Rule of gradient operators: ``S@GRAD`` is like ``S``, or like ``Out`` where S is not an input."""
    for slot in c.outputs:
        s = slot[:-5]
        source = s if c.has(s) else "Out" if c.has("Out") else "Out@GRAD"
        for i, (x, lod) in enumerate(zip(c.all(source), c.lods(source), strict=True)):
            if c.wants(slot, i):
                c.set(slot, x.shape, x.dtype, lod, i)


def broadcast_dim(a: int, b: int) -> int:
    """One dimension of a numpy-style broadcast where -1 is "not known yet".

    Returns:
        The size of the result, or -2 when the two do not fit.

    Example:
        >>> broadcast_dim(1, -1), broadcast_dim(3, 4)
        (-1, -2)
    """
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if a == -1 or b == -1:
        return max(a, b)
    return -2


def product(dims: tuple[int, ...] | list[int]) -> int:
    """The product of sizes; -1 when one of them is unknown (and none is 0).

    Example:
        >>> product((2, 3)), product((2, -1)), product(())
        (6, -1, 1)
    """
    n = 1
    for d in dims:
        n *= d
    return -1 if n < 0 or any(d < 0 for d in dims) and n != 0 else n
