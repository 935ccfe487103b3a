"""The interpreter: runs a lowered program operator by operator, forwards and backwards.

It calls the kernels of the compiled run, but with fresh memory, immutable frames on an explicit stack, and a journal:
references to values that an operator replaces, copies of those that it overwrites. Random numbers depend on the run and
the iteration alone, so stepping back needs no generator state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from fluidnb import memory
from fluidnb.errors import FluidError
from fluidnb.memory.arena import ALIGN
from fluidnb.op import Binder, Clock, Control
from fluidnb.op.memory_policy import UnsharedMemory
from fluidnb.runtime.compile.layout import order_of
from fluidnb.runtime.compile.lowering import LoweredBlock, LoweredOp, LoweredProgram
from fluidnb.runtime.compile.saved_iterations import keep
from fluidnb.runtime.errstate import mute, unmute
from fluidnb.runtime.interrupt import Run
from fluidnb.runtime.kernel_errors import cause, failed, interrupted, within
from fluidnb.runtime.nan_check import checks
from fluidnb.runtime.native.segment_code import with_products
from fluidnb.runtime.results import fetched
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import put
from fluidnb.values.device_context import DeviceContext, copy_of, place_of
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable

Array = Any
#: Bytes of a block for small arrays, and of the largest one that goes there.
_SLAB, _SMALL = 1 << 14, 1 << 10


class Frame(NamedTuple):
    """The position in one block."""

    block: LoweredBlock
    pc: int  # index of the next operator
    scope: Scope  # of its variables
    control: Control | None = None  # the control operator that entered the block
    k: int = 0  # the iteration
    path: int = 0  # distinguishes the random numbers of nested iterations

    def after(self) -> Frame:
        """The frame at the operator that follows."""
        return Frame(self.block, self.pc + 1, self.scope, self.control, self.k, self.path)


@dataclass(slots=True)
class Undo:
    """The state before one step, of what the step changes."""

    stack: tuple[Frame, ...]  # the frames before
    cells: list[tuple[Variable, Any, Array, Any]]  # (variable, value, array, LoD) before
    arrays: list[tuple[Array, Array]]  # (buffer, copy)
    lists: list[tuple[list[Any], list[Any]]]  # (list, its items)

    def restore(self) -> None:
        """Restore everything."""
        for buffer, old in reversed(self.arrays):
            put(buffer, old)
        for variable, value, array, lod in reversed(self.cells):
            variable.value = value
            if type(value) is LoDTensor:
                value.array, value.lod_ = array, lod
        for items, old_items in reversed(self.lists):
            items[:] = old_items


#: The changes of an interpreter that is not in a step: none, and none are added.
_NO_STEP = Undo((), [], [], [])


class Journal(Protocol):
    """The storage of an interpreter's steps; a list is one."""

    def append(self, undo: Undo, /) -> None:
        """Add the step that was just taken."""

    def pop(self) -> Undo:
        """Take the newest step out."""
        raise NotImplementedError

    def clear(self) -> None:
        """Drop everything."""


class Interpreter(UnsharedMemory):
    """Runs a lowered program step by step; subclasses override the steps.

    The calls of a run, of which the last four may be overridden::

        run                 steps to the end
        └── step            one operator, or the end of a block
            ├── run_op      binds an operator to its operands and calls its kernel
            ├── enter_block begins an iteration of a loop, a branch or a recurrent network
            └── leave_block ends it
        back                undoes the last step, whatever was overridden

    Args:
        lowered: the lowered program.
        local: the scope of block 0, inside the user's scope, with the fed values in it.
        run: the number of this run of the program; random numbers depend on it.

    Attributes:
        stack: the frames, innermost last; a value that never changes in place.
        journal: one `Undo` for each step taken.
        check: raises if the step under way is to stop; see `fluidnb.op.memory_policy.Memory`.

    Example:
        >>> class Counter(Interpreter):
        ...     seen = 0
        ...     def run_op(self, op, scope):
        ...         self.seen += 1
        ...         return super().run_op(op, scope)
        >>> x = fluid.layers.fill_constant([2], "float32", 3.0)
        >>> y = fluid.layers.scale(x, 2.0)
        >>> run = fluid.Executor().interpret(fetch_list=[y], interpreter=Counter).run()
        >>> run.seen, run.fetch()
        (2, [array([6., 6.], dtype=float32)])
    """

    def __init__(self, lowered: LoweredProgram, local: Scope, run: int = 0) -> None:
        self.lowered, self.place = lowered, lowered.place
        self.place_kind: str = lowered.place.kind
        self.clock = Clock(lowered.seed)
        self.clock.run = run
        self.journal: Journal = []
        self.check: Callable[[], None] = _never
        self.stack: tuple[Frame, ...] = (Frame(lowered.blocks[0], 0, local),)
        self._empty = DeviceContext.get(lowered.place).empty
        self._undo = _NO_STEP
        self._slab: Array = None
        self._taken = _SLAB

    # ---- the memory policy of its binders

    def fixed(self, name: str, outer: bool) -> bool:
        """Whether a variable keeps its memory: it is persistable, or several blocks see it."""
        return outer or name in self.lowered.captured or name in self.lowered.persistable

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """New memory always, so that former values need not be copied.

        Small arrays share a block, which goes when the last of them does: a block each would cost more than the step.
        """
        if name is not None and not outer and self.lowered.layout:
            order = order_of(self.lowered.layout, name, shape)
        size = math.prod(shape) * dtype.itemsize
        if size > _SMALL or order is not None or self.place_kind != "cpu":
            return self._empty(shape, dtype, order)
        if self._slab is None or self._taken + size > _SLAB:
            self._slab, self._taken = memory.raw(self.place, _SLAB), 0
        at = self._taken
        self._taken += -(-size // ALIGN) * ALIGN
        return memory.view_of(self._slab, shape, dtype, at)

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """New memory on a kind of place."""
        place = self.place if kind == self.place_kind else place_of(kind)
        return DeviceContext.get(place).empty(shape, dtype)

    # ---- called by control operators

    def real(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """New memory."""
        return DeviceContext.get(self.place).empty(shape, dtype)

    def reopen(self, around: Scope, step: Scope) -> Scope:
        """A finished iteration as its gradient operator sees it: a scope between those of the two."""
        return around.showing(step)

    # ---- position and values

    @property
    def done(self) -> bool:
        """Whether the end of block 0 is reached."""
        frame = self.stack[-1]
        return frame.control is None and frame.pc == len(frame.block.ops)

    @property
    def here(self) -> LoweredOp | None:
        """The operator that the next step runs; None at the end of a block."""
        frame = self.stack[-1]
        return frame.block.ops[frame.pc] if frame.pc < len(frame.block.ops) else None

    def value(self, name: str) -> Any:
        """The value of a variable, as the next operator sees it; None without one."""
        variable = self.stack[-1].scope.find_var(name)
        return None if variable is None else variable.value

    def fetch(self, return_numpy: bool = True) -> list[Any]:
        """Copies of the fetched values after `run`, as arrays or LoDTensors, in the order of ``fetch_list``."""
        return fetched(self.lowered, self.stack[0].scope, return_numpy)

    # ---- stepping

    def step(self) -> None:
        """Run one operator, or end an iteration of a block; an error leaves everything as it was."""
        frame = self.stack[-1]
        undo = self._undo = Undo(self.stack, [], [], [])
        self.clock.path = frame.path
        if self.place_kind != "cpu":
            DeviceContext.get(self.place).use()
        try:
            if frame.pc == len(frame.block.ops):
                self.leave_block(frame)
            else:
                self._operate(frame)
        except BaseException as e:
            undo.restore()
            self.stack = undo.stack
            if isinstance(e, FluidError):
                for op, iteration in self._around():
                    within(e, op, iteration)
            raise
        finally:
            self._undo = _NO_STEP  # the journal alone keeps what operators drop
        self.journal.append(undo)

    def _around(self) -> Iterator[tuple[LoweredOp, int]]:
        """The operators whose blocks are running, innermost first, and the iteration of each."""
        for frame, around in zip(self.stack[:0:-1], self.stack[-2::-1], strict=True):
            if frame.control is not None:
                yield around.block.ops[around.pc], frame.control.iteration(frame.k)

    def leave_block(self, frame: Frame) -> None:
        """End an iteration of a block, and begin the next one if there is one; may be overridden."""
        control, undo = frame.control, self._undo
        assert control is not None, "stepped past the end"
        undo.lists.append((control.steps, list(control.steps)))
        undo.arrays += [(a, copy_of(a)) for a in control.changes()]
        for variable in control.sets():
            self._note(variable)
        control.leave(frame.k, frame.scope)
        if control.records:
            keep(frame.scope, self.lowered.kept.get(frame.block.index, ()))
            control.steps.append(frame.scope)
        self.stack = self.stack[:-1]
        self.enter_block(control, frame.k + 1)

    def _operate(self, frame: Frame) -> None:
        """Run the operator of a frame, with its writes in the journal."""
        op = frame.block.ops[frame.pc]
        # what has a side effect may also change what it reads: delete_var
        for name in (*op.writes(), *op.reads()) if op.definition.side_effect else op.writes():
            self._note(frame.scope.cell(name)[0])
        control = self.run_op(op, frame.scope)
        if control is None:
            self.stack = (*self.stack[:-1], frame.after())
        else:
            control.executor = self
            self._undo.lists.append((control.steps, list(control.steps)))
            control.begin()
            self.enter_block(control, 0)

    def run_op(self, op: LoweredOp, scope: Scope) -> Control | None:
        """Bind an operator to its operands and call its kernel; may be overridden.

        Before it, the variables that the operator writes are in the journal. An override may leave out the call of
        ``super().run_op`` and write them itself; other variables that it changes are not restored by `back`.

        Returns:
            None, or the `Control` of a loop, a branch or a recurrent network, which runs its block.
        """
        binder, undo = Binder(op, self, scope), self._undo
        token = mute()
        try:
            binder.bind()
            if binder.overwrites:
                undo.arrays += [(a, copy_of(a)) for a in binder.overwrites if hasattr(a, "nbytes")]
                undo.lists += [(a, list(a)) for a in binder.overwrites if isinstance(a, list)]
            calls = binder.calls + checks(binder) if self.lowered.check_nan else binder.calls
            for function, args in with_products([(partial(f, **kw) if kw else f, args) for f, args, kw in calls], op):
                function(*args)
        except Exception as e:
            raise failed(e, op, scope) from cause(e)
        finally:
            unmute(token)
        control: Control | None = binder.control
        return control

    def _note(self, variable: Variable) -> None:
        """Write the value of a variable into the journal, before it changes."""
        value, undo = variable.value, self._undo
        if type(value) is LoDTensor:
            undo.cells.append((variable, value, value.array, value.lod_))
            return
        undo.cells.append((variable, value, None, ()))
        if isinstance(value, list):
            undo.lists.append((value, list(value)))

    def enter_block(self, control: Control, k: int) -> None:
        """Begins iteration ``k`` of a block, or leaves the block after the last; may be overridden."""
        frame = self.stack[-1]
        parent = control.enter(k)
        if parent is None:
            self.stack = (*self.stack[:-1], frame.after())
        else:
            block = self.lowered.blocks[control.block_index]
            scope = parent.new_scope()
            scope.block = block
            control.prepare(k, scope)
            self.stack = (*self.stack, Frame(block, 0, scope, control, k, frame.path * 1000003 + k + 1))

    def back(self) -> None:
        """Undo the last step; an IndexError without one."""
        undo = self.journal.pop()
        entered = len(self.stack) > len(undo.stack)
        if entered or self.stack[-1].scope is not undo.stack[-1].scope:
            left = self.stack[-1].scope
            if left.parent is not None and left in left.parent.kids:
                left.parent.kids.remove(left)
        undo.restore()
        self.stack = undo.stack

    def run(self, journal: bool = True) -> Interpreter:
        """Step to the end, and return the interpreter; Ctrl-C takes effect between steps.

        Args:
            journal: whether to record what `back` needs; without it, dropped values are free at once.
        """
        run = Run()
        run.begin()
        self.check = run.check
        try:
            while not self.done:
                run.check()
                self.step()
                if not journal:
                    self.journal.clear()
        except KeyboardInterrupt as e:
            if self.here is not None:
                interrupted(e, self.here, None)
            for op, iteration in self._around():
                interrupted(e, op, iteration)
            raise
        finally:
            self.check = _never
            run.end()
        return self


def _never() -> None:
    """No request to stop in the middle of a step."""
