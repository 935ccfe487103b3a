"""The symbol table of a block: the definitions of its variables and operators, by name, inside those around it."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.errors import NotFound, OpTypeError, OpValueError, near, typed
from fluidnb.op import EMPTY, check_desc, get_op, infer_compile
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.utils.source_location import capture


class SymbolTable:
    """Definitions of variables and operators by name; it compiles to the description of a block.

    A name is looked up in the table itself, then in those around it; a definition in an inner table hides an outer one.

    Args:
        parent: the table of the block around this one, or None.

    Attributes:
        ops: its operators by name, in the order of definition.

    Example:
        >>> outer = SymbolTable(); x = outer.var("x"); x.set_shape([3]); x.set_dtype(5)
        >>> inner = SymbolTable(outer)
        >>> inner.find_var("x") is x, inner.find_var("x", recursive=False)
        (True, None)
        >>> op = inner.new_op("double"); op.set_type("scale")
        >>> op.set_input("X", ["x"]); op.set_output("Out", [inner.var("y").name()]); op.set_attr("scale", 2.0)
        >>> inner.infer_shape(); inner.find_var("y").shape()
        [3]
        >>> inner.compile()
        BlockDesc(1: 1 ops, 1 vars)

    Source: design document "Block and Scope", section on the compilation of blocks.
    """

    def __init__(self, parent: SymbolTable | None = None) -> None:
        if parent is not None and not isinstance(parent, SymbolTable):
            raise OpTypeError(
                "The parent of a SymbolTable is a SymbolTable.", where=capture(), expected="a SymbolTable or None",
                received=typed(parent),
            )  # fmt: skip
        self.parent = parent
        self.ops: dict[str, OpDesc] = {}
        program = ProgramDesc() if parent is None else parent._block.program
        self._block: BlockDesc = program.block(0) if parent is None else program.append_block(parent._block)

    @property
    def vars(self) -> dict[str, VarDesc]:
        """Its variables by name; a copy of the dict, the definitions themselves."""
        return dict(self._block.vars)

    def new_op(self, name: str = "") -> OpDesc:
        """Define an operator without a type yet; a name in use is an OpValueError.

        Args:
            name: its name in this table; an empty one gets a free name.

        Example:
            >>> table = SymbolTable(); op = table.new_op(); table.find_op("op_0") is op
            True
        """
        name = self._free("op", name, self.ops)
        op = self.ops[name] = self._block.append_op()
        return op

    def var(self, name: str = "") -> VarDesc:
        """Define a variable without shape and dtype yet; a name in use is an OpValueError.

        Args:
            name: its name; an empty one gets a name that no table around this one has.
        """
        around = {n for block in self._block.chain() for n in block.vars} if name == "" else self._block.vars
        return self._block.var(self._free("var", name, around))

    new_var = var

    def find_var(self, name: str, recursive: bool = True) -> VarDesc | None:
        """The definition of a variable in this table (``recursive``: and those around it), or None."""
        return self._block.find_var_recursive(name) if recursive else self._block.find_var(name)

    def find_op(self, name: str) -> OpDesc | None:
        """The definition of an operator of this table, or None when there is none."""
        return self.ops.get(name)

    def infer_shape(self) -> None:
        """Check all operators in order, and set shapes and dtypes of the variables that they write."""
        self._verify()
        for op in self._block.ops:
            definition = get_op(op.optype)
            check_desc(definition, op)
            infer_compile(definition, op, self._block)

    def compile(self) -> BlockDesc:
        """A copy of the block's description, inside a ProgramDesc with the blocks around it.

        Raises:
            OpValueError: an operator has no type, or names a variable that no table declares.
        """
        self._verify()
        return ProgramDesc(self._block.program).block(self._block.idx)

    def _verify(self) -> None:
        for name, op in self.ops.items():
            if not op.optype:
                raise OpValueError(
                    f'Operator "{name}" has no type.', where=capture(2), expected="set_type() before compile()",
                    received="an empty type",
                )  # fmt: skip
            for used in (*op.input_arg_names(), *op.output_arg_names()):
                if used != EMPTY and self.find_var(used) is None:
                    known = [n for block in self._block.chain() for n in block.vars]
                    raise NotFound(
                        f'Operator "{name}" ({op.optype}) names "{used}", which no table declares.', where=capture(2),
                        expected="a variable of this table or of one around it", received=used,
                        hint=near(used, known) or f'table.var("{used}") declares it.',
                    )  # fmt: skip

    @staticmethod
    def _free(kind: str, name: str, taken: Iterable[str]) -> str:
        if not isinstance(name, str):
            raise OpTypeError("A name is a str.", where=capture(2), expected="str", received=repr(name)[:200])
        names = set(taken)
        if name in names:
            what = "a variable" if kind == "var" else "an operator"
            raise OpValueError(
                f'This table has {what} "{name}" already.', where=capture(2), expected="a name that is free",
                received=name, hint=f"find_{kind} gives what is there; an inner table may define the name anew.",
            )  # fmt: skip
        if name:
            return name
        number = 0
        while f"{kind}_{number}" in names:
            number += 1
        return f"{kind}_{number}"

    def __repr__(self) -> str:
        inside = "" if self.parent is None else " inside another"
        return f"<SymbolTable: {len(self._block.vars)} variables, {len(self.ops)} operators{inside}>"

    # The design document's spelling.
    NewOp = new_op
    Var = var
    NewVar = var
    FindVar = find_var
    FindOp = find_op
    Compile = compile
