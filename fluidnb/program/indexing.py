"""``x[...]`` on variables: ints, slices and an ellipsis become one ``slice`` operator."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from fluidnb.errors import Operand, OpTypeError, OpValueError
from fluidnb.utils.source_location import capture
from fluidnb.values.dtypes import dtype_name

if TYPE_CHECKING:
    from fluidnb.program.variable import Variable

#: The end of a slice up to the last element, whatever the size will be.
_TO_THE_END = 2**31 - 1


class Cut(NamedTuple):
    """The slice of one axis."""

    axis: int
    start: int
    end: int
    step: int
    drop: bool


def sliced(x: Variable, cuts: list[Cut]) -> Variable:
    """Append the ``slice`` and ``strided_slice`` operators of an index."""
    out = x
    plain = [c for c in cuts if c.step == 1]
    strided = [c for c in cuts if c.step != 1]
    if strided:
        out = _append(out, "strided_slice", _axes(strided) | {"strides": [c.step for c in strided]})
    if plain or not cuts:
        drop = [c.axis for c in plain if c.drop]
        out = _append(out, "slice" if plain else "assign", _axes(plain) | {"decrease_axis": drop} if plain else {})
    return out


def plan(x: Variable, item: Any) -> list[Cut]:
    """The slices of an index, one for each axis that does not stay whole."""
    items = list(item) if isinstance(item, tuple) else [item]
    dots = [i for i, e in enumerate(items) if e is Ellipsis]
    if len(dots) > 1:
        raise _bad(x, item, "Index can have one ellipsis only.", "one ... at most")
    if dots:
        items[dots[0] : dots[0] + 1] = [slice(None)] * (len(x.shape) - len(items) + 1)
    if len(items) > len(x.shape):
        raise _bad(x, item, f"Too many indices for variable {x.name}.", f"at most {len(x.shape)} indices")
    cuts = (_cut(x, item, axis, index) for axis, index in enumerate(items))
    return [c for c in cuts if c is not None]


def _cut(x: Variable, item: Any, axis: int, index: Any) -> Cut | None:
    size = x.shape[axis]
    if isinstance(index, slice):
        parts = [None if p is None else _integer(x, item, p) for p in (index.start, index.stop, index.step)]
        start, stop, step = parts
        if step == 0:
            raise _bad(x, item, "slice step cannot be zero.", "a step other than 0")
        if parts in ([None, None, None], [0, None, None], [None, None, 1]):
            return None
        step = 1 if step is None else step
        if step > 0:
            return Cut(axis, start or 0, _TO_THE_END if stop is None else stop, step, False)
        # strided_slice reads -1 as the end before the first element, numpy as the last element
        end = -1 if stop is None or 0 <= size < -stop else _TO_THE_END if stop == -1 else stop
        return Cut(axis, _TO_THE_END if start is None else start, end, step, False)
    at = _integer(x, item, index)
    if size >= 0 and not -size <= at < size:
        summary = f"Index {at} is out of range for axis {axis} of variable {x.name}."
        raise _bad(x, item, summary, f"{-size} to {size - 1}")
    return Cut(axis, at, _TO_THE_END if at == -1 else at + 1, 1, True)


def _integer(x: Variable, item: Any, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:  # an array or a type has an __index__ that refuses
        pass
    raise OpTypeError(
        "Valid index accept int or slice or tuple.", where=capture(3), slots=_operand(x),
        expected="an int, a slice, an ellipsis, or a tuple of these",
        received=f"{type(value).__name__} {value!r}"[:200], hint="layers.gather takes rows by a variable.",
    )  # fmt: skip


def _bad(x: Variable, item: Any, summary: str, expected: str) -> OpValueError:
    return OpValueError(
        summary, slots=_operand(x), where=capture(3), expected=expected, received=repr(item),
        hint="indices are those of numpy: ints, slices and one ellipsis.",
    )  # fmt: skip


def _operand(x: Variable) -> list[Operand]:
    return [("variable", x.name, dtype_name(x.dtype), x.shape)]


def _axes(cuts: list[Cut]) -> dict[str, list[int]]:
    return {"axes": [c.axis for c in cuts], "starts": [c.start for c in cuts], "ends": [c.end for c in cuts]}


def _append(x: Variable, op_type: str, attrs: dict[str, Any]) -> Variable:
    block = x.block.program.current_block()
    out = block.create_var(name=block._free_name(op_type + ".tmp"), dtype=x.dtype, shape=[], persistable=False)
    slot = "X" if op_type == "assign" else "Input"
    block.append_op(type=op_type, inputs={slot: [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out
