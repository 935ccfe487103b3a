"""Sizes that a model computes by nodes: known numbers, and None for a size that only a feed decides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fluidnb.onnx.importer import Importer, Node

Array = np.ndarray[Any, Any]
#: Larger tensors are no lists of sizes.
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class ShapeValue:
    """A tensor of sizes.

    Args:
        values: numbers, or None where one is not known, as an array of objects.
        dtype_name: its dtype.
    """

    values: Array
    dtype_name: str = "int64"


def ints(value: ShapeValue) -> Array | None:
    """The numbers, where all are known."""
    if any(each is None for each in value.values.reshape(-1)):
        return None
    return value.values.astype(np.int64)


def evaluate(importer: Importer, node: Node) -> ShapeValue | None:
    """The known sizes in the first output of a node; None where it holds no sizes."""
    if node.op == "Shape":
        return _shape(importer, node)
    formula = _FORMULAS.get(node.op)
    if formula is None or not node.inputs:
        return None
    given = [_given(importer, node, i) for i in range(len(node.inputs))]
    if any(each is None for each in given) or not any(
        importer.resolve(name) in importer.shapes for name in node.inputs
    ):
        return None
    values = [each for each in given if each is not None]
    try:
        result = formula(importer, node, [each.values for each in values])
    except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError):
        return None
    if result is None:
        return None
    dtype = values[1].dtype_name if node.op == "Where" else "bool" if node.op == "Equal" else values[0].dtype_name
    if node.op == "Cast":
        dtype = importer.dtype(node.attrs["to"])
    return ShapeValue(np.asarray(result, object), dtype)


def _shape(importer: Importer, node: Node) -> ShapeValue | None:
    name = importer.resolve(node.inputs[0])
    found = importer.constants.get(name)
    sizes = list(found.shape if found is not None else importer.shape(name))
    sizes = sizes[node.attrs.get("start", 0) : node.attrs.get("end", len(sizes))]
    return ShapeValue(np.array([None if n < 0 else int(n) for n in sizes], object))


def _given(importer: Importer, node: Node, index: int) -> ShapeValue | None:
    name = importer.resolve(node.inputs[index])
    if name in importer.shapes:
        return importer.shapes[name]
    value = importer.constants.get(name)
    if value is None or value.dtype.kind not in "iub" or value.size > _LONGEST:
        return None
    return ShapeValue(value.astype(object), value.dtype.name)


def _each(function: Callable[[Any, Any], Any]) -> Callable[[Importer, Node, list[Array]], Array]:
    """A function of two numbers on tensors; a size that is not known makes the result not known."""
    whole = np.frompyfunc(lambda a, b: None if a is None or b is None else function(a, b), 2, 1)
    return lambda importer, node, given: np.asarray(whole(*given), object)


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _axes(node: Node, given: list[Array]) -> list[int]:
    found = node.attrs.get("axes")
    return [int(n) for n in (found if found is not None else given[1].reshape(-1) if len(given) > 1 else ())]


def _squeeze(importer: Importer, node: Node, given: list[Array]) -> Array:
    axes = _axes(node, given)
    return np.squeeze(given[0], tuple(axes) if axes else None)


def _unsqueeze(importer: Importer, node: Node, given: list[Array]) -> Array:
    return np.expand_dims(given[0], tuple(_axes(node, given)))


def _slice(importer: Importer, node: Node, given: list[Array]) -> Array | None:
    if "starts" in node.attrs or given[0].ndim != 1:
        starts, ends, step = node.attrs["starts"][0], node.attrs["ends"][0], 1
    else:
        starts, ends, step = given[1][0], given[2][0], given[4][0] if len(given) > 4 else 1
    if None in (starts, ends, step):
        return None
    return given[0][slice(int(starts), int(ends), int(step))]


def _where(importer: Importer, node: Node, given: list[Array]) -> Array:
    choose = np.frompyfunc(lambda c, a, b: None if c is None else a if c else b, 3, 1)
    return np.asarray(choose(*given), object)


def _equal(importer: Importer, node: Node, given: list[Array]) -> Array:
    # A size is never negative: torch compares with -1 to find the axes that an Expand keeps.
    def same(a: Any, b: Any) -> bool | None:
        if a is None or b is None:
            return False if -1 in (a, b) else None
        return bool(a == b)

    return np.asarray(np.frompyfunc(same, 2, 1)(*given), object)


def _product(importer: Importer, node: Node, given: list[Array]) -> Array | None:
    values = given[0].reshape(-1)
    product = None if None in values.tolist() else int(np.prod(values.astype(np.int64)))
    return np.array([product] if node.attrs.get("keepdims", 1) else product, object)


_FORMULAS: dict[str, Callable[[Any, Any, list[Array]], Array | None]] = {
    "Identity": lambda importer, node, given: given[0],
    "Cast": lambda importer, node, given: given[0],
    "Gather": lambda importer, node, given: np.asarray(np.take(given[0], given[1].astype(np.int64)), object),
    "Concat": lambda importer, node, given: np.concatenate(given),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": lambda importer, node, given: given[0].reshape(given[1].astype(np.int64)),
    "Slice": _slice,
    "Add": _each(operator.add),
    "Sub": _each(operator.sub),
    "Mul": _each(operator.mul),
    "Div": _each(_quotient),
    "Mod": _each(operator.mod),
    "Max": _each(max),
    "Min": _each(min),
    "Equal": _equal,
    "Where": _where,
    "ReduceProd": _product,
}
