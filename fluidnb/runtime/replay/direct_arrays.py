"""Large arrays that native code reads and writes where the user has them, without copies through buffers of the run."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from fluidnb.memory import address, flags, owner, root
from fluidnb.runtime.native.segment_code import SegmentCode
from fluidnb.runtime.observers import observers
from fluidnb.runtime.replay.joined_calls import arrays_of
from fluidnb.runtime.replay.segment import Segment

Array = Any
#: Types of arguments that have no arrays but themselves; a method's module or function is among them.
_PLAIN = np.ndarray, np.generic, np.dtype, np.ufunc, int, float, complex, str, bytes, slice, type, ModuleType
#: Results of one variable that are kept to be used again when the user has dropped them.
_KEPT = 2


class DirectArrays:
    """The feeds and fetches of a bound program that native functions alone touch, which get addresses from tables.

    Args:
        feeds: name -> the run's buffer, of large feeds.
        fetches: number -> the run's buffer, of large results that are the run's own.
        shown: all arrays that are fetched.
        segment: the whole of the program.
    """

    def __init__(
        self, feeds: Mapping[str, Array], fetches: Mapping[int, Array], shown: Iterable[Array], segment: Segment
    ) -> None:
        fetched, fed = [id(root(array)) for array in shown], {id(root(buffer)) for buffer in feeds.values()}
        self._buffers: dict[str | int, Array] = {}
        self._kept: dict[int, list[Array]] = {}
        for name, buffer in feeds.items():
            if id(root(buffer)) not in fetched:
                self._buffers[name] = buffer
        for number, buffer in fetches.items():
            if fetched.count(id(root(buffer))) == 1 and id(root(buffer)) not in fed:
                self._buffers[number], self._kept[number] = buffer, []
        self._segment = segment
        self._of: Any = None  # the calls whose tables are known
        self._words: dict[str | int, list[tuple[Any, int, int]]] = {}  # table, position, offset from the buffer
        self._moved: set[str | int] = set()
        self._results: dict[int, Array] = {}

    def take(self, name: str, value: Array) -> bool:
        """Let native code read a fed array itself; False where the array has to be copied."""
        if not self._is_possible() or name not in self._words or not _is_apart(value):
            self._put_back(name)
            return False
        self._move(name, value)
        return True

    def aim(self) -> None:
        """Let native code write results into arrays that the user gets, before a run."""
        self.keep_results()
        if not self._is_possible():
            return
        for number, kept in self._kept.items():
            if number not in self._words:
                continue
            free = next((kept[i] for i in range(len(kept)) if _references(kept, i) == _ALONE), None)
            if free is None:
                free = np.empty_like(self._buffers[number])
                kept[:] = [*kept[1 - _KEPT :], free]
            self._move(number, free)
            self._results[number] = free

    def keep_results(self) -> None:
        """Let native code write results into the buffers of the run."""
        self._results.clear()
        for number in self._kept:
            self._put_back(number)

    def result(self, number: int) -> Array | None:
        """The array of a result, for the user; None where it is in the buffer of the run."""
        return self._results.pop(number, None)

    def put_back(self) -> None:
        """Let all functions use the buffers of the run again."""
        for key in list(self._moved):
            self._put_back(key)

    def settle(self, feed: Mapping[str, Array]) -> None:
        """Copy what was read where the user has it, for those who read the buffers."""
        for key in list(self._moved):
            self._put_back(key)
            if isinstance(key, str):
                self._buffers[key][...] = feed[key]

    def _is_possible(self) -> bool:
        code = self._segment.code
        if code is None or not code.settled:  # another thread could exchange the calls after this
            return False
        if code.best is not self._of:
            self._inspect(code)
        return bool(self._words) and not observers and flags.values["native"] != "off"

    def _move(self, key: str | int, array: Array) -> None:
        start = address(array)
        for table, position, offset in self._words[key]:
            table[position] = start + offset
        self._moved.add(key)

    def _put_back(self, key: str | int) -> None:
        if key in self._moved:
            self._move(key, self._buffers[key])
            self._moved.discard(key)

    def _inspect(self, code: SegmentCode) -> None:
        """Find the buffers that only native functions touch, and feeds that none writes, and their addresses."""
        from fluidnb.runtime.native.functions import Bound
        from fluidnb.runtime.native.statements import statement_of

        self.put_back()
        self._of, self._words = code.best, {}
        shown = (each for function, args in code.joined.calls for each in (getattr(function, "__self__", None), *args))
        if not code.native or self._segment.updates is not None or not all(map(_is_plain, shown)):
            return
        left = {id(root(x)): key for key, x in self._buffers.items() if x.flags.c_contiguous}
        for function, args in code.joined.calls:  # in place of an input that nobody else needs, an output may be there
            statement = statement_of((function, args), 0)
            if statement is None:
                _drop(left, _arrays(function, args))
            elif isinstance(left.get(id(root(statement.operands[-1].array))), str):
                _drop(left, [statement.operands[-1].array])
        tables = []
        for function, args in code.best.calls:
            if args and type(args[0]) is Bound:
                tables.append(args[0].table)
            else:
                _drop(left, _arrays(function, args))
        spans = {key: (address(self._buffers[key]), self._buffers[key].nbytes) for key in left.values()}
        self._words = {key: [] for key in spans}
        for table in tables:
            for position, word in enumerate(table):
                for key, (start, size) in spans.items():
                    if start <= word < start + size:
                        self._words[key].append((table, position, word - start))


def _references(arrays: list[Array], i: int) -> int:
    array = arrays[i]
    return sys.getrefcount(array)


#: The count for an array that nobody has but the list; versions of Python count variables differently.
_ALONE = _references([np.empty(0)], 0)


def _is_plain(x: Any) -> bool:
    """Whether an argument shows all arrays that it has: a block or a tensor may have others."""
    if type(x) in (tuple, list):
        return all(map(_is_plain, x))
    return x is None or x is Ellipsis or isinstance(x, _PLAIN)


def _drop(left: dict[int, str | int], arrays: Iterable[Array]) -> None:
    for array in arrays:
        left.pop(id(root(array)), None)


def _is_apart(value: Array) -> bool:
    """Whether native code can read an array, and a run cannot write into its memory."""
    return bool(value.flags.c_contiguous and value.flags.aligned and owner(value) is None)


def _arrays(function: Any, args: Sequence[Any]) -> Iterable[Array]:
    return arrays_of([getattr(function, "__self__", None), *args, *getattr(function, "keywords", {}).values()])
