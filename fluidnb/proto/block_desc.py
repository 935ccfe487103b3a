"""BlockDesc: a sequence of operations and the variables that it declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fluidnb.errors import OpTypeError, OpValueError, near, typed
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.op_desc import OpDesc
from fluidnb.proto.var_desc import VarDesc, var_name
from fluidnb.proto.wire import text_of

if TYPE_CHECKING:
    from fluidnb.proto.program_desc import ProgramDesc


class BlockDesc:
    """A sequence of operations and the variables that it declares. `ProgramDesc.append_block` creates them.

    ``ops`` and ``vars`` are plain containers and the truth: whoever edits them by hand calls ``program.touch()``.

    Example:
        >>> from fluidnb.proto.desc import ProgramDesc
        >>> block = ProgramDesc().block(0)
        >>> block.var("x").name(), block.append_op(OpDesc("relu", {"X": ["x"]})).type()
        ('x', 'relu')
        >>> block
        BlockDesc(0: 1 ops, 1 vars)
    """

    __slots__ = ("__weakref__", "ops", "pb", "program", "vars", "view")

    #: The message without its operations and variables: they are added at serialization.
    pb: pb2.BlockDesc
    program: ProgramDesc
    ops: list[OpDesc]
    #: By name, in the order of declaration.
    vars: dict[str, VarDesc]
    #: The Block over it, created on demand.
    view: Any

    def __init__(self, program: ProgramDesc, idx: int, parent_idx: int) -> None:
        self.pb = pb2.BlockDesc(idx=idx, parent_idx=parent_idx)
        self.program = program
        self.ops, self.vars, self.view = [], {}, None

    @classmethod
    def over(cls, pb: pb2.BlockDesc, program: ProgramDesc) -> BlockDesc:
        """A BlockDesc over a message, whose operations and variables are moved into descs."""
        self = cls.__new__(cls)
        self.pb, self.program, self.view = pb, program, None
        self.ops = [OpDesc.over(op, self) for op in pb.ops]
        self.vars = {var.name: VarDesc.over(var, self) for var in pb.vars}
        if len(self.vars) < len(pb.vars):
            names = [var.name for var in pb.vars]
            twice = next(name for name in names if names.count(name) > 1)
            raise OpValueError(f'Block {pb.idx} declares "{twice}" more than once.')
        del pb.ops[:], pb.vars[:]
        return self

    def __repr__(self) -> str:
        return f"BlockDesc({self.idx}: {len(self.ops)} ops, {len(self.vars)} vars)"

    @property
    def idx(self) -> int:
        """Its index in the program."""
        return self.pb.idx

    @idx.setter
    def idx(self, idx: int) -> None:
        self.pb.idx = idx
        self.program.version += 1

    @property
    def id(self) -> int:
        """Its index in the program (Fluid's spelling of `idx`)."""
        return self.pb.idx

    @property
    def parent_idx(self) -> int:
        """The index of the block around it, -1 for the first one."""
        return self.pb.parent_idx

    @parent_idx.setter
    def parent_idx(self, idx: int) -> None:
        self.pb.parent_idx = idx
        self.program.version += 1

    @property
    def parent(self) -> int:
        """The index of the block around it (Fluid's spelling of `parent_idx`)."""
        return self.pb.parent_idx

    @property
    def forward_block_idx(self) -> int:
        """The index of the block whose gradients this one computes, -1 if none."""
        return self.pb.forward_block_idx

    @forward_block_idx.setter
    def forward_block_idx(self, idx: int) -> None:
        self.pb.forward_block_idx = idx
        self.program.version += 1

    def get_forward_block_idx(self) -> int:
        """The forward block of a gradient block (Fluid's spelling of `forward_block_idx`)."""
        return self.pb.forward_block_idx

    def set_forward_block_idx(self, idx: int) -> None:
        """Sets the block whose gradients this one computes."""
        self.forward_block_idx = idx

    _set_forward_block_idx = set_forward_block_idx

    # Operations.

    def append_op(self, op: OpDesc | None = None) -> OpDesc:
        """Appends an operation that is in no block, by default a new one without a type, and returns it."""
        return self.insert_op(len(self.ops), op)

    def prepend_op(self, op: OpDesc | None = None) -> OpDesc:
        """Inserts an operation before all others; as `append_op`."""
        return self.insert_op(0, op)

    def insert_op(self, index: int, op: OpDesc | None = None) -> OpDesc:
        """Inserts an operation before the one at ``index``; as `append_op`."""
        try:
            fits = 0 <= index <= len(self.ops)
        except TypeError:
            fits = False
        if not fits:
            raise OpValueError(f"Block {self.idx} has no place {index!r}.", expected=f"0 to {len(self.ops)}")
        if op is None:
            op = OpDesc()
        elif not isinstance(op, OpDesc):
            raise OpTypeError("A block holds descriptions of operations.", expected="an OpDesc", received=typed(op))
        elif op.block is not None:
            raise OpValueError("An operation is in one block at a time.", op=op.label(), hint="remove it there first.")
        op.block = self
        self.ops.insert(index, op)
        self.program.version += 1
        return op

    _prepend_op, _insert_op = prepend_op, insert_op

    def remove_op(self, start: int, end: int | None = None) -> list[OpDesc]:
        """Removes and returns the operations from ``start`` to ``end`` (not included), by default one."""
        end = start + 1 if end is None else end
        if not 0 <= start <= end <= len(self.ops):
            raise OpValueError(
                f"Block {self.idx} has no operations {start} to {end - 1}.", expected=f"0 to {len(self.ops) - 1}"
            )
        gone = self.ops[start:end]
        del self.ops[start:end]
        for op in gone:
            op.block = None
        self.program.version += 1
        return gone

    _remove_op = remove_op

    def op(self, index: int) -> OpDesc:
        """The operation at an index; negative numbers count from the end."""
        try:
            return self.ops[index]
        except (IndexError, TypeError):
            raise OpValueError(f"Block {self.idx} has no operation {index!r}; it has {len(self.ops)}.") from None

    def op_size(self) -> int:
        """The number of operations."""
        return len(self.ops)

    # Variables.

    def var(self, name: str | bytes) -> VarDesc:
        """The variable of a name, declared now if it is not yet."""
        name = var_name(name)
        var = self.vars.get(name)
        return self.add_var(VarDesc(name)) if var is None else var

    def add_var(self, var: VarDesc) -> VarDesc:
        """Declares a variable by a desc that is in no block, for example a removed one."""
        if not isinstance(var, VarDesc):
            raise OpTypeError("A block declares variables by descriptions.", expected="a VarDesc", received=typed(var))
        if var.name() in self.vars:
            raise OpValueError(f'Block {self.idx} has a variable "{var.name()}" already.')
        if var.block is not None:
            raise OpValueError(f'Variable "{var.name()}" is in block {var.block.idx} already.', hint="clone() it.")
        var.block = self
        self.vars[var.name()] = var
        self.program.version += 1
        return var

    def find_var(self, name: str | bytes) -> VarDesc | None:
        """The variable that this very block declares, or None."""
        return self.vars.get(text_of(name))

    def find_var_recursive(self, name: str | bytes) -> VarDesc | None:
        """The variable as an operation here sees it: declared here, else in the blocks around, or None.

        A gradient block sees the variables of its forward block before those around it: so do the scopes when it runs.
        """
        own = self.vars.get(name)  # type: ignore[arg-type]
        if own is not None:  # nearly every time
            return own
        text: str = text_of(name)
        own = self.vars.get(text)
        if own is not None:
            return own
        for block in self.chain():
            if text in block.vars:
                return block.vars[text]
            forward = block.pb.forward_block_idx
            if 0 <= forward < block.pb.idx and text in self.program.blocks[forward].vars:
                return self.program.blocks[forward].vars[text]
        return None

    def has_var(self, name: str | bytes) -> bool:
        """Whether this very block declares the variable."""
        return self.find_var(name) is not None

    def has_var_recursive(self, name: str | bytes) -> bool:
        """Whether an operation here sees the variable."""
        return self.find_var_recursive(name) is not None

    def all_vars(self) -> list[VarDesc]:
        """The variables that this block declares, in the order of declaration."""
        return list(self.vars.values())

    def remove_var(self, name: str | bytes) -> VarDesc:
        """Removes and returns a declaration."""
        name = self._own(name).name()
        var = self.vars.pop(name)
        var.block = None
        self.program.version += 1
        return var

    _remove_var = remove_var

    def rename_var(self, old: str | bytes, new: str | bytes, since: int = 0) -> VarDesc:
        """Renames a variable, which keeps its position, in all operations that use it, also in inner blocks.

        Args:
            since: the first operation of this block to search, for a caller who knows that earlier ones do not use it.

        Example:
            >>> from fluidnb.proto.desc import ProgramDesc
            >>> block = ProgramDesc().block(0); x = block.var("x"); op = block.append_op(OpDesc("relu", {"X": ["x"]}))
            >>> block.rename_var("x", "image") is x, op.input("X")
            (True, ['image'])
        """
        var = self._own(old)
        old, new = var_name(old), var_name(new)
        if new == old:
            return var
        seeing = self._check_rename(old, new)
        var._rename(new)
        later: list[tuple[str, VarDesc]] = []
        while (last := self.vars.popitem())[0] != old:
            later.append(last)
        self.vars[new] = var
        self.vars.update(reversed(later))
        for op in self.ops[since:]:
            op.rename(old, new)
        for block in seeing:
            for op in block.ops:
                op.rename(old, new)
        self.program.version += 1
        return var

    _rename_var = rename_var

    def chain(self) -> Iterator[BlockDesc]:
        """This block, the one around it, and so on to the first."""
        block: BlockDesc = self
        yield block
        while block.pb.parent_idx >= 0:
            if block.pb.parent_idx >= block.idx:
                raise OpValueError(
                    f"Block {block.pb.parent_idx} cannot be around block {block.idx}.", expected="an earlier block",
                    received=f"block {block.pb.parent_idx}", hint="a block comes after the one around it.",
                )  # fmt: skip
            block = self.program.blocks[block.pb.parent_idx]
            yield block

    def _check_rename(self, old: str, new: str) -> list[BlockDesc]:
        """Refuse a name by which an operation would find another variable; gives the blocks inside that see the old."""
        if new in self.vars:
            raise OpValueError(f'Block {self.idx} has a variable "{new}" already.')
        outer, inside = self.find_var_recursive(new), list(self._blocks_inside())
        seeing = [block for block in inside if block.find_var_recursive(old) is self.vars[old]]
        for block in seeing:
            nearer = block.find_var_recursive(new)
            if nearer is not None and nearer is not outer and block._uses(old):
                raise OpValueError(
                    f'Block {block.idx} uses "{old}" and would find another variable "{new}" instead.',
                    expected="a name that no block inside declares", received=f"{old} renamed to {new}",
                )  # fmt: skip
        for block in () if outer is None else (self, *inside):
            if block.find_var_recursive(new) is outer and block._uses(new):
                raise OpValueError(
                    f'Block {block.idx} uses a variable "{new}" of the blocks around and would find this one instead.',
                    expected="a name that is free in the blocks around", received=f"{old} renamed to {new}",
                )  # fmt: skip
        return seeing

    def _blocks_inside(self) -> Iterator[BlockDesc]:
        """The blocks that see those variables of this one which they do not declare again, each after its parent."""
        inside = {self.idx}
        for block in self.program.blocks:
            if block.parent_idx in inside or block.forward_block_idx in inside:
                inside.add(block.idx)
                yield block

    def _uses(self, name: str) -> bool:
        return any(name in op.input_arg_names() or name in op.output_arg_names() for op in self.ops)

    def _own(self, name: str | bytes) -> VarDesc:
        name = var_name(name)
        if name not in self.vars:
            raise OpValueError(f'Block {self.idx} declares no variable "{name}".', hint=near(name, self.vars))
        return self.vars[name]

    # As a whole.

    def to_pb(self, into: pb2.BlockDesc | None = None) -> pb2.BlockDesc:
        """The whole message: a copy, in ``into`` (empty) if given."""
        message = pb2.BlockDesc() if into is None else into
        message.CopyFrom(self.pb)
        message.vars.extend([var.pb for var in self.vars.values()])
        message.ops.extend([op.pb for op in self.ops])
        return message

    def serialize_to_string(self) -> bytes:
        """The bytes of the whole message."""
        self.check_initialized()
        return self.to_pb().SerializeToString()

    def check_initialized(self) -> None:
        """Raises when an operation has no type, or a variable no dtype."""
        parts: list[VarDesc | OpDesc] = [*self.vars.values(), *self.ops]
        for part in parts:
            if not part.pb.IsInitialized():
                part.serialize_to_string()
