"""The variables of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.program import naming, origin
from fluidnb.program.constants import grad_var_name
from fluidnb.program.listing import Vars
from fluidnb.program.parameter import Parameter
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.program import Program


class BlockVars:
    """What a `Block` does with variables: declare, find, rename, remove."""

    __slots__ = ()

    program: Program
    desc: BlockDesc

    @property
    def _block(self) -> Block:
        return cast("Block", self)

    @property
    def vars(self) -> Vars:
        """Its variables by name; a live view."""
        return Vars(self._block)

    def var(self, name: str) -> Variable:
        """The variable of this block with a name.

        Args:
            name: its name.

        Returns:
            The variable.

        Raises:
            OpTypeError: the name is not a text.
            OpValueError: the block has no such variable.

        Example:
            >>> from fluidnb.program import Program
            >>> Program().global_block().var("x")
            Traceback (most recent call last):
            fluidnb.errors.NotFound: var x not in this block.
              ...
        """
        found = self.find_var(name)
        if found is None:
            raise self._missing(f"var {name} not in this block.", name, list(self.desc.vars), f"block {self.desc.idx}")
        return found

    def var_recursive(self, name: str) -> Variable:
        """The variable that this block sees under a name: its own, or the innermost around it.

        Args:
            name: its name.

        Returns:
            The variable.

        Raises:
            OpTypeError: the name is not a text.
            OpValueError: no such variable.
        """
        found = self.find_var_recursive(name)
        if found is None:
            chain = list(self.desc.chain())
            known = [n for b in chain for n in b.vars]
            searched = "blocks " + ", ".join(str(b.idx) for b in chain)
            raise self._missing(f"Var {name} is not found recursively.", name, known, searched)
        return found

    _var_recursive = var_recursive

    def _missing(self, summary: str, name: str, known: list[str], searched: str) -> NotFound:
        # A name that another block has is as likely as a mistyped one.
        elsewhere = [str(b.idx) for b in self.program.desc.blocks if name in b.vars]
        hint = f"block {', '.join(elsewhere)} has it." if elsewhere else near(name, known)
        return NotFound(
            summary, where=capture(2), expected=f"a variable of {searched} in {self.program.short()}", received=name,
            hint=hint or None,
        )  # fmt: skip

    def find_var(self, name: str) -> Variable | None:
        """The variable of this block with a name, or None."""
        _check_name(name)
        return self._found(name, self.desc.vars.get(name))

    def find_var_recursive(self, name: str) -> Variable | None:
        """The variable that this block sees under a name, or None."""
        _check_name(name)
        return self._found(name, self.desc.find_var_recursive(name), True)

    _find_var_recursive = find_var_recursive

    def _found(self, name: str, desc: VarDesc | None, around: bool = False) -> Variable | None:
        if origin.recorder is not None:
            origin.recorder.looked_up(self.desc, name, desc, around)
        if desc is None or desc.block is None:
            return None
        home = self._block if desc.block is self.desc else self.program.block(desc.block.idx)
        return Variable.over(home, desc)

    def has_var(self, name: str) -> bool:
        """Whether this block declares a name."""
        return self.find_var(name) is not None

    def has_var_recursive(self, name: str) -> bool:
        """Whether this block sees a name."""
        return self.find_var_recursive(name) is not None

    def create_var(self, *args: Any, **kwargs: Any) -> Variable:
        """Declare a variable; a second declaration that agrees gives the same one.

        Args:
            args: as `Variable` after the block.
            kwargs: as `Variable`; ``initializer`` appends its operator to this block.

        Returns:
            The variable.

        Raises:
            OpValueError: the block has a variable of this name that differs.

        Example:
            >>> from fluidnb.program import Program
            >>> x = Program().current_block().create_var(name="X", shape=[-1, 16, 16], dtype="float32")
            >>> x.shape
            (-1, 16, 16)
        """
        initializer: Callable[[Variable, Block], object] | None = kwargs.pop("initializer", None)
        known = self.desc.vars.get(kwargs["name"]) if isinstance(kwargs.get("name"), str) else None
        view = None if known is None else Variable.over(self._block, known)
        with naming.all_or_nothing():
            made = Variable(self._block, *args, **kwargs)
            if view is not None:
                made.desc.view = made = view
            else:
                naming.note_made(made.desc)
            if initializer is not None:
                initializer(made, self._block)
        return made

    def create_global_var(self, *args: Any, **kwargs: Any) -> Variable:
        """Declare a variable in the global block; arguments as `create_var`."""
        return self.program.global_block().create_var(*args, **kwargs)

    _create_global_var = create_global_var

    def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """Declare a parameter in the global block, whichever block this is.

        Args:
            args: as `Parameter` after the block.
            kwargs: as `Parameter`. ``initializer(parameter, block)`` appends its operator to this block, unless an
                operator there gives the parameter its value already;
                ``init_attr={"type": "uniform_random", "min": -1.0, "max": 1.0}`` puts the operator into the startup
                program when this program has one, else in front of the global block.

        Returns:
            The parameter.

        Raises:
            OpValueError: shape or dtype are missing or unfit, or a variable of this name differs.

        Example:
            >>> from fluidnb.program import Program
            >>> w = Program().global_block().create_parameter(name="w", shape=[13, 1], dtype="float32")
            >>> w.block.idx
            0

        Source: Fluid's Python API design, section on Parameter.
        """
        from fluidnb.program.init_attr import initialize

        initializer: Callable[[Variable, Block], object] | None = kwargs.pop("initializer", None)
        init_attr: Mapping[str, Any] | None = kwargs.pop("init_attr", None)
        top = self.program.global_block()
        name = kwargs.get("name", args[2] if len(args) > 2 else None)
        known = top.desc.vars.get(name) if isinstance(name, str) else None
        old = None if known is None else Variable.over(top, known)
        with naming.all_or_nothing():
            parameter = Parameter(top, *args, **kwargs)
            if isinstance(old, Parameter):
                parameter.desc.view = parameter = old
            elif old is None:
                naming.note_made(parameter.desc)
            naming.note_parameter(parameter)
            if initializer is not None and not any(
                parameter.name in op.output_arg_names() for op in (self.desc.ops if old is not None else ())
            ):
                initializer(parameter, self._block)
            if init_attr is not None:
                initialize(parameter, init_attr)
        return parameter

    def all_parameters(self) -> list[Parameter]:
        """The parameters that this block declares."""
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def iter_parameters(self) -> Iterable[Parameter]:
        """The parameters that this block declares, one by one."""
        return iter(self.all_parameters())

    def rename_var(self, name: str, new_name: str) -> Variable:
        """Rename a variable of this block, and all that names it.

        Args:
            name: the old name.
            new_name: the new one.

        Returns:
            The variable.

        Raises:
            OpValueError: there is no such variable, or the new name is taken.
        """
        variable = self.var(name)
        if self.has_var(new_name):
            raise OpValueError(
                f"var {new_name} is in this block already.", where=capture(), expected="a name that is free",
                received=f"rename_var({name!r}, {new_name!r})",
            )  # fmt: skip
        origin.writing(self.program)
        self.desc.rename_var(name, new_name)
        if grad_var_name(name) in self.desc.vars:
            self.desc.rename_var(grad_var_name(name), grad_var_name(new_name))
        return variable

    _rename_var = rename_var

    def remove_var(self, name: str) -> None:
        """Take a variable out of this block.

        Args:
            name: its name.

        Raises:
            OpValueError: there is no such variable.
        """
        self.var(name)
        origin.writing(self.program)
        self.desc.remove_var(name)

    _remove_var = remove_var


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise OpTypeError(
            f"var require string as parameter, but get {type(name).__name__} instead.", where=capture(3),
            expected="str", received=repr(name)[:200], hint="a variable says its own name: variable.name.",
        )  # fmt: skip
