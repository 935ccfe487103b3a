"""ProgramDesc: a whole program, blocks of operations and variables, as bytes and back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MethodType
from typing import Any

from fluidnb.arguments import shown
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.block_desc import BlockDesc
from fluidnb.proto.wire import parse


class _OnClassOrDesc:
    """A method that creates a desc when called on the class, and fills the desc when called on one."""

    def __init__(self, function: Callable[[Any, bytes], ProgramDesc]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __get__(self, desc: ProgramDesc | None, owner: type[ProgramDesc]) -> Callable[[bytes], ProgramDesc]:
        return MethodType(self._function, owner if desc is None else desc)


class ProgramDesc:
    """A whole program. A new one has one empty block.

    Args:
        other: a program to copy, or the bytes of one.

    Example:
        >>> program = ProgramDesc()
        >>> before = program.version
        >>> _ = program.block(0).append_op()
        >>> program.version > before, program
        (True, ProgramDesc(1 blocks, 1 ops))
    """

    __slots__ = ("__weakref__", "blocks", "pb", "state", "version", "view")

    #: The message without its blocks.
    pb: pb2.ProgramDesc
    blocks: list[BlockDesc]
    #: Rises with every edit, so that caches are invalidated. Not in the bytes.
    version: int
    #: The Program over it.
    view: object
    #: The runtime's own data of the program (`fluidnb.runtime.program_state`), or None. Not in the bytes.
    state: object

    def __init__(self, other: ProgramDesc | bytes | None = None) -> None:
        self.version = 0
        self.view = self.state = None
        if other is not None:
            if isinstance(other, ProgramDesc):
                self._take(other.to_pb())
                for ours, theirs in zip(self.blocks, other.blocks, strict=True):
                    for name, var in theirs.vars.items():
                        ours.vars[name]._data = var._data
            else:
                self._take(_read(other))
                self._find_data()
            return
        self.pb = pb2.ProgramDesc(version=pb2.Version(version=0))
        self.blocks = [BlockDesc(self, 0, -1)]

    def _take(self, message: pb2.ProgramDesc) -> None:
        self.pb = message
        self.blocks = [BlockDesc.over(block, self) for block in message.blocks]
        del message.blocks[:]

    def _find_data(self) -> None:
        """Marks the data of a parsed program: the tensors of block 0 that no operation writes."""
        written = {name for block in self.blocks for op in block.ops for name in op.output_arg_names()}
        for name, var in self.blocks[0].vars.items():
            if var.type() == pb2.VarType.LOD_TENSOR and not var.persistable() and name not in written:
                var._data = "inferred"  # no edit: it is not in the bytes

    def __repr__(self) -> str:
        return f"ProgramDesc({len(self.blocks)} blocks, {sum(len(b.ops) for b in self.blocks)} ops)"

    def touch(self) -> None:
        """Records that blocks or operations were edited directly."""
        self.version += 1

    # Blocks.

    def append_block(self, parent: BlockDesc) -> BlockDesc:
        """Adds an empty block inside another one."""
        if not isinstance(parent, BlockDesc):
            raise OpTypeError("A block is inside another one.", expected="a BlockDesc", received=shown(parent))
        block = BlockDesc(self, len(self.blocks), parent.idx)
        self.blocks.append(block)
        self.version += 1
        return block

    def remove_blocks(self, start: int) -> list[BlockDesc]:
        """Removes and returns the block at ``start`` and all after it."""
        if not 0 < start <= len(self.blocks):
            raise OpValueError(f"Blocks from {start} on cannot go.", expected=f"1 to {len(self.blocks)}")
        gone = self.blocks[start:]
        del self.blocks[start:]
        self.version += 1
        return gone

    def block(self, index: int) -> BlockDesc:
        """The block at an index."""
        try:
            index = operator.index(index)
        except TypeError:
            raise OpTypeError("A block is named by its index.", expected="an int", received=shown(index)) from None
        if not 0 <= index < len(self.blocks):
            raise OpValueError(f"The program has no block {index}; it has {len(self.blocks)}.")
        return self.blocks[index]

    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    # Feeds and fetches.

    def get_feed_target_names(self) -> list[str]:
        """The variables that feed operations of the first block write, by column."""
        return self._by_column("feed", "Out")

    def get_fetch_target_names(self) -> list[str]:
        """The variables that fetch operations of the first block read, by column."""
        return self._by_column("fetch", "X")

    def _by_column(self, optype: str, slot: str) -> list[str]:
        ops = [op for op in self.blocks[0].ops if op.optype == optype]
        ops.sort(key=lambda op: op.attrs.get("col", 0))
        return [name for op in ops for name in {**op.ins, **op.outs}.get(slot, ())]

    # As a whole.

    def to_pb(self) -> pb2.ProgramDesc:
        """The whole message, a copy."""
        message = pb2.ProgramDesc()
        for block in self.blocks:
            block.to_pb(message.blocks.add())
        message.MergeFrom(self.pb)
        return message

    def flush(self) -> None:
        """A no-op (compatibility): edits are in the messages at once."""

    def serialize_to_string(self) -> bytes:
        """The program as bytes, in Paddle's format.

        Example:
            >>> data = ProgramDesc().serialize_to_string(); data
            b'\\n\\r\\x08\\x00\\x10\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01"\\x02\\x08\\x00'
            >>> ProgramDesc.parse_from_string(data)
            ProgramDesc(1 blocks, 0 ops)
        """
        message = self.to_pb()
        if not message.IsInitialized():
            for block in self.blocks:
                block.check_initialized()
        return message.SerializeToString()

    @_OnClassOrDesc
    def parse_from_string(self: Any, data: bytes) -> ProgramDesc:
        """A program from its bytes, or from a ``__model__`` file of Paddle; unknown fields are kept.

        Called on an existing program, it replaces that program's content and returns it.

        Example:
            >>> data = ProgramDesc().serialize_to_string()
            >>> program = ProgramDesc(); _ = program.append_block(program.block(0))
            >>> program.parse_from_string(data) is program, program.num_blocks()
            (True, 1)
        """
        if not isinstance(self, ProgramDesc):
            return ProgramDesc(data)
        self._take(_read(data))
        self._find_data()
        self.state = None
        self.version += 1
        return self


def _read(data: Any) -> pb2.ProgramDesc:
    message: pb2.ProgramDesc = parse(pb2.ProgramDesc, data, "program_desc")
    why = _misfit(message)
    if why:
        raise OpValueError(f"Fail to parse program_desc from binary string. {why}")
    return message


def _misfit(message: pb2.ProgramDesc) -> str:
    """The first error in the tree of blocks, or nothing."""
    if not message.blocks:
        return "It has no blocks."
    for place, block in enumerate(message.blocks):
        if block.idx != place:
            return f"Block {place} says that it is block {block.idx}."
        if place == 0 and block.parent_idx >= 0 or place > 0 and not 0 <= block.parent_idx < place:
            return f"Block {place} says that block {block.parent_idx} is around it."
        for at, op in enumerate(block.ops):
            if not _are_texts(op):
                return f"A name in op {at} of block {place} is no text."
        if any(type(var.name) is not str for var in block.vars):
            return f"The name of a variable of block {place} is no text."
    return ""


def _are_texts(op: pb2.OpDesc) -> bool:
    """Whether its names are texts; the C runtime of protobuf gives bytes for what is not UTF-8."""
    if type(op.type) is not str:
        return False
    for var in (*op.inputs, *op.outputs):
        if type(var.parameter) is not str or any(type(name) is not str for name in var.arguments):
            return False
    return all(type(attr.name) is str for attr in op.attrs)
