"""Specifications of inputs as data: dtype, axes and LoD levels that a slot or a layer's argument takes.

The notation is ``dtype[axes] lod``, alternatives separated by ``|``: ``int64[N, 1]``, ``float[batch, …]``,
``any[rows, width] lod``, ``float[N, D] | rows``. Every part may be left out but the dtype. ``…`` is any number of axes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from fluidnb.errors import OpValueError
from fluidnb.op.rules import product

#: Classes of dtypes. The values are the beginnings of the dtypes' names.
DTYPE_CLASSES = {"any": ("",), "float": ("float", "bfloat"), "int": ("int", "uint"), "bool": ("bool",)}
#: Letters of numpy's kinds in the classes whose dtypes shape rules check.
DTYPE_KINDS = {"int": "iu", "bool": "b"}
#: Dtypes that a specification may name; each also belongs to a class.
_DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
#: Values that are not tensors.
CONTAINERS = ("array", "table", "reader", "rows", "list")
_NOTATION = re.compile(r"(\w+)(?:\[([^\[\]]*)\])?(?: lod(?: ([1-9]))?)?")

F = TypeVar("F", bound=Callable[..., object])


class InputSpec(NamedTuple):
    """One kind of value that an input takes.

    Example:
        >>> InputSpec.parse("float[rows, width] lod")[0].fits("float32", 2, 1)
        True
    """

    # a class (``any``, ``float``, ``int``, ``bool``), a dtype, or a container: ``array`` (of tensors), ``table`` (a
    # rank table), ``reader``, ``rows`` (SelectedRows) or ``list`` (of fed values)
    dtype: str = "any"
    axes: tuple[str, ...] | None = None  # names of the axes, ``…`` for any number of them; None for any shape
    lod_level: int = 0  # the least number of LoD levels

    @classmethod
    def parse(cls, text: str) -> tuple[InputSpec, ...]:
        """The alternatives of a text such as ``int64[N, 1] lod | int64[batch, steps, 1]``."""
        return tuple(cls._one(part.strip(), text) for part in text.split("|"))

    @classmethod
    def _one(cls, part: str, text: str) -> InputSpec:
        """One alternative."""
        match = _NOTATION.fullmatch(part)
        if match is None or match[1] not in (*DTYPE_CLASSES, *_DTYPES, *CONTAINERS):
            raise OpValueError(
                f"{text!r} is no specification of an input.", expected="dtype[axes] lod, alternatives separated by |",
                received=part, hint=f"dtypes are {', '.join((*DTYPE_CLASSES, *_DTYPES, *CONTAINERS))}.",
            )  # fmt: skip
        axes = None if match[2] is None else tuple(axis.strip() for axis in match[2].split(",") if axis.strip())
        levels = int(match[3] or 1) if " lod" in part else 0
        return cls(match[1], axes, levels)

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return self.dtype not in CONTAINERS

    @property
    def rank(self) -> int | None:
        """The number of axes; None where it varies."""
        return None if self.axes is None or "…" in self.axes else len(self.axes)

    @property
    def dtype_class(self) -> str:
        """``any``, ``float``, ``int``, ``bool``, or the container."""
        return next((c for c in ("float", "int", "bool") if self.dtype.startswith(DTYPE_CLASSES[c])), self.dtype)

    def fits(self, dtype: str, rank: int, lod_level: int) -> bool:
        """Whether a tensor with these properties is such a value; any dtype of the same class counts."""
        if not self.is_tensor or not dtype.startswith(DTYPE_CLASSES[self.dtype_class]) or lod_level < self.lod_level:
            return False
        named = rank if self.axes is None else sum(axis != "…" for axis in self.axes)
        return rank == named if self.rank is not None else rank >= named

    def sizes(self, shape: tuple[int, ...], known: Mapping[str, int]) -> dict[str, int] | None:
        """The sizes of the named axes in a shape; None where it differs from the axes, or from known sizes.

        Example:
            >>> spec = InputSpec.parse("float[n, …, 4]")[0]
            >>> spec.sizes((2, 3, 4), {}), spec.sizes((2, 3, 4), {"n": 1}), spec.sizes((-1, 3), {})
            ({'n': 2}, None, None)
        """
        if self.axes is None or self.axes == ("1",) and product(shape) in (1, -1):
            return {}
        named, free = list(self.axes), len(shape) - len(self.axes)
        if "…" in named and free >= -1:
            gap = named.index("…")
            named[gap : gap + 1] = [""] * (free + 1)
        if len(named) != len(shape):
            return None
        found: dict[str, int] = {}
        for axis, n in zip(named, shape, strict=True):
            wanted = int(axis) if axis.isdigit() else known.get(axis, found.get(axis, -1))
            if n != wanted and n >= 0 and wanted >= 0:
                return None
            if axis.isidentifier() and n >= 0:
                found[axis] = n
        return found

    @property
    def text_of_axes(self) -> str:
        """The axes as text; empty for any shape."""
        return "" if self.axes is None else f"[{', '.join(self.axes)}]"

    def __str__(self) -> str:
        lod = "" if not self.lod_level else " lod" if self.lod_level == 1 else f" lod {self.lod_level}"
        return f"{self.dtype}{self.text_of_axes}{lod}"


def takes(**arguments: str | tuple[str, ...]) -> Callable[[F], F]:
    """Declares the values of a layer's arguments, where the operator of the layer's name does not declare them.

    Args:
        arguments: name -> ``"operator.Slot"`` or ``"operator.attribute"``, whose declaration holds for the argument
            too; a specification as in `InputSpec`; or the texts among which a string is chosen.

    Example:
        >>> @takes(label="int64[N, 1]", mode=("mean", "sum"))
        ... def my_loss(label, mode="mean"):
        ...     pass
        >>> declared(my_loss)["label"]
        'int64[N, 1]'
    """

    def mark(function: F) -> F:
        vars(function)["takes"] = dict(arguments)
        return function

    return mark


def declared(function: object) -> Mapping[str, str | tuple[str, ...]]:
    """The declarations that `takes` added to a function; empty without."""
    declarations: Mapping[str, str | tuple[str, ...]] = getattr(function, "takes", {})
    return declarations
