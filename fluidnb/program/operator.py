"""Operator: a view over an OpDesc that also knows the user's line and cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError
from fluidnb.op import has_op, kernels_of
from fluidnb.program import append_op as append
from fluidnb.program import origin
from fluidnb.program.stale_handles import gone, op_lives
from fluidnb.program.sub_blocks import forward_op
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.utils.representations import repr_html
from fluidnb.utils.source_location import SourceLocation, capture

if TYPE_CHECKING:
    from fluidnb.program.block import Block


@checked
class Operator:
    """An operation of a block. Constructing one with a type appends it to the block, as `Block.append_op`.

    Args:
        inputs: slot -> variable, name, or a list of these.
        outputs: slot -> variable, name, or a list of these; names that no block knows are declared.
        attrs: attribute -> value; None is the same as left out.
        desc: an existing description, for a view over it.

    Attributes:
        where: the user's line, or None; it never enters the bytes.
        origin: the run of the cell that made it, or None.

    Source: fluid.framework.Operator.
    """

    __slots__ = ("__weakref__", "block", "desc", "origin", "where")

    block: Block
    desc: OpDesc
    where: SourceLocation | None
    origin: origin.Origin | None

    def __init__(
        self,
        block: Block,
        type: str | None = None,
        inputs: Any = None,  # append.describe checks these three: its message names the operator
        outputs: Any = None,
        attrs: Any = None,
        *,
        desc: OpDesc | None = None,
    ) -> None:
        self.block, self.origin, self.where = block, origin.current(), capture()
        if desc is None:
            self._append(type, inputs, outputs, attrs)
        else:
            self.desc = desc
            self.desc.view = self
            found = [block.desc.find_var_recursive(name) for name in desc.output_arg_names()]
            append.note_writer(self, [var for var in found if var is not None])

    def _append(self, type: str | None, inputs: Any, outputs: Any, attrs: Any) -> None:
        """Make the description, and put it at the end of the block."""
        self.desc = append.describe(self.block, type, inputs, outputs, attrs)
        written = append.put(self.block, self.desc, None, self.where)
        self.desc.view = self
        append.note_writer(self, written)

    @classmethod
    def _appended(cls, block: Block, type: str | None, inputs: Any, outputs: Any, attrs: Any) -> Operator:
        """As the class itself, for a block and a type that are checked already."""
        self = cls.__new__(cls)
        self.block, self.origin, self.where = block, origin.current(), capture(3)  # the method of Block is between
        self._append(type, inputs, outputs, attrs)
        return self

    @classmethod
    def over(cls, block: Block, desc: OpDesc, where: SourceLocation | None = None) -> Operator:
        """The view over an existing description, created at the first call."""
        view: Operator | None = desc.view
        if view is None:
            view = desc.view = cls.__new__(cls)
            view.block, view.desc, view.where, view.origin = block, desc, where, origin.current()
        return view

    def _seen(self) -> OpDesc:
        """The description, noted as read by the cell that runs; refuses a handle that was replaced."""
        if not op_lives(self.desc):
            gone(f"operator {self.desc.optype}", self, "read")
        if origin.recorder is not None:
            origin.recorder.ops.add(self.desc)
        return self.desc

    def _written(self) -> OpDesc:
        """The description, about to be edited."""
        desc = self._seen()
        origin.writing(self.block.program)
        return desc

    # What the description says.

    @property
    def type(self) -> str:
        """The operator type."""
        return self.desc.optype

    @property
    def idx(self) -> int:
        """Its place in the block, from 0."""
        self._seen()
        origin.saw_list(self.block.program)
        ops = self.block.desc.ops
        return next(i for i in range(len(ops) - 1, -1, -1) if ops[i] is self.desc)

    @property
    def cell_key(self) -> Any:
        """The key of the cell that created it, or None."""
        return origin.cell_key(self.origin)

    fragment = cell_key

    def forward_op(self) -> Operator | None:
        """The operator whose gradient this one computes; None where there is none in the program.

        Example:
            >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [4]), 3))
            >>> added = fluid.backward.append_backward(loss)
            >>> [op.forward_op().type for op in loss.block.ops if op.type.endswith("_grad")]
            ['mean', 'elementwise_add', 'mul']
        """
        desc = forward_op(self._seen())
        if desc is None or desc.block is None:
            return None
        return Operator.over(self.block.program.block(desc.block.idx), desc)

    def input(self, name: str) -> list[str]:
        """The names of the variables in an input slot."""
        return self._seen().input(name)

    def output(self, name: str) -> list[str]:
        """The names of the variables in an output slot."""
        return self._seen().output(name)

    @property
    def input_names(self) -> list[str]:
        """The input slots."""
        return self._seen().input_names()

    @property
    def output_names(self) -> list[str]:
        """The output slots."""
        return self._seen().output_names()

    @property
    def input_arg_names(self) -> list[str]:
        """The names of all variables it reads."""
        return self._seen().input_arg_names()

    @property
    def output_arg_names(self) -> list[str]:
        """The names of all variables it writes."""
        return self._seen().output_arg_names()

    @property
    def attr_names(self) -> list[str]:
        """The names of its attributes."""
        return self._seen().attr_names()

    def has_attr(self, name: str) -> bool:
        """Whether it has an attribute."""
        return self._seen().has_attr(name)

    def attr(self, name: str) -> Any:
        """The value of an attribute; of a block attribute, the block's index."""
        return self._seen().attr(name)

    def attr_type(self, name: str) -> int:
        """The AttrType number of an attribute."""
        return self._seen().attr_type(name)

    def all_attrs(self) -> dict[str, Any]:
        """All attributes by name; blocks as `Block`."""
        desc = self._seen()
        return {n: self.block_attr(n) if desc.attr_type(n) == AttrType.BLOCK else v for n, v in desc.attrs.items()}

    def block_attr_id(self, name: str) -> int:
        """The index of the block that an attribute names."""
        return self._seen().block_attr(name)

    _block_attr_id = block_attr_id

    def block_attr(self, name: str) -> Block:
        """The block that an attribute names."""
        return self.block.program.block(self.block_attr_id(name))

    _block_attr = block_attr

    def blocks_attr(self, name: str) -> list[Block]:
        """The blocks that an attribute names."""
        return [self.block.program.block(i) for i in self._seen().blocks_attr(name)]

    _blocks_attr = blocks_attr

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return self._seen().blocks_attr(name)

    def has_kernel(self, op_type: str) -> bool:
        """Whether an operator type is known and has a kernel."""
        return has_op(op_type) and bool(kernels_of(op_type))

    # Edits.

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute; its type stays: 3 becomes 3.0 in a float attribute."""
        desc = self._written()
        if isinstance(getattr(value, "desc", None), BlockDesc):
            desc.set_block_attr(name, value.desc)
        elif isinstance(value, Mapping):
            raise OpTypeError(f"attribute {name} cannot hold a dict.", where=capture(), received=repr(value))
        else:
            desc.set_attr(name, value, desc.attr_type(name) if desc.has_attr(name) else None)

    _set_attr = set_attr

    def rename_input(self, old_name: str, new_name: str) -> None:
        """Replace the name of an input."""
        self._written().rename_input(old_name, new_name)

    _rename_input = rename_input

    def rename_output(self, old_name: str, new_name: str) -> None:
        """Replace the name of an output."""
        self._written().rename_output(old_name, new_name)

    _rename_output = rename_output

    # How it shows itself.

    def to_string(self, throw_on_error: bool = True) -> str:
        """The description as protobuf text; ``throw_on_error`` refuses required fields that are not set."""
        from fluidnb.program.printing import proto_text

        return proto_text(self.desc.pb, throw_on_error)

    def __str__(self) -> str:
        from fluidnb.program.pseudo_code import op_code

        return op_code(self.desc)

    def __repr__(self) -> str:
        text = f"Operator {self}"
        if self.where is not None:
            text += f"  # {self.where.short()}"
        if self.origin is not None and self.origin.fate:
            text += f" {self.origin.fate}"
        return text

    _repr_html_ = repr_html
