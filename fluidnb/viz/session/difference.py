"""The difference of a variable's value between two steps of a debug session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.view import has_value
from fluidnb.errors import OpValueError
from fluidnb.values.copies import on_host
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.session.panel_values import find_value
from fluidnb.viz.values.tensor_window import View, element_text, read_page

#: Changed elements that are listed.
_MOST = 8
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ChangedElement:
    """An element whose value differs; numbers as text."""

    index: tuple[int, ...]
    old: str  # its value at the earlier step
    new: str  # its value now
    absolute: str  # new - old
    relative: str  # the size of the difference divided by the size of the old value


@dataclass(frozen=True, slots=True)
class Difference:
    """A variable now, compared with its value at another step."""

    at: int  # the other step
    problem: str = ""  # why the values cannot be compared; empty where they can
    count: int = 0  # elements of the tensor
    changed: int = 0  # elements that differ
    largest: tuple[ChangedElement, ...] = ()  # the elements with the largest absolute differences, NaN first
    mean: str = ""  # the mean absolute difference
    # old, absolute, relative and changed -> that part of the tensor which is seen
    pages: dict[str, tuple[tuple[str, ...], ...]] | None = None

    @property
    def summary(self) -> str:
        """A sentence about it."""
        if self.problem:
            return self.problem
        if not self.changed:
            return f"no element differs from step {self.at}"
        verb = "differs" if self.changed == 1 else "differ"
        return f"{self.changed:,} of {self.count:,} elements {verb} from step {self.at}, by {self.mean} on average"


def value_at(debugger: Debugger, name: str, frame: int, at: int) -> Array | None:
    """A copy of a tensor at another step, as visible from a scope (-1: the innermost); None without one."""
    first, last = debugger.tape.forgotten, debugger.snapshot.reached
    if not first <= at <= last:
        raise OpValueError("The session has not been at that step.", expected=f"{first} to {last}", received=at)

    def earlier() -> Array | None:
        value = find_value(debugger, name, frame)
        return np.array(on_host(value.array)) if has_value(value) and type(value) is LoDTensor else None

    return debugger.tape.visit(at, earlier)


def difference(now: Any, old: Array | None, at: int, view: View | None = None) -> Difference:
    """Compares a tensor with its elements at another step, None without a value there."""
    new = on_host(now)
    if old is None:
        return Difference(at, f"it had no value at step {at}")
    if old.shape != new.shape:
        return Difference(at, f"its shape was {list(old.shape)} at step {at}, and is {list(new.shape)} now")
    a, b = old.astype("float64"), new.astype("float64")
    with np.errstate(all="ignore"):
        changed = (old != new) & ~(np.isnan(a) & np.isnan(b))
        absolute = np.where(changed, b - a, 0.0)
        relative = np.where(changed, np.abs(absolute) / np.abs(a), 0.0)
        size = np.where(np.isnan(absolute), np.inf, np.abs(absolute)).reshape(-1)
    most = [int(i) for i in np.argsort(-size, kind="stable")[:_MOST] if changed.reshape(-1)[i]]
    arrays = {"old": old, "absolute": absolute, "relative": relative, "changed": changed}
    return Difference(
        at, "", new.size, int(changed.sum()),
        tuple(
            ChangedElement(
                tuple(int(i) for i in np.unravel_index(each, new.shape)),
                *(element_text(x.reshape(-1)[each].item()) for x in (old, new, absolute, relative)),
            )
            for each in most
        ),
        element_text(float(np.abs(absolute).mean()) if new.size else 0.0),
        {name: read_page(array, view).cells for name, array in arrays.items()},
    )  # fmt: skip


def difference_lines(name: str, difference: Difference, width: int = 0) -> list[Line]:
    """Text rendering: a summary, and the elements that differ most."""
    head: list[Line] = [[(name, "name"), (f"  {difference.summary}", "")]]
    if not difference.largest:
        return head
    titles = ("  index", "old", "new", "absolute", "relative")
    rows: list[list[Line]] = [[[(title, "dim")] for title in titles]]
    for each in difference.largest:
        index = f"  [{', '.join(map(str, each.index))}]"
        rows.append([[(index, "dim")], *([(t, "")] for t in (each.old, each.new, each.absolute, each.relative))])
    left = difference.changed - len(difference.largest)
    more: list[Line] = [[(f"  … and {left:,} more", "dim")]] if left else []
    return [*head, *columns(rows, width), *more]
