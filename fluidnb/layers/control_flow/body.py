"""The blocks of loops and branches: what they need of the blocks around them, and a ``with`` that fills one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from fluidnb.backward.emit import all_or_nothing
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import EMPTY
from fluidnb.program import Block, BlockGuard, Program, hooks
from fluidnb.proto.desc import OpDesc
from fluidnb.values.dtypes import VarType

#: Operators after which their outputs may still be, wholly or in part, what they were before.
_PARTIAL = ("conditional_block", "while", "write_to_array")


def reads_and_writes(block: Block, known: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The outer variables that a block reads and writes.

    A variable that the block may change only in part, by writing an element of an array or inside a branch, is among
    both: its old value counts.

    Args:
        block: the block.
        known: names that it has from elsewhere, so that they are not among its reads.

    Returns:
        (names of outer variables that it reads before it writes them, names of outer variables that it writes),
        each in the order of first use, so that the same program always gives the same bytes.

    Example:
        >>> x, y = fluid.layers.ones([1], "float32"), fluid.layers.ones([1], "float32")
        >>> with fluid.framework.BlockGuard(fluid.default_main_program()):
        ...     z = fluid.layers.assign(x, output=y)
        ...     names = reads_and_writes(fluid.default_main_program().current_block())
        >>> names == ([x.name], [y.name])
        True
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
    it, nor initialisers in the startup program, nor used-up names.

    Args:
        helper: the layer's helper; says which programs.
        complete: called with the filled block, appends the operator.
        abandon: called when nothing stays.

    Source: BlockGuard and its like in fluid.layers.control_flow.
    """

    def __init__(
        self, helper: LayerHelper, complete: Callable[[Block], object], abandon: Callable[[], object] | None = None
    ) -> None:
        super().__init__(helper.main_program)
        self._finish, self._abandon = complete, abandon
        #: the object whose block it is, and which of its blocks where it has several
        self.opener: object = getattr(complete, "__self__", None)
        self.role = ""
        self._startup = helper.startup_program

    def serve(self, opener: object, work: Callable[[], object]) -> None:
        """Fill the block for another object, which has its own work to do before the operator is appended.

        Args:
            opener: the object, which counts as the one whose block it is.
            work: what it does at the end of the block, inside.
        """
        finish = self._finish

        def both(body: Block) -> None:
            work()
            finish(body)

        self.opener, self._finish = opener, both

    def __enter__(self) -> Block:
        self._clean = all_or_nothing(self._startup)
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
        if kind is not None and self._abandon is not None:
            self._abandon()
        self._clean.__exit__(kind, error, trace)


@contextmanager
def inside(program: Program, block: Block) -> Iterator[Block]:
    """Make another block of a program the current one, so that layers go there.

    Args:
        program: the program.
        block: one of its blocks.

    Yields:
        The block.

    Example:
        >>> program = fluid.default_main_program()
        >>> with fluid.framework.BlockGuard(program) as inner, inside(program, program.global_block()):
        ...     fluid.layers.ones([1], "float32").block.idx
        0
    """
    before = program.current_block_idx
    program.current_block_idx = block.idx
    try:
        yield block
    finally:
        program.current_block_idx = before


def step_scopes(block: Block) -> str:
    """Declare the variable that holds the scopes of the runs of an inner block.

    Args:
        block: the block that gets its operator.

    Returns:
        The variable's name.

    Example:
        >>> step_scopes(fluid.default_main_program().global_block())
        '_generated_var_0'
    """
    return block.create_var(type=VarType.STEP_SCOPES).name
