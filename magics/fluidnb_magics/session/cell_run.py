"""One run of a cell together with the cells that append to its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from IPython.utils.capture import capture_output

from fluidnb.cells import build_state, saved_layer_objects
from fluidnb.cells.build_state import BuildState
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.errors import OpValueError
from fluidnb.program import Block, hooks, origin
from fluidnb.program.origin import Origin
from fluidnb_magics.session.cell_groups import OPEN, Group
from fluidnb_magics.session.cells import Cell, Compiled, run_cell
from fluidnb_magics.session.name_hints import NameHints
from fluidnb_magics.session.opened_blocks import Opened, OpenedBlocks, labels


class StillOpen(BaseException):
    """Leaves the ``with`` of a block that stays open; the operators built so far are restored behind it."""

    def __init__(self, frame: Frame, block: Block, opener: object, state: BuildState) -> None:
        super().__init__()
        self.frame, self.block, self.opener, self.state = frame, block, opener, state

    def restore(self, before: Iterable[SavedObject]) -> None:
        """Restore the program as it was at the end of the body, and the object as it was before."""
        build_state.restore(self.state)
        self.block.program.current_block_idx = self.block.parent_idx
        its = {id(shot.thing) for shot in saved_layer_objects.take([self.opener])}
        for shot in before:
            if id(shot.thing) in its:
                shot.put_back()


@dataclass(eq=False)
class Frame:
    """A cell that runs."""

    group: Group  # the cell with its parts
    made_by: Origin | None  # the run, to which its blocks point
    waiting: list[Group] = field(default_factory=list)  # the parts that have not run yet
    names: Counter[str] = field(default_factory=Counter)  # how many blocks of each name have ended


class Building:
    """Runs a cell; at the end of each of its blocks, the cells that append to it."""

    def __init__(
        self, shell: Any, group: Group, code: Callable[[Cell], Compiled], blocks: OpenedBlocks,
        displayed: Hashable | None,
    ) -> None:  # fmt: skip
        self._shell, self._group, self._code, self._blocks = shell, group, code, blocks
        self._displayed = displayed  # key of the cell whose output and values are shown; other output is dropped
        self._frames: list[Frame] = []
        self._silence: capture_output | None = None
        self.failed: Group | None = None

    def run(self) -> None:
        """Runs the cell."""
        before, hooks.body_ends = hooks.body_ends, self._body_ends
        try:
            self._run(self._group)
        finally:
            hooks.body_ends = before

    def _run(self, group: Group) -> None:
        cell = group.cell
        frame = Frame(group, origin.current(), list(group.parts))
        things = saved_layer_objects.take(self._shell.user_ns.values()) if group.state == OPEN else []
        hint, hooks.name_hint = hooks.name_hint, NameHints(cell.name)
        self._frames.append(frame)
        displayed = self._displayed is not None and cell.key == self._displayed
        try:
            with self._displaying(displayed):
                run_cell(self._shell, cell, self._code(cell), display=displayed)
        except StillOpen as still:
            if still.frame is not frame:
                raise
            still.restore(things)
        except BaseException:
            self.failed = self.failed or group
            raise
        else:
            if group.state == OPEN:
                self.failed = group
                raise OpValueError(
                    f"{cell.name} opens no block.", received=cell.source.splitlines()[0],
                    expected="what fills a block in a `with`, like loop.block() or rnn.step()",
                    hint=f"for example %fluid block open {cell.name}=ie.true_block()",
                )  # fmt: skip
        finally:
            self._frames.pop()
            hooks.name_hint = hint
        if frame.waiting:
            lost = frame.waiting[0].cell
            self.failed = frame.waiting[0]
            raise OpValueError(
                f'cell "{lost.title}" appends to a block that cell "{cell.title}" no longer opens.',
                expected=f"a block {lost.block}", received="a cell without it",
                hint=f'%fluid drop "{lost.title}" removes it; or run it with another --in.',
            )  # fmt: skip

    def _body_ends(self, block: Block, opener: object, role: str) -> None:
        """The hook: a block is filled, its operator not yet appended."""
        frame = self._frames[-1]
        if block.origin is not frame.made_by:
            return
        earlier = block.program.desc.blocks[1 : block.idx]
        number = 1 + sum(b.view is not None and b.view.origin is frame.made_by for b in earlier)
        names = labels(self._shell.user_ns, block, opener, role)
        frame.names.update(names)
        opened = Opened(frame.group.key, number, {name: frame.names[name] for name in names})
        self._blocks.note(block.desc, opened)
        for part in [p for p in frame.waiting if p.target is not None and opened.is_at(p.target)]:
            frame.waiting.remove(part)
            self._run_part(part)
        if frame.group.state == OPEN and number == 1:
            raise StillOpen(frame, block, opener, build_state.take([block.program]))

    def _run_part(self, part: Group) -> None:
        recorder = origin.recorder
        assert recorder is not None, "a part runs inside a cell"
        ran, recorder.ran = recorder.ran, False
        with origin.part(part.key, part.cell.title):
            self._run(part)
        if recorder.ran:
            self.failed = part
            raise OpValueError(
                f'cell "{part.cell.title}" appends to a block and runs a program that is incomplete.',
                expected="a cell that only builds", received="an Executor in it",
                hint="run it in another cell, or by %fluid run.",
            )  # fmt: skip
        recorder.ran = ran

    @contextmanager
    def _displaying(self, displayed: bool) -> Iterator[None]:
        """Inside, output is displayed or dropped."""
        before = self._silence is None
        self._switch(displayed)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, displayed: bool) -> None:
        if displayed and self._silence is not None:
            self._silence.__exit__(None, None, None)
            self._silence = None
        elif not displayed and self._silence is None:
            self._silence = capture_output()
            self._silence.__enter__()
