"""One run of a cell together with the cells that append to its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from IPython.utils.capture import capture_output

from fluidnb.cells import build_state as world
from fluidnb.cells import saved_layer_objects as held
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
    """Leaves the ``with`` of a block that stays open: what it built so far is put back behind it.

    Args:
        frame: the run of the cell that opened it.
        block: the block.
        opener: the object whose block it is.
        world: all as it is at the end of the body.
    """

    def __init__(self, frame: Frame, block: Block, opener: object, world: BuildState) -> None:
        super().__init__()
        self.frame, self.block, self.opener, self.world = frame, block, opener, world

    def put_back(self, before: Iterable[SavedObject]) -> None:
        """Make the program what it was at the end of the body, and the object what it was before.

        Args:
            before: objects of layers as they were before the ``with``.
        """
        world.restore(self.world)
        self.block.program.current_block_idx = self.block.parent_idx
        its = {id(shot.thing) for shot in held.take([self.opener])}
        for shot in before:
            if id(shot.thing) in its:
                shot.put_back()


@dataclass(eq=False)
class Frame:
    """A cell that runs.

    Args:
        group: the cell with its parts.
        made_by: the run, to which its blocks point.

    Attributes:
        waiting: the parts that have not run yet.
        names: how many blocks of each name have ended.
    """

    group: Group
    made_by: Origin | None
    waiting: list[Group] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)


class Building:
    """Runs a cell; at the end of each of its blocks, the cells that append to it.

    Args:
        shell: the IPython shell.
        group: the cell with its parts.
        code: gives the code of a cell.
        blocks: notes which blocks there are.
        heard: key of the cell whose output and values are shown; what the others print is dropped.

    Attributes:
        failed: the cell or part in which an error was raised.
    """

    def __init__(
        self,
        shell: Any,
        group: Group,
        code: Callable[[Cell], Compiled],
        blocks: OpenedBlocks,
        heard: Hashable | None,
    ) -> None:
        self._shell = shell
        self._group = group
        self._code = code
        self._blocks = blocks
        self._heard = heard
        self._frames: list[Frame] = []
        self._silence: capture_output | None = None
        self.failed: Group | None = None

    def run(self) -> None:
        """Run it."""
        before, hooks.body_ends = hooks.body_ends, self._body_ends
        try:
            self._run(self._group)
        finally:
            hooks.body_ends = before

    def _run(self, group: Group) -> None:
        cell = group.cell
        frame = Frame(group, origin.current(), list(group.parts))
        things = held.take(self._shell.user_ns.values()) if group.state == OPEN else []
        hint, hooks.name_hint = hooks.name_hint, NameHints(cell.name)
        self._frames.append(frame)
        heard = self._heard is not None and cell.key == self._heard
        try:
            with self._sound(heard):
                run_cell(self._shell, cell, self._code(cell), display=heard)
        except StillOpen as still:
            if still.frame is not frame:
                raise
            still.put_back(things)
        except BaseException:
            self.failed = self.failed or group
            raise
        else:
            if group.state == OPEN:
                self.failed = group
                raise _opens_nothing(cell)
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
        for part in [p for p in frame.waiting if p.spot is not None and opened.is_at(p.spot)]:
            frame.waiting.remove(part)
            self._run_part(part)
        if frame.group.state == OPEN and number == 1:
            raise StillOpen(frame, block, opener, world.take([block.program]))

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
    def _sound(self, heard: bool) -> Iterator[None]:
        """Let what is shown through, or drop it."""
        before = self._silence is None
        self._switch(heard)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, heard: bool) -> None:
        if heard and self._silence is not None:
            self._silence.__exit__(None, None, None)
            self._silence = None
        elif not heard and self._silence is None:
            self._silence = capture_output()
            self._silence.__enter__()


def _opens_nothing(cell: Cell) -> OpValueError:
    return OpValueError(
        f"{cell.name} opens no block.", expected="what fills a block in a `with`, like loop.block() or rnn.step()",
        received=cell.source.splitlines()[0], hint=f"for example %fluid block open {cell.name}=ie.true_block()",
    )  # fmt: skip
