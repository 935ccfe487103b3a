"""Uses of variables: by operators of their block, of nested blocks and of gradient blocks."""

from collections import defaultdict
from collections.abc import Iterator

from fluidnb.op import EMPTY
from fluidnb.program.sub_blocks import inner_blocks, own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc


class Uses:
    """The uses of every variable of a program; a block that an operator runs counts as part of the operator.

    Attributes:
        reads: block -> for each operator, the block's own variables that it or a block inside it reads.
        elsewhere: block -> its own variables that blocks use which do not run inside it: its gradient block.
        named: block -> names in the operators that run the block or its gradient block, cut off at the first ``@``:
            they read values of its scopes by name.
    """

    def __init__(self, desc: ProgramDesc) -> None:
        self._desc = desc
        self._owners: dict[tuple[int, str], int] = {}
        self.reads: dict[int, list[set[str]]] = {}
        self.writes: dict[int, list[set[str]]] = {}
        self.inside: dict[int, set[str]] = defaultdict(set)
        self.elsewhere: dict[int, set[str]] = defaultdict(set)
        self.named: dict[int, set[str]] = defaultdict(set)
        for block in desc.blocks:
            self._note(block)

    def _note(self, block: BlockDesc) -> None:
        here, blocks = block.idx, self._desc.blocks
        self.reads[here], self.writes[here] = [], []
        around = {b.idx for b in block.chain()}
        for op in block.ops:
            reads, writes = self._own(op.input_arg_names(), here, here), self._own(op.output_arg_names(), here, here)
            for index in inner_blocks(self._desc, op):
                for inner in blocks[index].ops:
                    read = self._own(inner.input_arg_names(), index, here)
                    written = self._own(inner.output_arg_names(), index, here)
                    self.inside[here] |= read | written
                    reads |= read
                    writes |= written
            self.reads[here].append(reads)
            self.writes[here].append(writes)
            for name in (*op.input_arg_names(), *op.output_arg_names()):
                owner = self._owner(here, name)
                if owner >= 0 and owner not in around:
                    self.elsewhere[owner].add(name)
            for index in own_blocks(op):
                bases = {name.partition("@")[0] for name in mentioned(op)}
                self.named[index] |= bases
                if 0 <= blocks[index].forward_block_idx:
                    self.named[blocks[index].forward_block_idx] |= bases

    def _own(self, names: list[str], block: int, owner: int) -> set[str]:
        return {n for n in names if n != EMPTY and self._owner(block, n) == owner}

    def _owner(self, block: int, name: str) -> int:
        """The block whose variable an operator of ``block`` means by a name; -1 for none."""
        key = (block, name)
        if key not in self._owners:
            var = self._desc.blocks[block].find_var_recursive(name)
            self._owners[key] = -1 if var is None or var.block is None else var.block.idx
        return self._owners[key]


def mentioned(op: OpDesc) -> Iterator[str]:
    """The names of an operator's variables, and the texts among its attributes."""
    yield from op.input_arg_names()
    yield from op.output_arg_names()
    yield from texts(op)


def texts(op: OpDesc) -> Iterator[str]:
    """The texts among an operator's attributes, without those of every operator; some name variables."""
    for name, value in op.attrs.items():
        if not name.startswith("op_"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str):
                    yield each
