"""Checks that the shape rules of many operators share, and numbers that come as an attribute or as variables."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Context, get_op
from fluidnb.op.rules import Rule
from fluidnb.values.copies import on_host

Shape = Sequence[int]

#: Slots that give a shape as one variable, or as a list of sizes.
SHAPE_SLOTS = {
    "ShapeTensor?": "the sizes as a variable, instead of the attribute",
    "ShapeTensorList*?": "each size as a variable of one element",
}


def attributes(c: Context) -> Any:
    """The attributes of an operator, or of the one whose gradient it computes, by name: ``a.nms_top_k``."""
    declared = get_op(c.definition.type.removesuffix("_grad")).attrs
    return SimpleNamespace(**{name: c.attr(name, attr.default) for name, attr in declared.items()})


def one_axis(c: Context, axis: int, rank: int, attr: str = "axis") -> int:
    """A dimension that an attribute names, from 0; negative ones count from the end."""
    c.require(
        -rank <= axis < rank, f"Attr({attr}) of {c.definition.type} must name a dimension.",
        expected=f"{-rank} to {rank - 1}", received=axis, hint=f"{rank - 1} is the last one." if rank else "",
    )  # fmt: skip
    return axis % rank


def agree(a: Shape, b: Shape) -> bool:
    """Whether two shapes can be the same; -1 fits anything."""
    return len(a) == len(b) and all(m == n or m < 0 or n < 0 for m, n in zip(a, b, strict=True))


def kept(shape: Shape, axis: int) -> list[int]:
    """A shape with size 1 along one axis."""
    out = list(shape)
    out[axis] = 1
    return out


def joint(a: Shape, b: Shape) -> tuple[int, ...]:
    """The known sizes of two shapes that agree."""
    return tuple(max(m, n) for m, n in zip(a, b, strict=True))


def same_shape(c: Context, first: str, second: str) -> None:
    """Require that two inputs have the same shape."""
    a, b = c[first].shape, c[second].shape
    c.require(
        agree(a, b), f"Input({first}) and Input({second}) of {c.definition.type} must have the same shape.",
        expected=f"{list(a)}, the shape of {first}", received=f"{list(b)}",
    )  # fmt: skip


def fits(c: Context, slot: str, shape: Shape, message: str, expected: Any = None, hint: str = "") -> None:
    """Require that an input, where it is given, has a shape; -1 fits anything."""
    if c.has(slot):
        have = list(c[slot].shape)
        c.require(agree(have, shape), message, expected=expected or list(shape), received=have, hint=hint)


def vectors(c: Context, slots: Sequence[str], size: int, of: str = "channel", hint: str = "") -> None:
    """Require that inputs, where they are given, have one element for each channel."""
    for slot in slots:
        message = f"{slot} of {c.definition.type} must have one element for each {of}."
        fits(c, slot, (size,), message, f"[{size}]", hint)


def check_below(numbers: Any, count: int, message: str, hint: str) -> None:
    """Raise unless all numbers are from 0 to before a count."""
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        raise EnforceNotMet(
            message, expected=f"0 to {count - 1}", received=f"{numbers.min()} to {numbers.max()}", hint=hint,
        )  # fmt: skip


def check_classes(label: Any, classes: int) -> None:
    """Raise unless all labels are classes."""
    wrong = (np.asarray(label) < 0) | (np.asarray(label) >= classes)
    if wrong.any():
        raise EnforceNotMet(
            f"A label is out of range: it should be from 0 to {classes - 1}.", expected=f"0 to {classes - 1}",
            received=int(np.asarray(label)[wrong][0]),
        )  # fmt: skip


def image_rank(c: Context, x: Any, name: str) -> int:
    """The number of axes of an image, which the name of an operator has; its input is checked."""
    rank = 3 if "3d" in name else 2
    c.require(
        x.ndim == rank + 2, f"The input of {name} must be a {rank + 2}-D tensor.",
        expected=f"[batch, channels, {'depth, ' * (rank - 2)}height, width]", received=list(x.shape),
    )  # fmt: skip
    return rank


def per_axis(c: Context, name: str, attr: str, rank: int, allowed: Sequence[int]) -> None:
    """Require that an attribute has one number for each axis of an image, or another number of them."""
    given = c.attr(attr, [1] * rank)
    c.require(
        len(given) in allowed, f"Attr({attr}) of {name} must have one number for each axis of the image.",
        expected=" or ".join(f"{n} numbers" for n in allowed), received=given,
    )  # fmt: skip


def alike(inputs: str, outputs: str, like: str = "") -> Rule:
    """Rule: inputs have one shape, which outputs take with the dtype and LoD of one of them, by default the first."""
    first, *others = inputs.split()
    source = like or first

    def infer(c: Context) -> None:
        for slot in others:
            same_shape(c, first, slot)
        x = c[source]
        for slot in outputs.split():
            c.set(slot, x.shape, x.dtype, c.lod(source))

    return infer


def class_numbers_hint(c: Context) -> str:
    """The hint for labels that are no class numbers."""
    return f'declare {c.name("Label")} with dtype="int64"; soft_label=True takes a probability for each class instead.'


def checked(rule: Rule, *slots: str) -> Rule:
    """Rule: inputs, by default all, are as their slots declare them, and outputs as another rule says."""

    def infer(c: Context) -> None:
        c.check_inputs(*slots)
        rule(c)

    return infer


def whole_numbers(c: Context, slot: str) -> None:
    """Require that an input holds integers."""
    dtype: Any = np.dtype(c[slot].dtype)
    c.require(
        dtype.kind in "iu", f"Input({slot}) of {c.definition.type} must hold integers.",
        expected="int32 or int64", received=dtype.name, hint=f'layers.cast({c.name(slot)}, "int64") converts it.',
    )  # fmt: skip


def integers(c: Context, attr: str, whole: str = "", each: str = "", unknown: int = -1) -> list[int]:
    """Whole numbers of an attribute, or of variables; an operator that reads them needs ``guard=values_of(...)``."""
    for slot in (whole, each):
        if slot and c.has(slot):
            values = c.all(slot)
            if not c.runtime:
                return [unknown] * (len(values) if slot == each else max(values[0].size, 0))
            return [int(n) for v in values for n in on_host(v).reshape(-1)]
    value = c.attr(attr, 0)
    return list(value) if isinstance(value, list) else [value]


def integer(c: Context, attr: str, whole: str) -> int:
    """The whole number that an operator is given; -1 while it is unknown; see `integers`."""
    if not c.has(whole):
        return int(integers(c, attr)[0])
    size = c[whole].size
    c.require(
        size == 1 or size <= 0 and not c.runtime, f"Input({whole}) of {c.definition.type} must hold one number.",
        expected="shape [1]", received=list(c[whole].shape),
    )  # fmt: skip
    return int(on_host(c[whole]).reshape(-1)[0]) if c.runtime else -1


def require_fixed(c: Context, *slots: str) -> None:
    """Requires that no inputs with sizes or positions are given, for code whose sizes are fixed."""
    for slot in filter(c.has, slots):
        c.fail(
            f"{c.definition.type} takes numbers from a variable, and sizes in C are fixed.",
            expected="numbers as an attribute", received=f"{slot}: {c.name(slot)}",
            hint="give the numbers as a list when the layer is called.",
        )  # fmt: skip
