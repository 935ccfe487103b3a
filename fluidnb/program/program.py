"""Program: a tree of blocks with a description that is Paddle's."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpValueError, typed
from fluidnb.program import layer_calls as naming
from fluidnb.program import origin
from fluidnb.program.block import Block
from fluidnb.program.constants import OpRole
from fluidnb.program.operator import Operator
from fluidnb.program.parameter import Parameter
from fluidnb.program.printing import proto_text
from fluidnb.program.pseudo_code import program_lines
from fluidnb.program.remote_part import RemotePart
from fluidnb.program.sub_blocks import each_op
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import ProgramDesc
from fluidnb.utils.representations import repr_html, save_html
from fluidnb.utils.source_location import capture

if TYPE_CHECKING:
    from fluidnb.program.cost import ProgramCost
    from fluidnb.program.snapshot import Snapshot
    from fluidnb.program.summary import ProgramSummary

#: Every program that is alive.
programs: weakref.WeakSet[Program] = weakref.WeakSet()


@checked
class Program:
    """A model as data: blocks of variables and operators, built by layers and run by an Executor.

    Args:
        desc: the description to wrap; a new one with an empty global block when left out.

    Attributes:
        desc: the description; edits through it are seen here.
        current_block_idx: the index of the block to which layers append.
        op_role: the part of the program to which operators appended now belong.
        op_role_var: the parameter and gradient that they update, or an empty list.
        origin: the run of the cell that made it, or None.

    Example:
        >>> program = Program(); inner = program.create_block()
        >>> inner.parent_idx, program.current_block_idx
        (0, 1)

    Source: fluid.framework.Program; Fluid's Python API design.
    """

    #: What a message says where one is expected.
    argument_hint = "fluid.Program() makes one, fluid.default_main_program() is the one that layers add to."

    #: What only Python knows of a program, and a snapshot keeps.
    FACTS = ("current_block_idx", "op_role", "op_role_var", "_random_seed")

    def __init__(self, desc: ProgramDesc | None = None) -> None:
        self.desc = ProgramDesc() if desc is None else desc
        self.desc.view = self
        self.current_block_idx = 0
        self.op_role: int = OpRole.Forward
        self.op_role_var: list[str] = []
        self._random_seed = 0
        self.origin = origin.current()
        self.last_snapshot: Snapshot | None = None
        #: Of a trainer: gives for each variable that parameter servers keep its parts, in order.
        self.remote: Callable[[], Mapping[str, Sequence[RemotePart]]] | None = None
        programs.add(self)

    @property
    def version(self) -> int:
        """A number that rises with every edit, however it is made."""
        return self.desc.version

    @property
    def random_seed(self) -> int:
        """The seed of the program's random operators; 0 draws one for each run.

        Initializers copy the startup program's when they append their operator, so set it before the layers are built.
        Equal programs with one seed draw equal numbers, whatever their variables are called.
        """
        self._note_seed()
        return self._random_seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise OpValueError(  # as in Fluid
                "Program.random_seed's input seed must be an integer.", where=capture(), expected="int",
                received=typed(seed),
                hint="0 draws a seed for each run, any other int fixes it.",
            )  # fmt: skip
        origin.writing(self)
        self._note_seed()
        self._random_seed = int(seed)
        self.desc.touch()

    def _note_seed(self) -> None:
        if origin.recorder is not None:
            origin.recorder.facts.setdefault((self, "_random_seed"), self._random_seed)

    # Blocks.

    @property
    def blocks(self) -> list[Block]:
        """All blocks by index."""
        origin.saw_list(self)
        return [Block.over(self, desc) for desc in self.desc.blocks]

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        origin.saw_list(self)
        return len(self.desc.blocks)

    def global_block(self) -> Block:
        """Block 0, which holds parameters and is run."""
        desc = self.desc.blocks[0]
        return desc.view or Block.over(self, desc)

    def current_block(self) -> Block:
        """The block to which layers append now."""
        desc = self.desc.blocks[self.current_block_idx]
        return desc.view or Block.over(self, desc)

    def block(self, index: int) -> Block:
        """The block with an index; OpValueError when there is none."""
        if not isinstance(index, SupportsIndex) or not 0 <= index < len(self.desc.blocks):
            raise OpValueError(
                f"the program has no block {index}.", where=capture(), expected=f"0 to {len(self.desc.blocks) - 1}",
                received=index, hint="program.blocks has them all; program.create_block() makes one.",
            )  # fmt: skip
        return Block.over(self, self.desc.blocks[index])

    def create_block(self, parent_idx: int | None = None) -> Block:
        """Create a block inside the current one, or another, and make it the current one."""
        parent = self.current_block() if parent_idx is None else self.block(parent_idx)
        origin.writing(self)
        desc = self.desc.append_block(parent.desc)
        naming.note_made(desc)
        self.current_block_idx = desc.idx
        return Block.over(self, desc)

    _create_block = create_block

    def rollback(self) -> None:
        """Make the block around the current one current again; OpValueError in the global block."""
        parent = self.desc.blocks[self.current_block_idx].parent_idx
        if parent < 0:
            raise OpValueError(
                "cannot roll back the global block.", where=capture(),
                expected="a create_block() before each rollback()", received="a rollback() while block 0 is current",
                hint="with program.block_guard(): makes a block and goes back by itself.",
            )  # fmt: skip
        self.current_block_idx = parent

    _rollback = rollback

    @contextmanager
    def block_guard(self, parent_idx: int | None = None) -> Iterator[Block]:
        """A new block that is current inside a ``with``; when the body raises, it is removed.

        Args:
            parent_idx: the block around it; the current one when left out.

        Example:
            >>> program = Program()
            >>> with program.block_guard() as inner:
            ...     program.current_block() is inner
            True
        """
        from fluidnb.program.block_guard import BlockGuard

        with BlockGuard(self, parent_idx) as block:
            yield block

    # Contents.

    def list_vars(self) -> Iterator[Variable]:
        """The variables of all blocks, one by one."""
        for block in self.blocks:
            yield from list(block.vars.values())

    def each_op(self) -> Iterator[tuple[Block, int, Operator]]:
        """(block, index, operator) of a run's operators, each followed by those of the blocks that it runs.

        Example:
            >>> h = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
            >>> [(block.idx, index, op.type) for block, index, op in fluid.default_main_program().each_op()]
            [(0, 0, 'mul'), (0, 1, 'elementwise_add')]
        """
        origin.saw_list(self)
        for home, index, op in each_op(self.desc):
            block = Block.over(self, home)
            yield block, index, Operator.over(block, op)

    def cost(self, feed_shapes: Mapping[str, Sequence[int]] | None = None) -> ProgramCost:
        """Multiply-adds and bytes of each operator; prints as a table, sums up by operator type, layer and cell.

        Args:
            feed_shapes: name of a data variable -> its sizes, batch included; a batch of one without.

        Example:
            >>> h = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
            >>> fluid.default_main_program().cost({"x": (32, 4)}).multiply_adds
            480
        """
        from fluidnb.program.cost import program_cost

        return program_cost(self, feed_shapes)

    def summary(
        self, by: str = "layer", feed_shapes: Mapping[str, Sequence[int]] | None = None, depth: int | None = None
    ) -> ProgramSummary:
        """Parameters, multiply-adds and activation memory by layer hierarchy, operator type or block.

        Args:
            by: ``layer``, ``op`` or ``block``.
            feed_shapes: name of a data variable -> its sizes, batch included; a batch of one without.
            depth: layers inside deeper ones are part of these; None for all.

        Raises:
            OpValueError: another group.

        Example:
            >>> h = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
            >>> fluid.default_main_program().summary().total.parameters
            15
        """
        from fluidnb.program.summary import summarize

        return summarize(self, by, feed_shapes, depth)

    def all_parameters(self) -> list[Parameter]:
        """The parameters of the program."""
        return self.global_block().all_parameters()

    def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """Declare a parameter; arguments as `Block.create_parameter`.

        Source: Fluid's Python API design, section on Parameter.
        """
        return self.global_block().create_parameter(*args, **kwargs)

    # Roles of operators.

    @contextmanager
    def role_guard(self, role: int, role_var: Iterable[Variable | str] = ()) -> Iterator[None]:
        """Operators appended inside a ``with`` belong to a part of the program.

        Args:
            role: an `OpRole`.
            role_var: the parameter and its gradient, where they update one.

        Example:
            >>> program = Program()
            >>> with program.role_guard(OpRole.Optimize):
            ...     program.op_role.name
            'Optimize'
        """
        before = self.op_role, self.op_role_var
        self.op_role, self.op_role_var = role, [v if isinstance(v, str) else v.name for v in role_var]
        try:
            yield
        finally:
            self.op_role, self.op_role_var = before

    def optimized_guard(self, param_and_grads: Iterable[Variable | str]) -> Any:
        """Operators appended inside a ``with`` optimize a parameter, given with its gradient."""
        return self.role_guard(OpRole.Optimize, param_and_grads)

    _optimized_guard = optimized_guard

    def lr_schedule_guard(self, is_with_opt: bool = False) -> Any:
        """Operators appended inside a ``with`` compute a learning rate.

        Args:
            is_with_opt: whether they belong to the optimizer as well.
        """
        return self.role_guard(OpRole.LRSched | OpRole.Optimize if is_with_opt else OpRole.LRSched)

    _lr_schedule_guard = lr_schedule_guard

    @property
    def _op_role(self) -> int:
        return self.op_role

    @_op_role.setter
    def _op_role(self, role: int) -> None:
        self.op_role = role

    @property
    def _op_role_var(self) -> list[str]:
        return self.op_role_var

    def set_op_role_var(self, role_var: Iterable[Variable | str]) -> None:
        """Set the parameter and gradient that operators appended from now on update."""
        self.op_role_var = [v if isinstance(v, str) else v.name for v in role_var]

    # Other programs from this one.

    def clone(self, for_test: bool = False) -> Program:
        """A program with the same contents, and with the same names, hence parameters.

        Args:
            for_test: whether to put operators like dropout and batch_norm into test mode. Only counters of
                learning-rate schedules are removed, so call it before ``minimize``.

        Source: fluid.Program.clone.
        """
        from fluidnb.program.clone import clone

        return clone(self, for_test)

    def prune(self, targets: Any) -> Program:
        """A program with only the operators that some variables need.

        Args:
            targets: variables, operators or names of block 0; one, or a list.

        Source: fluid.Program._prune; prune in the design of Block.
        """
        from fluidnb.program.prune import prune

        return prune(self, targets)

    _prune = prune

    def inference_optimize(self, prune_read_op: bool = True) -> Program:
        """As ``clone(for_test=True)`` without its warning; ``prune_read_op`` removes the readers."""
        from fluidnb.program.clone import clone, remove_readers

        copy = clone(self, True, warn=False)
        if prune_read_op:
            remove_readers(copy)
        return copy

    _inference_optimize = inference_optimize

    def copy_param_info_from(self, other: Program) -> None:
        """Copy the Python facts of the parameters of another program, of which this one is a clone."""
        from fluidnb.program.clone import copy_facts

        copy_facts(other, self)

    def copy_data_info_from(self, other: Program) -> None:
        """Mark the variables as fed that are in another program, of which this one is a clone."""
        for block, theirs in zip(self.blocks, other.blocks, strict=False):
            for name, variable in theirs.vars.items():
                if variable.is_data and block.has_var(name):
                    block.var(name).is_data = True

    _copy_data_info_from = copy_data_info_from
    _copy_param_info_from = copy_param_info_from

    @classmethod
    def parse_from_string(cls, binary_str: bytes) -> Program:
        """A program from the bytes of its description.

        Args:
            binary_str: from ``desc.serialize_to_string()``, here or in Paddle; other bytes are an OpValueError.

        Example:
            >>> data = Program().desc.serialize_to_string()
            >>> Program.parse_from_string(data).desc.serialize_to_string() == data
            True
        """
        return cls(ProgramDesc.parse_from_string(binary_str))

    def sync_with_cpp(self) -> None:
        """No effect (compatibility): blocks, variables and operators are views over the description."""

    _sync_with_cpp = sync_with_cpp

    def snapshot(self) -> Snapshot:
        """All of the program as it is now, for `restore`."""
        from fluidnb.program.snapshot import take

        return take(self)

    def restore(self, snapshot: Snapshot) -> None:
        """Make the program what it was at a `snapshot` of it: same bytes, same objects.

        Example:
            >>> program = Program(); before = program.snapshot()
            >>> x = program.global_block().create_var(name="x", shape=[1], dtype="float32")
            >>> program.restore(before); program.global_block().has_var("x")
            False
        """
        from fluidnb.program.snapshot import Snapshot, restore

        if not isinstance(snapshot, Snapshot) or snapshot.program is not self:
            raise OpValueError(
                "A program can be restored from its own snapshots only.", expected="what snapshot() of it gave",
                received=shown(snapshot),
            )  # fmt: skip
        restore(snapshot)

    # Text and HTML.

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: the readable form instead, with facts that are not in the description.
        """
        origin.saw_list(self)
        if with_details:
            return "\n".join(program_lines(self.desc, details=True)) + "\n"
        return proto_text(self.desc.to_pb(), throw_on_error)

    def save_html(self, file: str | os.PathLike[str], title: str = "") -> Path:
        """Write the program as one HTML file, which needs no network and no kernel.

        A reader folds and searches it, and follows the writers and readers of variables. The size is printed before
        the file is written.

        Args:
            file: path of the file.
            title: its heading; default ``program``.

        Returns:
            The path of the file.
        """
        origin.saw_list(self)
        return save_html(self, file, title=title)

    def _to_readable_code(self) -> str:
        """The program as readable code: a line for each variable and operator."""
        origin.saw_list(self)
        return "\n".join(program_lines(self.desc)) + "\n"

    def short(self) -> str:
        """The program's name in messages: ``the default main program``, or a summary of its contents."""
        from fluidnb.program.defaults import called

        return called(self) or f"a program of {len(self.desc.blocks[0].ops)} operators"

    def __str__(self) -> str:
        return self.to_string(False)

    def __repr__(self) -> str:
        blocks = self.desc.blocks
        ops, variables = sum(len(b.ops) for b in blocks), sum(len(b.vars) for b in blocks)
        counts = f"{len(blocks)} block(s), {variables} variable(s), {ops} operator(s)"
        return f"Program: {counts}, version {self.desc.version}"

    _repr_html_ = repr_html

    def __reduce__(self) -> Any:
        return _rebuild, (self.desc.serialize_to_string(), {"_random_seed": self._random_seed})


def _rebuild(data: bytes, facts: Mapping[str, Any]) -> Program:
    program = Program.parse_from_string(data)
    program.__dict__.update(facts)
    return program
