"""The operators of a block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from fluidnb.errors import OpValueError
from fluidnb.program import append, origin
from fluidnb.program.listing import Ops
from fluidnb.program.operator import Operator
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.program import Program


class BlockOps:
    """What a `Block` does with operators: append, insert, remove."""

    __slots__ = ()

    program: Program
    desc: BlockDesc

    @property
    def _block(self) -> Block:
        return cast("Block", self)

    @property
    def ops(self) -> Ops:
        """Its operators in order; a live view."""
        return Ops(self._block)

    def append_op(
        self,
        type: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Operator:
        """Append an operator: check it, infer its outputs, put it at the end. All or nothing.

        Args:
            type: operator type.
            inputs: slot -> variable, name, or a list of these.
            outputs: the same for outputs; names that no block knows are declared in this one.
            attrs: attribute -> value; None is the same as left out.

        Returns:
            The operator.

        Raises:
            FluidError: the operator is not known, lacks a slot, or breaks a rule. Nothing has changed then.

        Example:
            >>> from fluidnb.program import Program
            >>> block = Program().global_block()
            >>> x = block.create_var(name="x", shape=[-1, 13], dtype="float32")
            >>> w = block.create_parameter(name="w", shape=[13, 1], dtype="float32")
            >>> op = block.append_op("mul", {"X": x, "Y": w}, {"Out": "y"})
            >>> block.var("y").shape
            (-1, 1)
        """
        return Operator(self._block, type, inputs, outputs, attrs)

    append_operator = append_op

    def prepend_op(
        self,
        type: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Operator:
        """Put an operator in front of all others; arguments and errors as `append_op`."""
        if origin.recorder is not None:
            origin.recorder.prepended.add(self.desc)
        return self.put_desc(append.describe(self._block, type, inputs, outputs, attrs, 0), 0)

    prepend_operator = prepend_op
    _prepend_op = prepend_op

    def insert_op(
        self,
        index: int,
        type: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Operator:
        """Put an operator at a place; arguments and errors as `append_op`.

        Args:
            index: its place, from 0; negative counts from the end.
            type: operator type.
            inputs: slot -> variable, name, or a list of these.
            outputs: the same for outputs.
            attrs: attribute -> value.

        Returns:
            The operator.
        """
        origin.saw_list(self.program)
        count = len(self.desc.ops)
        if not -count <= index <= count:
            raise OpValueError(
                f"block {self.desc.idx} has no place {index}.", where=capture(), expected=f"{-count} to {count}",
                received=index, hint="append_op puts an operator at the end.",
            )  # fmt: skip
        place = index % count if index < 0 else index
        return self.put_desc(append.describe(self._block, type, inputs, outputs, attrs, place), place)

    _insert_op = insert_op

    def put_desc(self, desc: OpDesc, index: int | None = None, *, strict: bool = True) -> Operator:
        """Put an operator's description into this block; checks and errors as `append_op`.

        Args:
            desc: the description, in no block; the attributes that every operator has are added.
            index: its place; None for the end.
            strict: whether unknown attributes and missing slots are refused. Gradients of loaded programs carry
                attributes that only their writer knew.

        Returns:
            The operator.
        """
        where = capture()
        given: dict[str, Any] = {}
        append.generated(self._block, given)
        for name, value in given.items():
            if not desc.has_attr(name):
                desc.set_attr(name, value)
        append.put(self._block, desc, index, where, strict)
        operator = Operator.over(self._block, desc, where)
        append.written_by(operator)
        return operator

    def remove_op(self, index: int, end: int | None = None) -> None:
        """Take operators out; their variables stay.

        Args:
            index: the first to go, from 0; negative counts from the end.
            end: one past the last; None for one operator.

        Raises:
            OpValueError: no such operator.
        """
        origin.saw_list(self.program)
        count = len(self.desc.ops)
        start = index + count if index < 0 else index
        stop = start + 1 if end is None else end
        if not 0 <= start <= stop <= count or start == count:
            raise OpValueError(
                f"block {self.desc.idx} has no operator {index}.", where=capture(), expected=f"0 to {count - 1}",
                received=index if end is None else f"{index} to {end}",
            )  # fmt: skip
        origin.writing(self.program)
        self.desc.remove_op(start, stop)

    _remove_op = remove_op

    def delete_ops(self, ops: Iterable[Operator]) -> None:
        """Take a run of operators out.

        Args:
            ops: operators of this block that follow each other.
        """
        places = sorted(op.idx for op in ops)
        if places:
            self.remove_op(places[0], places[-1] + 1)

    def slice_ops(self, start: int, end: int) -> list[Operator]:
        """The operators from ``start`` to before ``end``."""
        return self.ops[start:end]

    _slice_ops = slice_ops
