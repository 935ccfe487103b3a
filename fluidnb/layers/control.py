"""Loops and branches: operators that run a block of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from fluidnb.errors import OpTypeError
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import EMPTY
from fluidnb.program import Block, BlockGuard, Variable
from fluidnb.values.dtypes import VarType, dtype_name
from fluidnb.where import warn


def reads_and_writes(block: Block, known: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """What a block needs from the blocks around it, and what it changes there.

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
        reads.update((n, None) for n in op.input_arg_names() if n not in writes and n not in known)
        writes.update((n, None) for n in op.output_arg_names())

    def outer(names: dict[str, None]) -> list[str]:
        return [n for n in names if n != EMPTY and not block.has_var(n)]

    return outer(reads), outer(writes)


class While:
    """A loop that runs a block as long as a condition holds.

    Args:
        cond: bool variable of shape [1], computed before the loop and again inside the block.
        is_test: whether the loop is never differentiated, so that it need not keep the values of its iterations.
        name: name of the layer.

    Raises:
        OpTypeError: the condition is not a bool variable of one element.

    Example:
        >>> i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 10)
        >>> cond = fluid.layers.less_than(i, n)
        >>> with fluid.layers.While(cond).block():
        ...     i = fluid.layers.increment(i)
        ...     cond = fluid.layers.less_than(i, n, cond=cond)
        >>> op = fluid.default_main_program().global_block().ops[-1]
        >>> op.type, len(op.input("X")), len(op.output("Out"))
        ('while', 2, 2)

    Source: developer guide, section on control flow.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        if not isinstance(cond, Variable):
            raise OpTypeError(
                "condition should be a variable", expected="bool[1]", received=f"{cond!r} ({type(cond).__name__})"
            )
        operand = ("cond", cond.name, dtype_name(cond.dtype), cond.shape)
        if dtype_name(cond.dtype) != "bool":
            raise OpTypeError(
                "condition should be a bool variable", slots=[operand], expected="bool[1]",
                received=dtype_name(cond.dtype), hint="layers.less_than() and its like make one.",
            )  # fmt: skip
        if any(size != 1 for size in cond.shape):
            raise OpTypeError("condition should be a bool scalar", slots=[operand], expected="bool[1]",
                              received=f"shape {list(cond.shape)}",
                              hint="a loop has one condition; a choice for each row is made by IfElse.")  # fmt: skip
        self.helper = LayerHelper("while", name=name)
        self.cond_var = cond
        self.is_test = is_test

    def block(self) -> AbstractContextManager[Block]:
        """The block to fill: ``with loop.block(): …``; at its end the while operator is appended."""
        return self._block()

    @contextmanager
    def _block(self) -> Iterator[Block]:
        with BlockGuard(self.helper.main_program) as body:
            yield body
            self._complete(body)  # inside the guard, so that nothing stays when the operator is refused

    def _complete(self, body: Block) -> None:
        cond = self.cond_var.name
        reads, writes = reads_and_writes(body, [cond])
        if cond not in writes:
            warn(
                f"Nothing in the block of while writes its condition {cond}: once entered, the loop does not end. "
                "Write it at the end of the block, for example by less_than(i, n, cond=cond)."
            )
        outer = body.program.block(body.parent_idx)
        scopes = outer.create_var(type=VarType.STEP_SCOPES)
        outer.append_op(
            type="while", inputs={"X": reads, "Condition": [self.cond_var]},
            outputs={"Out": writes, "StepScopes": [scopes]}, attrs={"sub_block": body, "is_test": self.is_test},
        )  # fmt: skip


class ConditionalBlock:
    """A block that runs when a condition holds.

    Args:
        inputs: what decides: with ``is_scalar_condition`` one bool of shape [1]; else variables, none of them empty.
        is_scalar_condition: see above.
        name: name of the layer.

    Raises:
        OpTypeError: an input is not a Variable.

    Example:
        >>> out = fluid.layers.zeros([1], "float32")
        >>> yes = fluid.layers.less_than(out, fluid.layers.ones([1], "float32"))
        >>> with fluid.layers.ConditionalBlock([yes], is_scalar_condition=True).block():
        ...     o = fluid.layers.assign(fluid.layers.ones([1], "float32"), out)
        >>> op = fluid.default_main_program().global_block().ops[-1]
        >>> op.type, op.output("Out") == [out.name]
        ('conditional_block', True)
    """

    def __init__(self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None) -> None:
        for each in inputs:
            if not isinstance(each, Variable):
                raise OpTypeError(
                    "Each input should be variable", expected="Variables", received=f"{each!r} ({type(each).__name__})"
                )
        self.helper = LayerHelper("conditional_block", name=name)
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition

    def block(self) -> AbstractContextManager[Block]:
        """The block to fill: ``with branch.block(): …``; at its end the conditional_block operator is appended."""
        return self._block()

    @contextmanager
    def _block(self) -> Iterator[Block]:
        with BlockGuard(self.helper.main_program) as body:
            yield body
            self._complete(body)  # inside the guard, so that nothing stays when the operator is refused

    def _complete(self, body: Block) -> None:
        reads, writes = reads_and_writes(body)
        deciding = {v.name for v in self.inputs}
        outer = body.program.block(body.parent_idx)
        scope = outer.create_var(type=VarType.STEP_SCOPES)
        outer.append_op(
            type="conditional_block", inputs={"Cond": self.inputs, "Input": [n for n in reads if n not in deciding]},
            outputs={"Out": writes, "Scope": [scope]},
            attrs={"sub_block": body, "is_scalar_condition": self.is_scalar_condition},
        )  # fmt: skip
