"""Block: variables by name and a list of operators, inside a program's tree of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluidnb.errors import NotBuiltYet
from fluidnb.program import hooks, origin
from fluidnb.program.block_ops import BlockOps
from fluidnb.program.block_vars import BlockVars
from fluidnb.proto.desc import BlockDesc
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.program import Program


class Block(BlockVars, BlockOps):
    """A view over a BlockDesc: it declares variables and holds operators.

    Args:
        program: the program; or a BlockDesc, over which it is the view then.
        idx: its index there.

    Attributes:
        program: the program.
        desc: the description.
        origin: the run of the cell that made it, or None.

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> x = block.create_var(name="x", shape=[-1, 16, 16], dtype="float32")
        >>> op = block.append_op("scale", {"X": x}, {"Out": "y"}, {"scale": 2.0})
        >>> block
        Block 0: 2 variables, 1 operator

    Source: fluid.framework.Block; Fluid's Python API design.
    """

    __slots__ = ("__weakref__", "desc", "origin", "program")

    program: Program
    desc: BlockDesc
    origin: origin.Origin | None

    def __init__(self, program: Program | BlockDesc, idx: int = 0) -> None:
        if isinstance(program, BlockDesc):
            self.program, self.desc = _program_over(program), program
        else:
            self.program, self.desc = program, program.desc.block(idx)
        self.origin = origin.current()
        self.desc.view = self

    @classmethod
    def over(cls, program: Program, desc: BlockDesc) -> Block:
        """The view over a description that exists, made at the first call."""
        return cls(program, desc.idx) if desc.view is None else desc.view

    @property
    def idx(self) -> int:
        """Its index in the program."""
        return self.desc.idx

    @property
    def parent_idx(self) -> int:
        """The index of the block around it, -1 for the global block."""
        return self.desc.parent_idx

    @property
    def forward_block_idx(self) -> int:
        """The index of the block whose gradient it computes, or -1."""
        return self.desc.forward_block_idx

    def set_forward_block_idx(self, idx: int) -> None:
        """Say whose gradient the block computes."""
        origin.writing(self.program)
        self.desc.forward_block_idx = idx

    _set_forward_block_idx = set_forward_block_idx

    def sync_with_cpp(self) -> None:
        """Nothing to do: variables and operators are views over the description. Old scripts call it."""

    _sync_with_cpp = sync_with_cpp

    @property
    def fragment(self) -> Any:
        """The key of the cell that made it, or None."""
        return origin.fragment_key(self.origin)

    # Running; the runtime does it.

    def infer_shape(self, scope: Any) -> Any:
        """Make ready to run in a scope: create variables and operators there, and infer shapes from what it holds.

        Args:
            scope: a Scope with the values that the block reads.

        Returns:
            The shape of each tensor that the operators write, by name; -1 where only values tell.

        Raises:
            FluidError: an operator is not known, or breaks its rule.
        """
        if hooks.infer_block is None:
            raise NotBuiltYet("a block runs once fluidnb.runtime is imported.", where=capture())
        return hooks.infer_block(self, scope)

    def run(self, scope: Any, place: Any) -> Any:
        """Run the block's operators in order, on the variables of a scope; `infer_shape` comes first.

        Args:
            scope: a Scope; afterwards it holds what the operators wrote.
            place: a Place or a DeviceContext.

        Raises:
            EnforceNotMet: `infer_shape` has not been called with this scope since the program changed, or an operator
                failed.
        """
        if hooks.run_block is None:
            raise NotBuiltYet("a block runs once fluidnb.runtime is imported.", where=capture())
        return hooks.run_block(self, scope, place)

    def eval(self, targets: Any, scope: Any, place: Any) -> Any:
        """Run what some variables need, and give their values: prune, infer shapes, run.

        Args:
            targets: variables or names; one, or a list.
            scope: a Scope.
            place: a Place or a DeviceContext.

        Returns:
            The values in the order of the targets: ndarrays, LoDTensors for what has LoD.

        Raises:
            NotFound: a target that the block does not see.
            EnforceNotMet: an operator failed, or nothing gave a target a value.
        """
        if hooks.eval_block is None:
            raise NotBuiltYet("a block runs once fluidnb.runtime is imported.", where=capture())
        return hooks.eval_block(self, targets, scope, place)

    # The design document's spelling.
    InferShape = infer_shape
    Run = run
    Eval = eval

    # How it shows itself.

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: whether to write the readable form instead, with what only Python knows.

        Returns:
            Several lines.
        """
        from fluidnb.program.codes import block_lines
        from fluidnb.program.printing import proto_text

        origin.saw_list(self.program)
        if with_details:
            return "\n".join(block_lines(self.desc, details=True)) + "\n"
        return proto_text(self.desc.to_pb(), throw_on_error)

    def __str__(self) -> str:
        from fluidnb.program.codes import block_lines

        origin.saw_list(self.program)
        return "\n".join(block_lines(self.desc))

    def __repr__(self) -> str:
        def count(n: int, what: str) -> str:
            return f"{n} {what}" if n == 1 else f"{n} {what}s"

        return f"Block {self.idx}: {count(len(self.desc.vars), 'variable')}, {count(len(self.desc.ops), 'operator')}"

    def _repr_html_(self) -> str | None:
        return None if hooks.repr_html is None else hooks.repr_html(self)


def _program_over(desc: BlockDesc) -> Program:
    """The program over a block's description, made at the first call."""
    from fluidnb.program.program import Program

    view = desc.program.view
    return view if isinstance(view, Program) else Program(desc.program)
