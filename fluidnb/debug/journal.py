"""The undo journal, within a budget of bytes; the oldest steps are dropped first."""

from collections import deque
from typing import Any

from fluidnb.runtime.interpreter.interpreter import Undo
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable

#: Bytes of a record without its arrays: itself, its tuple of frames, its lists; and bytes of each row.
_RECORD, _ROW = 520, 120


class Journal:
    """The last steps of an interpreter, newest last.

    A step that gives a variable a new array keeps a reference to the old one, a step that writes into an array keeps a
    copy of the old values. Both count, and so do the records themselves.

    Example:
        >>> journal = Journal(budget=1000)
        >>> for _ in range(3):
        ...     journal.append(Undo((), [], [], []))
        >>> len(journal), journal.dropped, journal.nbytes
        (1, 2, 520)
    """

    __slots__ = ("_costs", "_records", "budget", "dropped", "nbytes")

    def __init__(self, budget: int) -> None:
        self.budget = budget  # bytes; the oldest records go when there are more, the newest one stays
        self.nbytes = 0
        self.dropped = 0
        self._records: deque[Undo] = deque()
        self._costs: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, at: int) -> Undo:
        return self._records[at]

    def append(self, undo: Undo) -> None:
        """Add the last step."""
        cost = cost_of(undo)
        self._records.append(undo)
        self._costs.append(cost)
        self.nbytes += cost
        while self.nbytes > self.budget and len(self._records) > 1:
            self.keep(len(self._records) - 1)

    def pop(self) -> Undo:
        """Remove and return the newest step; raises IndexError if there is none."""
        undo = self._records.pop()
        self.nbytes -= self._costs.pop()
        return undo

    def keep(self, count: int) -> None:
        """Drop all but the newest ``count`` records."""
        while len(self._records) > count:
            self._records.popleft()
            self.nbytes -= self._costs.popleft()
            self.dropped += 1

    def clear(self) -> None:
        """Drops all entries."""
        self.keep(0)


def wrote(undo: Undo, variable: Variable) -> bool:
    """Whether a step gave a variable another value; called directly after the step.

    Returns:
        Whether its memory was written, or it got other memory, another LoD or another object. An operator that only
        has the variable as an output, as `while` when it begins, does not count.
    """
    now: Any = variable.value
    array = now.array if type(now) is LoDTensor else None
    if array is not None and any(buffer is array for buffer, _ in undo.arrays):
        return True
    if isinstance(now, list) and any(items is now and items != old for items, old in undo.lists):
        return True
    for row, value, old, lod in undo.cells:
        if row is variable and (value is not now or (array is not old if type(value) is LoDTensor else False)):
            return True
        if row is variable and type(now) is LoDTensor and now.lod_ != lod:
            return True
    return False


def cost_of(undo: Undo) -> int:
    """The bytes that a record keeps alive, itself included."""
    cost = _RECORD + _ROW * (len(undo.cells) + len(undo.arrays) + len(undo.lists))
    for variable, value, array, _ in undo.cells:
        now = variable.value
        if type(value) is LoDTensor:
            if array is not None and (now is not value or value.array is not array):
                cost += array.nbytes
        elif value is not None and now is not value:
            cost += _size(value)
    for _, old in undo.arrays:
        cost += old.nbytes
    for _, items in undo.lists:
        cost += 8 * len(items)
    return cost


def _size(value: object) -> int:
    """The bytes of a value that is not a tensor, as far as it contains arrays."""
    if isinstance(value, SelectedRows):
        value = value.value.array
    return int(getattr(value, "nbytes", 0))
