"""Specifications of inputs as data: dtype, axes and LoD levels that a slot or a layer's argument takes.

The notation is ``dtype[axes] lod``, alternatives separated by ``|``: ``int64[N, 1]``, ``float[batch, …]``,
``any[rows, width] lod``, ``float[N, D] | rows``. Every part may be left out but the dtype. ``…`` is any number of axes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fluidnb.errors import OpValueError

#: Classes of dtypes. The values are the beginnings of the dtypes' names.
DTYPE_CLASSES = {"any": ("",), "float": ("float", "bfloat"), "int": ("int", "uint"), "bool": ("bool",)}
#: Dtypes that a specification may name; each also belongs to a class.
_DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
#: Values that are not tensors.
CONTAINERS = ("array", "table", "reader", "rows", "list")
_NOTATION = re.compile(r"(\w+)(?:\[([^\[\]]*)\])?(?: lod(?: ([1-9]))?)?")

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One kind of value that an input takes.

    Args:
        dtype: a class (``any``, ``float``, ``int``, ``bool``), a dtype, or a container: ``array`` (of tensors),
            ``table`` (a rank table), ``reader``, ``rows`` (SelectedRows) or ``list`` (of fed values).
        axes: names of the axes, ``…`` for any number of them; None for any shape.
        lod_level: the least number of LoD levels.

    Example:
        >>> InputSpec.parse("float[rows, width] lod")[0].fits("float32", 2, 1)
        True
    """

    dtype: str = "any"
    axes: tuple[str, ...] | None = None
    lod_level: int = 0

    @classmethod
    def parse(cls, text: str) -> tuple[InputSpec, ...]:
        """The alternatives that a text in the notation of this module describes.

        Args:
            text: for example ``int64[N, 1] lod | int64[batch, steps, 1]``.

        Raises:
            OpValueError: the text does not follow the notation.
        """
        return tuple(cls._one(part.strip(), text) for part in text.split("|"))

    @classmethod
    def _one(cls, part: str, text: str) -> InputSpec:
        """One alternative."""
        found = _NOTATION.fullmatch(part)
        if found is None or found[1] not in (*DTYPE_CLASSES, *_DTYPES, *CONTAINERS):
            raise OpValueError(
                f"{text!r} is no specification of an input.", expected="dtype[axes] lod, alternatives separated by |",
                received=part, hint=f"dtypes are {', '.join((*DTYPE_CLASSES, *_DTYPES, *CONTAINERS))}.",
            )  # fmt: skip
        axes = None if found[2] is None else tuple(axis.strip() for axis in found[2].split(",") if axis.strip())
        levels = int(found[3] or 1) if " lod" in part else 0
        return cls(found[1], axes, levels)

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
        """Whether a tensor with these properties is such a value; any dtype of the same class counts.

        Args:
            dtype: its dtype.
            rank: its number of axes.
            lod_level: its LoD levels.
        """
        if not self.is_tensor or not dtype.startswith(DTYPE_CLASSES[self.dtype_class]) or lod_level < self.lod_level:
            return False
        named = rank if self.axes is None else sum(axis != "…" for axis in self.axes)
        return rank == named if self.rank is not None else rank >= named

    def __str__(self) -> str:
        axes = "" if self.axes is None else f"[{', '.join(self.axes)}]"
        lod = "" if not self.lod_level else " lod" if self.lod_level == 1 else f" lod {self.lod_level}"
        return f"{self.dtype}{axes}{lod}"


def takes(**arguments: str | tuple[str, ...]) -> Callable[[F], F]:
    """Declare what arguments of a layer take, where the operator of the layer's name does not say it.

    Args:
        arguments: name -> ``"operator.Slot"`` or ``"operator.attribute"``, whose declaration holds for the argument
            too; a specification as in `InputSpec`; or the texts among which a string is chosen.

    Returns:
        A decorator that returns the function itself.

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
    """The declarations that `takes` added to a function; empty without.

    Args:
        function: a layer.
    """
    found: Mapping[str, str | tuple[str, ...]] = getattr(function, "takes", {})
    return found
