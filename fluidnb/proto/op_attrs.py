"""The attributes of an operation: its constants, and the blocks that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fluidnb.errors import FluidError, OpValueError, near
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.attr_values import decode, encode, guess_type
from fluidnb.proto.op_slots import OpSlots, drop_entry, entry_place, put_in_dict

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc

#: Attributes that hold names of variables, which a renaming has to follow.
NAMES_IN_ATTRS = ("op_role_var", "states", "ex_states", "skip_eager_deletion_vars")


class OpAttrs(OpSlots):
    """Attributes over slots; the second third of OpDesc."""

    __slots__ = ("_attrs", "_kinds")

    _attrs: dict[str, Any] | None
    _kinds: dict[str, int]

    @property
    def attrs(self) -> dict[str, Any]:
        """Attribute -> value: blocks are their index, floats are rounded to 32 bits. To read only."""
        if self._attrs is None:
            self._kinds = {entry.name: entry.type for entry in self.pb.attrs}
            self._attrs = {entry.name: decode(entry) for entry in self.pb.attrs}
        return self._attrs

    def has_attr(self, name: str) -> bool:
        """Whether the attribute is written down."""
        return name in self.attrs

    def attr_names(self) -> list[str]:
        """The attributes that are written down."""
        return list(self.attrs)

    def attr(self, name: str) -> Any:
        """The value of an attribute.

        Args:
            name: the attribute's name.

        Returns:
            A bool, int, float, str, complex, or a list of these; the index of a block.

        Raises:
            OpValueError: there is no such attribute.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> OpDesc("clip", attrs={"min": -1.0}).attr("min")
            -1.0
        """
        if name not in self.attrs:
            raise self._no_attr(name)
        return self.attrs[name]

    def attr_type(self, name: str) -> int:
        """The AttrType number of an attribute.

        Raises:
            OpValueError: there is no such attribute.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> pb2.AttrType.Name(OpDesc("clip", attrs={"min": -1.0}).attr_type("min"))
            'FLOAT'
        """
        if name not in self.attrs:
            raise self._no_attr(name)
        return self._kinds[name]

    def set_attr(self, name: str, value: Any, type: int | None = None) -> None:
        """Write an attribute.

        Args:
            name: its name.
            value: a bool, int, float, str, block, or a list of these.
            type: its AttrType number; by default the type it has, when the value fits, or the one the value suggests.

        Raises:
            OpTypeError: the value does not fit the type.
            OpValueError: the value is out of range.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("scale", attrs={"scale": 2.0}); op.set_attr("scale", 3); op.attr("scale")
            3.0
        """
        entry = pb2.OpDesc.Attr()
        attrs = self.attrs
        try:
            kind, kept = self._encode(entry, name, value, type)
        except FluidError as error:
            raise error.with_context(op=self.label()) from None
        if name in attrs:
            next(e for e in self.pb.attrs if e.name == name).CopyFrom(entry)
            attrs[name] = kept
        else:
            at = entry_place(self.pb.attrs, "name", name)
            self.pb.attrs.insert(at, entry)
            put_in_dict(attrs, at, name, kept)
        self._kinds[name] = kind
        self._edited()

    _set_attr = set_attr

    def _encode(self, entry: pb2.OpDesc.Attr, name: str, value: Any, kind: int | None) -> tuple[int, Any]:
        if kind is None and name in self._kinds:
            try:
                return self._kinds[name], encode(entry, name, self._kinds[name], value)
            except FluidError:
                entry.Clear()
        if kind is None:
            kind = guess_type(value, name)
        return kind, encode(entry, name, kind, value)

    def remove_attr(self, name: str) -> None:
        """Take an attribute away; nothing happens when there is none.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("scale", attrs={"scale": 2.0}); op.remove_attr("scale"); op.attr_names()
            []
        """
        if name in self.attrs:
            del self.attrs[name], self._kinds[name]
            drop_entry(self.pb.attrs, "name", name)
            self._edited()

    def set_block_attr(self, name: str, block: BlockDesc | int) -> None:
        """Write the index of a block, a loop's body for example.

        Args:
            name: the attribute's name, ``sub_block`` in Fluid's own operators.
            block: the block or its index.
        """
        self.set_attr(name, block, pb2.BLOCK)

    def set_blocks_attr(self, name: str, blocks: Iterable[BlockDesc | int]) -> None:
        """Write the indices of several blocks."""
        self.set_attr(name, list(blocks), pb2.BLOCKS)

    def block_attr(self, name: str) -> int:
        """The index of the block in an attribute.

        Raises:
            OpValueError: there is no such attribute, or it holds no block.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("while"); op.set_block_attr("sub_block", 1); op.block_attr("sub_block")
            1
        """
        index: int = self._blocks(name, pb2.BLOCK)
        return index

    _block_attr_id = block_attr

    def blocks_attr(self, name: str) -> list[int]:
        """The indices of the blocks in an attribute.

        Raises:
            OpValueError: there is no such attribute, or it does not hold blocks.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("listen"); op.set_blocks_attr("optimize_blocks", [1, 2]); op.blocks_attr("optimize_blocks")
            [1, 2]
        """
        return list(self._blocks(name, pb2.BLOCKS))

    _blocks_attr_ids = blocks_attr

    def _blocks(self, name: str, wanted: int) -> Any:
        kind = self.attr_type(name)
        if kind != wanted:
            raise OpValueError(
                f'Attribute "{name}" holds no {"block" if wanted == pb2.BLOCK else "blocks"}.', op=self.label(),
                expected=pb2.AttrType.Name(wanted), received=pb2.AttrType.Name(kind),
            )  # fmt: skip
        return self.attrs[name]

    def rename(self, old: str, new: str) -> None:
        """Follow a variable to its new name: in inputs, outputs and the attributes that hold names of variables.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("sgd", {"Param": ["w"]}, {"ParamOut": ["w"]}, {"op_role_var": ["w", "w@GRAD"]})
            >>> op.rename("w", "v"); op.ins, op.outs, op.attr("op_role_var")
            ({'Param': ['v']}, {'ParamOut': ['v']}, ['v', 'w@GRAD'])
        """
        self.rename_input(old, new)
        self.rename_output(old, new)
        for name in NAMES_IN_ATTRS:
            names = self.attrs.get(name)
            if isinstance(names, list) and old in names:
                self.set_attr(name, [new if n == old else n for n in names])

    def _no_attr(self, name: str) -> OpValueError:
        return OpValueError(f'There is no attribute "{name}".', op=self.label(), hint=near(name, self.attrs))

    def _write_attrs(self, attrs: Mapping[str, Any], types: Mapping[str, int]) -> None:
        """Write the attributes of a new operation, sorted by name."""
        values, kinds, add = {}, {}, self.pb.attrs.add
        try:
            for name in sorted(attrs):
                value = attrs[name]
                kind = types.get(name)
                if kind is None:
                    kind = guess_type(value, name)
                values[name] = encode(add(), name, kind, value)
                kinds[name] = kind
        except FluidError as error:
            raise error.with_context(op=self.label()) from None
        self._attrs, self._kinds = values, kinds
