"""The templates of a program: those that its bindings made, and the bindings that may become one."""

from contextlib import suppress
from typing import Any

from fluidnb import memory
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.native.sized_code import Differs
from fluidnb.runtime.replay.binding_record import Record
from fluidnb.runtime.replay.replay_memory import ReplayMemory, Unexpected
from fluidnb.runtime.replay.size_plan import SizePlan
from fluidnb.runtime.replay.size_template import SizeTemplate

#: Templates of a program, and bindings that were compared in vain, after which no more are.
_MOST, _FAILURES = 4, 8
#: Sizes a little outside of a template after which it is made wider.
_MISSED = 4


class SizeTemplates:
    """The templates of a lowered program."""

    def __init__(self) -> None:
        self.found: list[SizeTemplate] = []
        self._records: list[Record] = []
        self._failed = 0

    @property
    def nbytes(self) -> int:
        """Bytes of their arenas."""
        return sum(one.nbytes for one in self.found if one.arena is not None)

    def begin(
        self, bound: ReplayMemory, same: tuple[Any, ...], feeds: dict[str, Fed], outer: dict[str, tuple[Any, Any]]
    ) -> None:
        """Give a binding its plan, where there is one, or have it recorded."""
        sizes = tuple([n for array, _ in feeds.values() for n in array.shape])
        for template in self.found[:]:
            size = template.size(sizes, same)
            if size is None:
                continue
            if not template.is_current(outer):
                self.found.remove(template)
            elif template.low <= size <= template.high:
                with suppress(memory.OutOfMemory, Unexpected):  # one size may need less; LoDs may be others
                    bound.plan = SizePlan(template, size, bound, feeds)
                return
        if self._failed < _FAILURES and all(known.sizes != sizes for known in self._records):
            bound.record = Record(bound, sizes, same, feeds, outer)

    def drop(self, plan: SizePlan) -> None:
        """Forget the template of a plan that was no good."""
        plan.drop()
        self._failed += 1
        if plan.template in self.found:
            self.found.remove(plan.template)

    def end(self, record: Record) -> None:
        """Make a template of a binding and those before it, where they have the form of one."""
        record.end()
        if record.joins:
            self._failed = _FAILURES
            return
        for i, template in enumerate(self.found):
            size = template.size(record.sizes, record.same)
            if size is not None:
                template.missed += 1
                if template.missed < _MISSED and 4 * template.low <= 5 * size <= 6 * template.high:
                    return  # sizes that grow one by one would be compared each time
                try:
                    self.found[i] = SizeTemplate([*template.ends, record])
                    return
                except Differs:
                    self._failed += 1
        self._records.append(record)
        if len(self._records) < 3:
            return
        try:
            self.found = [*self.found[1 - _MOST :], SizeTemplate(self._records)]
            self._records.clear()
        except Differs:
            self._failed += 1
            del self._records[0]
        if self._failed >= _FAILURES:
            self._records.clear()
