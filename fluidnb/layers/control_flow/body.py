"""The blocks of loops and branches: what they need of the blocks around them, checks, and a with that fills one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Annotated

from fluidnb.arguments import Rule
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import Operand, OpTypeError, OpValueError, typed
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import EMPTY
from fluidnb.program import Block, BlockGuard, Program, Variable, hooks
from fluidnb.proto.desc import OpDesc
from fluidnb.values.dtypes import VarType, dtype_name

#: What decides a loop or a branch.
Condition = Annotated[Variable, Rule("a Variable of bool", hint="layers.less_than() and its like make one.")]


def operand(slot: str, x: Variable) -> Operand:
    """A variable as an operand of a message."""
    return slot, x.name, dtype_name(x.dtype), x.shape


def check_is_variable(value: object, summary: str) -> None:
    """Raise unless a value is a Variable."""
    if not isinstance(value, Variable):
        raise OpTypeError(
            summary, expected="a Variable", received=typed(value),
            hint="layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.",
        )  # fmt: skip


def check_made_outside(home: Block, x: Variable, slot: str, layer: str) -> None:
    """Raise unless a variable is seen by the block around a layer's block."""
    if home.find_var_recursive(x.name) is not x:
        raise OpValueError(
            f"{layer} takes what is made outside of the block.", slots=[operand(slot, x)],
            expected=f"a variable that block {home.idx} sees", received=f"a variable of block {x.block.idx}",
            hint=f"make it before the block, or use {x.name} as it is.",
        )  # fmt: skip


def check_keeps_shape(memory: Variable, new: Variable, slots: tuple[str, str]) -> None:
    """Raise unless the new value of a memory looks like the old one."""
    fits = memory.dtype == new.dtype and len(memory.shape) == len(new.shape)
    if not fits or any(-1 not in ab and ab[0] != ab[1] for ab in zip(memory.shape, new.shape, strict=True)):
        raise OpValueError(
            "A memory keeps its shape and dtype from step to step.",
            slots=[operand(slots[0], memory), operand(slots[1], new)],
            expected=f"{dtype_name(memory.dtype)}{list(memory.shape)}, as it starts with",
            received=f"{dtype_name(new.dtype)}{list(new.shape)}",
            hint="give memory() the shape of the new value, or the new value that of the memory.",
        )  # fmt: skip


#: Operators after which their outputs may still be, wholly or in part, what they were before.
_PARTIAL = ("conditional_block", "while", "write_to_array")


def reads_and_writes(block: Block, known: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The outer variables that a block reads and writes.

    A variable that the block may change only in part, by writing an element of an array or inside a branch, is among
    both: its old value counts. Names are in the order of first use, so that the same program always gives the same
    bytes.

    Args:
        known: names that it has from elsewhere, so that they are not among its reads.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in block.desc.ops:
        reads.update((n, None) for n in _needs(op) if n not in writes and n not in known)
        writes.update((n, None) for n in op.output_arg_names())

    def outer(names: dict[str, None]) -> list[str]:
        return [n for n in names if n != EMPTY and not block.has_var(n)]

    return outer(reads), outer(writes)


def _needs(op: OpDesc) -> list[str]:
    """The variables whose values from before an operator count for what holds after it."""
    return op.input_arg_names() + (op.output_arg_names() if op.optype in _PARTIAL else [])


class BodyGuard(BlockGuard):
    """A block to fill inside a ``with``; at its end the operator that runs it is appended to the block around it.

    When the body raises, or the operator is refused, nothing of it stays: neither the block and what was made around
    it, nor what its operators inferred for outer variables, nor initialisers in the startup program, nor used-up names.
    """

    def __init__(
        self, helper: LayerHelper, complete: Callable[[Block], object], abandon: Callable[[], object] | None = None
    ) -> None:
        super().__init__(helper.main_program)
        self._finish, self._abandon = complete, abandon
        #: the object whose block it is, and which of its blocks where it has several
        self.opener: object = getattr(complete, "__self__", None)
        self.role = ""
        self._programs = (helper.main_program, helper.startup_program)
        self._entered = False

    def serve(self, opener: object, work: Callable[[], object]) -> None:
        """Fill the block for another object, which has its own work to do before the operator is appended."""
        finish = self._finish

        def both(body: Block) -> None:
            work()
            finish(body)

        self.opener, self._finish = opener, both

    def _check_start(self) -> None:
        """Raise where the block is open or filled already."""
        if self._entered:
            raise OpValueError(
                "A block is filled once.", expected="a new call of block() for each with",
                received="one that was entered before", hint="write with loop.block(): … for each block.",
            )  # fmt: skip

    def __enter__(self) -> Block:
        self._check_start()
        self._entered = True
        self._clean = all_or_nothing(*self._programs)
        self._clean.__enter__()
        self._body = super().__enter__()
        return self._body

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                if hooks.body_ends is not None:
                    hooks.body_ends(self._body, self.opener, self.role)
                self._finish(self._body)
            except BaseException:
                self._leave(*sys.exc_info())
                raise
        self._leave(kind, error, trace)

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._entered = kind is None  # after an error nothing of it stays, and it may be entered again
        if kind is not None and self._abandon is not None:
            self._abandon()
        self._clean.__exit__(kind, error, trace)


@contextmanager
def inside(program: Program, block: Block) -> Iterator[Block]:
    """Make another block of a program the current one, so that layers go there."""
    before = program.current_block_idx
    program.current_block_idx = block.idx
    try:
        yield block
    finally:
        program.current_block_idx = before


def step_scopes(block: Block) -> str:
    """Declare the variable that holds the scopes of the runs of an inner block."""
    return block.create_var(type=VarType.STEP_SCOPES).name
