"""Large fed arrays that native code reads where the user has them, without a copy into the buffer of the run."""

from collections.abc import Iterable, Mapping
from typing import Any

from fluidnb.memory import address, flags, owner, root
from fluidnb.runtime.native.segment_code import SegmentCode
from fluidnb.runtime.observers import observers
from fluidnb.runtime.replay.joined_calls import arrays_of
from fluidnb.runtime.replay.segment import Segment

Array = Any


class DirectFeeds:
    """The feeds of a bound program whose only readers are native functions, which get their addresses from tables.

    Args:
        buffers: name -> the run's buffer, of large feeds.
        segment: the whole of the program.
        fetches: arrays that are fetched.
    """

    def __init__(self, buffers: Mapping[str, Array], segment: Segment, fetches: Iterable[Array]) -> None:
        shown = {id(root(array)) for array in fetches}
        self._buffers = {name: buffer for name, buffer in buffers.items() if id(root(buffer)) not in shown}
        self._segment = segment
        self._of: Any = None  # the calls whose tables are known
        self._words: dict[str, list[tuple[Any, int, int]]] = {}  # table, position, offset from the feed
        self._moved: set[str] = set()

    def take(self, name: str, value: Array) -> bool:
        """Let native code read a fed array itself; False where the array has to be copied."""
        code = self._segment.code
        if code is None or not code.settled:  # another thread could exchange the calls after this
            return False
        if code.best is not self._of:
            self._inspect(code)
        words = self._words.get(name)
        if words is None:
            return False
        if observers or flags.values["native"] == "off" or not _is_apart(value):
            self._put_back(name)
            return False
        start = address(value)
        for table, position, offset in words:
            table[position] = start + offset
        self._moved.add(name)
        return True

    def put_back(self) -> None:
        """Let all functions read the buffers of the run again."""
        for name in list(self._moved):
            self._put_back(name)

    def settle(self, feed: Mapping[str, Array]) -> None:
        """Copy what was read where the user has it, for those who read the buffers."""
        for name in list(self._moved):
            self._put_back(name)
            self._buffers[name][...] = feed[name]

    def _put_back(self, name: str) -> None:
        if name in self._moved:
            self._moved.discard(name)
            start = address(self._buffers[name])
            for table, position, offset in self._words[name]:
                table[position] = start + offset

    def _inspect(self, code: SegmentCode) -> None:
        """Find the feeds that only native functions read, and none writes, and where their addresses are."""
        from fluidnb.runtime.native.functions import Bound
        from fluidnb.runtime.native.statements import statement_of

        self.put_back()
        self._of, self._words = code.best, {}
        if not code.native:
            return
        left = {id(root(buffer)): name for name, buffer in self._buffers.items() if buffer.flags.c_contiguous}
        for function, args in code.joined.calls:  # in place of an input that nobody else needs, an output may be there
            statement = statement_of((function, args), 0)
            written = list(_arrays(function, args)) if statement is None else [statement.operands[-1].array]
            for array in written:
                left.pop(id(root(array)), None)
        tables = []
        for function, args in code.best.calls:
            if args and type(args[0]) is Bound:
                tables.append(args[0].table)
                continue
            for array in _arrays(function, args):
                left.pop(id(root(array)), None)
        spans = {name: (address(self._buffers[name]), self._buffers[name].nbytes) for name in left.values()}
        self._words = {name: [] for name in spans}
        for table in tables:
            for position, word in enumerate(table):
                for name, (start, size) in spans.items():
                    if start <= word < start + size:
                        self._words[name].append((table, position, word - start))


def _is_apart(value: Array) -> bool:
    """Whether native code can read an array, and a run cannot write into its memory."""
    return bool(value.flags.c_contiguous and value.flags.aligned and owner(value) is None)


def _arrays(function: Any, args: Any) -> Iterable[Array]:
    return arrays_of([getattr(function, "__self__", None), *args, *getattr(function, "keywords", {}).values()])
