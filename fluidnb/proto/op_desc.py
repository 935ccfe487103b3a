"""OpDesc: one operation, variables by name in slots and attributes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.errors import NotBuiltYet
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto import hooks
from fluidnb.proto.op_attrs import OpAttrs
from fluidnb.proto.op_slots import add_slots, type_name
from fluidnb.proto.wire import parse, uninitialized

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc


class OpDesc(OpAttrs):
    """The description of one operation.

    Reading is from plain dicts, decoded from the message at the first use; every edit goes to the message and to the
    dicts, and raises the program's version. Slots and attributes are written sorted by name; what was parsed keeps its
    bytes until it is edited.

    Args:
        optype: the operator's type.
        ins: slot -> names of the variables read.
        outs: slot -> names of the variables written.
        attrs: name -> value.
        types: name -> AttrType number, where the type that the value suggests is not the right one.

    Raises:
        OpTypeError: a name or value of a wrong type.
        OpValueError: a value out of range.

    Example:
        >>> op = OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0})
        >>> op.input("X"), op.attr("scale")
        (['x'], 2.0)
        >>> op
        OpDesc(scale: X=[x] -> Out=[y])
    """

    __slots__ = ("__weakref__", "view")

    #: The Operator over it, once somebody asked for one.
    view: Any

    def __init__(
        self,
        optype: str = "",
        ins: Mapping[str, Sequence[str]] | None = None,
        outs: Mapping[str, Sequence[str]] | None = None,
        attrs: Mapping[str, Any] | None = None,
        types: Mapping[str, int] | None = None,
    ) -> None:
        pb = self.pb = pb2.OpDesc()
        self.block = self.view = None
        if optype:
            pb.type = type_name(optype)
        self._ins = add_slots(pb.inputs, ins) if ins else {}
        self._outs = add_slots(pb.outputs, outs) if outs else {}
        self._attrs, self._kinds = {}, {}
        if attrs:
            self._write_attrs(attrs, types or {})

    @classmethod
    def over(cls, pb: pb2.OpDesc, block: BlockDesc | None = None) -> OpDesc:
        """An OpDesc over a message that exists, which becomes its own.

        Example:
            >>> OpDesc.over(pb2.OpDesc(type="relu")).type()
            'relu'
        """
        self = cls.__new__(cls)
        self.pb, self.block, self.view = pb, block, None
        self._ins = self._outs = self._attrs = None
        return self

    def __repr__(self) -> str:
        sides = (", ".join(f"{s}=[{', '.join(n)}]" for s, n in side.items()) for side in (self.ins, self.outs))
        return f"OpDesc({self.pb.type}: {' -> '.join(sides)})"

    def is_target(self) -> bool:
        """Whether pruning has to keep the operation."""
        return self.pb.is_target

    def set_is_target(self, is_target: bool) -> None:
        """Say whether pruning has to keep the operation."""
        self.pb.is_target = is_target
        self._edited()

    def check_attrs(self) -> None:
        """Check the attributes against the operator, and write the defaults of those that were left out.

        Raises:
            FluidError: there is no such operator, or an attribute is unknown, unfit or missing.

        Example:
            >>> op = OpDesc("mul"); op.check_attrs(); op.attr("x_num_col_dims")
            1
        """
        if hooks.check_attrs is None:
            raise _no_operators("attributes are checked")
        hooks.check_attrs(self)

    def infer_shape(self, block: BlockDesc) -> None:
        """Write shapes, dtypes and LoD levels of the variables that the operation writes.

        Args:
            block: the block whose variables it sees.

        Raises:
            FluidError: there is no such operator, or what it reads breaks its rule.

        Example:
            >>> from fluidnb.proto.desc import ProgramDesc
            >>> block = ProgramDesc().block(0); x, y = block.var("x"), block.var("y"); x.set_shape([3, 4])
            >>> op = block.append_op(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]})); op.infer_shape(block); y.shape()
            [3, 4]
        """
        if hooks.infer_shape is None:
            raise _no_operators("shapes are inferred")
        hooks.infer_shape(self, block)

    def infer_var_type(self, block: BlockDesc) -> None:
        """Say of the variables that the operation writes whether they are rows or tensors; as `infer_shape`."""
        if hooks.infer_var_type is None:
            raise _no_operators("types are inferred")
        hooks.infer_var_type(self, block)

    def copy_from(self, other: OpDesc) -> None:
        """Become equal to another operation, in place: type, slots, attributes, all of it."""
        self.pb.CopyFrom(other.pb)
        self._ins = self._outs = self._attrs = None
        self._edited()

    def clone(self) -> OpDesc:
        """An equal operation that is in no block.

        Example:
            >>> a = OpDesc("relu"); b = a.clone(); b.set_type("tanh"); a.type()
            'relu'
        """
        pb = pb2.OpDesc()
        pb.CopyFrom(self.pb)
        return OpDesc.over(pb)

    def serialize_to_string(self) -> bytes:
        """The bytes of the message.

        Raises:
            OpValueError: the operation has no type yet.

        Example:
            >>> OpDesc("relu").serialize_to_string()
            b'\\x1a\\x04relu'
        """
        if not self.pb.IsInitialized():
            raise uninitialized(self.pb, self.label())
        return self.pb.SerializeToString()

    @classmethod
    def parse_from_string(cls, data: bytes) -> OpDesc:
        """An operation from the bytes of its message.

        Raises:
            OpValueError: these are not the bytes of an OpDesc.

        Example:
            >>> OpDesc.parse_from_string(b"\\x1a\\x04relu").type()
            'relu'
        """
        return cls.over(parse(pb2.OpDesc, data, "op_desc"))


def _no_operators(what: str) -> NotBuiltYet:
    return NotBuiltYet(f"{what} once fluidnb.op is imported.", hint="import fluidnb.core imports it.")
