"""Suggests a change with which a broken rule of an operator holds: one attribute, or the shape of one input.

The rule itself is tried with the change, so that a suggestion works when it is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fluidnb.op.compile_context import CompileContext

#: Trials of one broken rule: 20 us each.
MOST_TRIALS = 60
#: The size that stands for an unknown one, such as the batch: a rule must not hold only because it cannot tell.
UNKNOWN = 9973


class Suggestion(NamedTuple):
    """One change with which the rule of an operator holds.

    Attributes:
        name: the attribute, or the input's slot.
        value: the attribute's value, or the input's shape.
        variable: the input's variable; empty for an attribute.
        reshaped: whether the input has as many elements as the shape.
    """

    name: str
    value: Any
    variable: str = ""
    reshaped: bool = False

    def __str__(self) -> str:
        if not self.variable:
            return f"Attr({self.name}) = {self.value!r} fits."
        if self.reshaped:
            return f"layers.reshape({self.variable}, {list(self.value)}) fits as Input({self.name})."
        return f"{self.variable} of shape {list(self.value)} fits as Input({self.name})."


def suggest(context: CompileContext) -> Suggestion | None:
    """The first change with which the rule of a context's operator holds; None where no trial succeeds."""
    rule = context.definition.infer
    if rule is None:
        return None
    trial, shapes = context.trial(), _input_shapes(context)
    for number, change in enumerate(_changes(context, shapes)):
        if number == MOST_TRIALS:
            return None
        trial.attrs = context.attrs if change.variable else {**context.attrs, change.name: change.value}
        trial.assumed_shapes = {name: shape for (_, name), shape in shapes.items()}
        if change.variable:
            trial.assumed_shapes[change.variable] = change.value
        try:
            rule(trial)
        except Exception:  # also what a rule does not expect of a program that its first checks refused
            continue
        if not change.variable:
            return change
        return change._replace(value=[-1 if n == UNKNOWN else n for n in change.value])
    return None


def _input_shapes(context: CompileContext) -> dict[tuple[str, str], tuple[int, ...]]:
    """(slot, variable) -> shape of the inputs that are tensors."""
    return {
        (slot, name): tuple(UNKNOWN if n < 0 else n for n in value.shape)
        for slot, names in context.inputs.items()
        for name, value in zip(names, context.all(slot), strict=False)
        if value.dtype is not None
    }


def _changes(context: CompileContext, shapes: dict[tuple[str, str], tuple[int, ...]]) -> Iterator[Suggestion]:
    """Attributes that were given, inputs with other axes, other attributes, inputs with other sizes."""
    attrs = {n: v for n, v in context.attrs.items() if n in context.definition.attrs}
    defaults = {n: context.definition.attrs[n].default for n in attrs}
    given = {n: v for n, v in attrs.items() if v != defaults[n]}
    for name, value in given.items():
        yield from (Suggestion(name, v) for v in _values(value, defaults[name], list(shapes.values())))
    changes = [
        Suggestion(slot, other, name, prod(other) == prod(shape))
        for (slot, name), shape in reversed(shapes.items())  # what comes later shall fit what is there
        for other in _shapes(shape, [s for k, s in shapes.items() if k != (slot, name)])
        if UNKNOWN not in other[1:]
    ]
    yield from (change for change in changes if change.reshaped)
    for name in attrs.keys() - given.keys():
        yield from (Suggestion(name, v) for v in _values(attrs[name], defaults[name], list(shapes.values())))
    yield from (change for change in changes if not change.reshaped)


def _values(value: Any, default: Any, shapes: list[tuple[int, ...]]) -> Iterator[Any]:
    """Other values of an attribute, the nearest first."""
    sizes = {n for shape in shapes for n in shape if 0 < n < UNKNOWN}
    ranks = {len(shape) for shape in shapes}
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        others = {0, 1, 2, -1, *sizes, *ranks, *(n - 1 for n in ranks)}
        others |= {d for n in sizes for d in range(1, min(n, 64) + 1) if n % d == 0}
        others |= {default} if isinstance(default, int) else set()
        yield from sorted(others - {value}, key=lambda n: (abs(n - value), n))
    elif isinstance(value, list) and value and all(isinstance(n, int) for n in value):
        lengths = sorted({*ranks, *(2 * n for n in ranks), *(n - 2 for n in ranks), len(value)} - {0, -1})
        for positive in (value, [max(n, 1) for n in value]):
            yield from ([*positive[:n], *[positive[-1]] * (n - len(positive))] for n in lengths)
        yield from (list(shape) for shape in shapes if UNKNOWN not in shape)
        yield from ([min(a, b) for a, b in zip(value, shape, strict=False)] for shape in shapes)
        yield from ([min(max(n, -rank), rank - 1) for n in value] for rank in ranks - {0})
    elif isinstance(value, float) and isinstance(default, float):
        yield default


def _shapes(shape: tuple[int, ...], others: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Other shapes of an input: another number of axes, or sizes of other inputs."""
    if len(shape) > 1:
        if shape[-2] != UNKNOWN:
            yield (*shape[:-2], shape[-2] * shape[-1])
        yield shape[:-1]
        yield (*shape[:-1], 1)
        yield (*shape[:-2], shape[-1], shape[-2])
    yield (*shape, 1)
    yield (1, *shape)
    if len(shape) == 2:
        yield (shape[0], shape[1], 1, 1)
    for other in others:
        yield other
        yield (*other[:1], *shape[1:])
        yield (*shape[:-1], *other[-1:])
        yield (*other[:1], 1)
