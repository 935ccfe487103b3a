"""Block: variables by name and a list of operators, inside a program's tree of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fluidnb.arguments import Rule, checked
from fluidnb.errors import NotBuiltYet, NotFound, OpValueError, near
from fluidnb.program import append_op as append
from fluidnb.program import declare_var as declare
from fluidnb.program import hooks, origin
from fluidnb.program import layer_calls as naming
from fluidnb.program import unique_name as names
from fluidnb.program.constants import grad_var_name
from fluidnb.program.desc_views import Ops, Vars
from fluidnb.program.operator import Operator
from fluidnb.program.parameter import Parameter
from fluidnb.program.sub_blocks import found_by_name
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.utils.representations import repr_html
from fluidnb.utils.source_location import capture

if TYPE_CHECKING:
    from fluidnb.program.program import Program

#: The name of a variable.
VarName = Annotated[str, Rule("the name of a variable", many="names", hint="a variable's own is variable.name.")]

#: The index of a block, -1 for none.
BlockIndex = Annotated[
    int, Rule("the index of a block", lambda n: type(n) is int and -1 <= n < 2**31, hint="block.idx has a block's own.")
]


@checked
class Block:
    """A view over a BlockDesc: it declares variables and holds operators.

    Args:
        program: the program; or a BlockDesc, over which it is the view then.
        idx: its index there.

    Example:
        >>> block = fluid.Program().global_block()
        >>> x = block.create_var(name="x", shape=[-1, 16, 16], dtype="float32")
        >>> op = block.append_op("scale", {"X": x}, {"Out": "y"}, {"scale": 2.0}); block
        Block 0: 2 variables, 1 operator

    Source: fluid.framework.Block; Fluid's Python API design.
    """

    #: What a message says where one is expected.
    argument_hint = "fluid.default_main_program().global_block() is one."

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

    def set_forward_block_idx(self, idx: BlockIndex) -> None:
        """Set the block whose gradient it computes."""
        origin.writing(self.program)
        self.desc.forward_block_idx = idx

    _set_forward_block_idx = set_forward_block_idx

    def sync_with_cpp(self) -> None:
        """No effect (compatibility): variables and operators are views over the description."""

    _sync_with_cpp = sync_with_cpp

    @property
    def cell_key(self) -> Any:
        """The key of the cell that created it, or None."""
        return origin.cell_key(self.origin)

    fragment = cell_key

    # Variables.

    @property
    def vars(self) -> Vars:
        """Its variables by name; a live view."""
        return Vars(self)

    def var(self, name: VarName) -> Variable:
        """The variable of this block with a name; OpValueError when there is none."""
        variable = self.find_var(name)
        if variable is None:
            raise self._missing(f"var {name} not in this block.", name, list(self.desc.vars), f"block {self.desc.idx}")
        return variable

    def var_recursive(self, name: VarName) -> Variable:
        """The variable of a name in this block or in those around it; OpValueError when there is none."""
        variable = self.find_var_recursive(name)
        if variable is None:
            chain = list(self.desc.chain())
            known = [n for b in chain for n in b.vars]
            searched = "blocks " + ", ".join(str(b.idx) for b in chain)
            raise self._missing(f"Var {name} is not found recursively.", name, known, searched)
        return variable

    _var_recursive = var_recursive

    def _missing(self, summary: str, name: str, known: list[str], searched: str) -> NotFound:
        # A name that another block has is as likely as a mistyped one.
        elsewhere = [str(b.idx) for b in self.program.desc.blocks if name in b.vars]
        hint = f"block {', '.join(elsewhere)} has it." if elsewhere else near(name, known)
        return NotFound(
            summary, where=capture(2), expected=f"a variable of {searched} in {self.program.short()}", received=name,
            hint=hint or None,
        )  # fmt: skip

    def find_var(self, name: VarName) -> Variable | None:
        """The variable of this block with a name, or None."""
        return self._declared_var(name)

    def _declared_var(self, name: str) -> Variable | None:
        """As `find_var`, for a name that is checked."""
        return self._found(name, self.desc.vars.get(name))

    def find_var_recursive(self, name: VarName) -> Variable | None:
        """The variable of a name in this block or in those around it, or None."""
        return self._found(name, self.desc.find_var_recursive(name), True)

    _find_var_recursive = find_var_recursive

    def _found(self, name: str, desc: VarDesc | None, around: bool = False) -> Variable | None:
        if origin.recorder is not None:
            origin.recorder.looked_up(self.desc, name, desc, around)
        if desc is None or desc.block is None:
            return None
        home = self if desc.block is self.desc else self.program.block(desc.block.idx)
        return Variable.over(home, desc)

    def has_var(self, name: str) -> bool:
        """Whether this block declares a name."""
        return self.find_var(name) is not None

    def has_var_recursive(self, name: str) -> bool:
        """Whether this block sees a name."""
        return self.find_var_recursive(name) is not None

    def create_var(self, *args: Any, **kwargs: Any) -> Variable:
        """Declare a variable; a second declaration that agrees gives the same one, another raises.

        Args:
            args: as `Variable` after the block.
            kwargs: as `Variable`; ``initializer`` appends its operator to this block.

        Example:
            >>> block = fluid.Program().current_block()
            >>> block.create_var(name="X", shape=[-1, 16, 16], dtype="float32").shape
            (-1, 16, 16)
        """
        initializer: Callable[[Variable, Block], object] | None = kwargs.pop("initializer", None)
        known = self.desc.vars.get(kwargs["name"]) if isinstance(kwargs.get("name"), str) else None
        view = None if known is None else Variable.over(self, known)
        with naming.all_or_nothing():
            variable = Variable(self, *args, **kwargs)
            if view is not None:
                variable.desc.view = variable = view
            else:
                naming.note_made(variable.desc)
            if initializer is not None:
                initializer(variable, self)
        return variable

    def _temporary(self, prefix: str, dtype: Any, stop_gradient: bool) -> Variable:
        """A variable for an operator's output, under the next free name."""
        name = self._free_name(f"{prefix}.tmp")
        return Variable.over(self, declare.temporary(self.desc, name, dtype, stop_gradient))

    def _free_name(self, key: str) -> str:
        """The next generated name that this block does not see yet: users may have given one to a variable."""
        name = names.fresh(key)
        while name in self.desc.vars or self.desc.idx and self.desc.find_var_recursive(name) is not None:
            name = names.fresh(key)
        return name

    def _declared(
        self, name: str, type: int, shape: Sequence[int] | None, dtype: Any, lod_level: int | None,
        persistable: bool | None, stop_gradient: bool = False,
    ) -> Variable:  # fmt: skip
        """As `create_var`, with arguments that come from the project itself."""
        known = name in self.desc.vars
        desc = declare.variable(self.desc, type, name, shape, dtype, lod_level, persistable, stop_gradient, False)
        if not known:
            naming.note_made(desc)
        return Variable.over(self, desc)

    def _like(self, name: str, like: VarDesc) -> Variable:
        """Declare a variable of the type, dtype, sizes and LoD level of another one, under a name that is free."""
        if name in self.desc.vars:
            return self._declared(name, like.type(), like.shape(), like.dtype(), like.lod_level(), False)
        return Variable.over(self, declare.like(self.desc, name, like, False))

    def create_global_var(self, *args: Any, **kwargs: Any) -> Variable:
        """Declare a variable in the global block; arguments as `create_var`."""
        return self.program.global_block().create_var(*args, **kwargs)

    _create_global_var = create_global_var

    def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """Declare a parameter in the global block; a second declaration must agree.

        Args:
            args: as `Parameter` after the block.
            kwargs: as `Parameter`. ``initializer(parameter, block)`` appends its operator to this block, unless an
                operator there gives the parameter its value already;
                ``init_attr={"type": "uniform_random", "min": -1.0, "max": 1.0}`` puts the operator into the startup
                program when this program has one, else in front of the global block.

        Example:
            >>> w = fluid.Program().global_block().create_parameter(name="w", shape=[13, 1], dtype="float32")
            >>> w.block.idx
            0

        Source: Fluid's Python API design, section on Parameter.
        """
        from fluidnb.program.parameter import initialize

        initializer: Callable[[Variable, Block], object] | None = kwargs.pop("initializer", None)
        init_attr: Mapping[str, Any] | None = kwargs.pop("init_attr", None)
        top = self.program.global_block()
        name = kwargs.get("name", args[2] if len(args) > 2 else None)
        known = top.desc.vars.get(name) if isinstance(name, str) else None
        old = None if known is None else Variable.over(top, known)
        with naming.all_or_nothing():
            parameter = _noted(Parameter(top, *args, **kwargs), old)
            if initializer is not None and not any(
                parameter.name in op.output_arg_names() for op in (self.desc.ops if old is not None else ())
            ):
                initializer(parameter, self)
            if init_attr is not None:
                initialize(parameter, init_attr)
        return parameter

    def _parameter_of_layer(
        self, name: str, shape: Sequence[int], dtype: Any, described: Mapping[str, Any]
    ) -> Parameter:
        """As `create_parameter`, for a layer, which has checked the arguments; this is the global block."""
        known = self.desc.vars.get(name)
        old = None if known is None else Variable.over(self, known)
        return _noted(Parameter._of_layer(self, name, shape, dtype, described), old)

    def all_parameters(self) -> list[Parameter]:
        """The parameters that this block declares."""
        origin.saw_list(self.program)
        views = [Variable.over(self, desc) for desc in self.desc.vars.values() if desc.is_parameter()]
        return [view for view in views if isinstance(view, Parameter)]

    def iter_parameters(self) -> Iterable[Parameter]:
        """The parameters that this block declares, one by one."""
        return iter(self.all_parameters())

    def rename_var(self, name: str, new_name: str) -> Variable:
        """Rename a variable of this block, and all references to it.

        Raises:
            OpValueError: the new name is taken, or an operator would find another variable by it, or an operator that
                runs a block finds variables inside by this name. Nothing has changed then.
        """
        variable = self.var(name)
        if self.has_var(new_name):
            raise OpValueError(
                f"var {new_name} is in this block already.", where=capture(), expected="a name that is free",
                received=f"rename_var({name!r}, {new_name!r})",
            )  # fmt: skip
        op = found_by_name(self.desc, name)
        if op is not None:
            raise OpValueError(
                f"var {name} cannot be renamed: {op.optype} finds a variable of its block by this name.",
                op=op.label(), expected="a variable that has no partner in a block inside",
                received=f"rename_var({name!r}, {new_name!r})",
                hint="rename it before the loop or its gradient is added, or assign it to a variable of the new name.",
            )  # fmt: skip
        renames = {name: new_name}
        if grad_var_name(name) in self.desc.vars:
            renames[grad_var_name(name)] = grad_var_name(new_name)
        for old, new in renames.items():
            self.desc._check_rename(old, new)
        origin.writing(self.program)
        for old, new in renames.items():
            self.desc.rename_var(old, new)
        return variable

    _rename_var = rename_var

    def remove_var(self, name: str) -> None:
        """Remove a variable from this block; OpValueError when there is none."""
        self.var(name)
        origin.writing(self.program)
        self.desc.remove_var(name)

    _remove_var = remove_var

    # Operators.

    @property
    def ops(self) -> Ops:
        """Its operators in order; a live view."""
        return Ops(self)

    def append_op(
        self,
        type: str | None = None,
        inputs: Any = None,  # append.describe checks these three: its message names the operator
        outputs: Any = None,
        attrs: Any = None,
    ) -> Operator:
        """Append an operator: check it, infer its outputs, put it at the end; an error changes nothing.

        Args:
            inputs: slot -> variable, name, or a list of these.
            outputs: the same for outputs; names that no block knows are declared in this one.
            attrs: attribute -> value; None is the same as left out.

        Example:
            >>> block = fluid.Program().global_block()
            >>> x = block.create_var(name="x", shape=[-1, 13], dtype="float32")
            >>> op = block.append_op("relu", {"X": x}, {"Out": "y"}); block.var("y").shape
            (-1, 13)
        """
        return self._appended(type, inputs, outputs, attrs)

    def _appended(self, type: str | None, inputs: Any, outputs: Any, attrs: Any) -> Operator:
        """As `append_op`, for a type that is a text."""
        return Operator._appended(self, type, inputs, outputs, attrs)

    append_operator = append_op

    def prepend_op(
        self,
        type: str | None = None,
        inputs: Any = None,  # append.describe checks these three: its message names the operator
        outputs: Any = None,
        attrs: Any = None,
    ) -> Operator:
        """Put an operator in front of all others; arguments and errors as `append_op`."""
        if origin.recorder is not None:
            origin.recorder.prepended.add(self.desc)
        return self.put_desc(append.describe(self, type, inputs, outputs, attrs, 0), 0)

    prepend_operator = prepend_op
    _prepend_op = prepend_op

    def insert_op(
        self,
        index: int,
        type: str | None = None,
        inputs: Any = None,  # append.describe checks these three: its message names the operator
        outputs: Any = None,
        attrs: Any = None,
    ) -> Operator:
        """Put an operator at a place; arguments and errors as `append_op`.

        Args:
            index: its place, from 0; negative counts from the end.
        """
        origin.saw_list(self.program)
        count = len(self.desc.ops)
        if not -count <= index <= count:
            raise OpValueError(
                f"block {self.desc.idx} has no place {index}.", where=capture(), expected=f"{-count} to {count}",
                received=index, hint="append_op puts an operator at the end.",
            )  # fmt: skip
        place = index % count if index < 0 else index
        return self.put_desc(append.describe(self, type, inputs, outputs, attrs, place), place)

    _insert_op = insert_op

    def put_desc(self, desc: OpDesc, index: int | None = None, *, strict: bool = True) -> Operator:
        """Put an operator's description into this block, at the end for None; checks and errors as `append_op`.

        Args:
            strict: whether unknown attributes and missing slots are refused. Gradients of loaded programs have
                attributes that only their writer knew.
        """
        where = capture()
        attrs: dict[str, Any] = {}
        append.generated(self, attrs)
        desc._add_attrs({name: value for name, value in attrs.items() if not desc.has_attr(name)})
        written = append.put(self, desc, index, where, strict)
        operator = Operator.over(self, desc, where)
        append.note_writer(operator, written)
        return operator

    def remove_op(self, index: int, end: int | None = None) -> None:
        """Remove operators; their variables stay.

        Args:
            index: the first, from 0; negative counts from the end.
            end: one past the last; None for one operator.
        """
        origin.saw_list(self.program)
        count = len(self.desc.ops)
        start = index + count if index < 0 else index
        stop = start + 1 if end is None else end
        if not 0 <= start <= stop <= count or start == count:
            raise OpValueError(
                f"block {self.desc.idx} has no operator {index}.", where=capture(), expected=f"0 to {count - 1}",
                received=index if end is None else f"{index} to {end}",
            )  # fmt: skip
        origin.writing(self.program)
        self.desc.remove_op(start, stop)

    _remove_op = remove_op

    def delete_ops(self, ops: Iterable[Operator]) -> None:
        """Remove operators of this block; OpValueError for one of another block, and nothing has changed then."""
        gone = {op.desc: op for op in ops}
        for desc, op in gone.items():
            if desc.block is not self.desc:
                raise OpValueError(
                    f"{op.type} is no operator of block {self.desc.idx}.", op=desc.label(), where=capture(),
                    expected=f"an operator of block {self.desc.idx} in {self.program.short()}", received=repr(op),
                )  # fmt: skip
        for place in sorted((op.idx for op in gone.values()), reverse=True):
            self.remove_op(place)

    def slice_ops(self, start: int, end: int) -> list[Operator]:
        """The operators from ``start`` to before ``end``."""
        return self.ops[start:end]

    _slice_ops = slice_ops

    # Running, done by fluidnb.runtime.

    def infer_shape(self, scope: Any) -> Any:
        """Creates the block's variables in a scope and infers shapes from its values.

        Returns:
            The shape of each tensor that the operators write, by name; -1 where they depend on values.
        """
        return _runtime(hooks.infer_block)(self, scope)

    def run(self, scope: Any, place: Any) -> Any:
        """Run the block's operators in order, on the variables of a scope on which `infer_shape` was called."""
        return _runtime(hooks.run_block)(self, scope, place)

    def eval(self, targets: Any, scope: Any, place: Any) -> Any:
        """Prune to what some variables need, infer shapes, run, and return their values.

        Args:
            targets: variables or names; one, or a list.

        Returns:
            The values in the order of the targets: ndarrays, LoDTensors for those with LoD.
        """
        return _runtime(hooks.eval_block)(self, targets, scope, place)

    # The design document's spelling.
    InferShape = infer_shape
    Run = run
    Eval = eval

    # Text and HTML.

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: the readable form instead, with facts that are not in the description.
        """
        from fluidnb.program.printing import proto_text
        from fluidnb.program.pseudo_code import block_lines

        origin.saw_list(self.program)
        if with_details:
            return "\n".join(block_lines(self.desc, details=True)) + "\n"
        return proto_text(self.desc.to_pb(), throw_on_error)

    def __str__(self) -> str:
        from fluidnb.program.pseudo_code import block_lines

        origin.saw_list(self.program)
        return "\n".join(block_lines(self.desc))

    def __repr__(self) -> str:
        def count(n: int, what: str) -> str:
            return f"{n} {what}" if n == 1 else f"{n} {what}s"

        return f"Block {self.idx}: {count(len(self.desc.vars), 'variable')}, {count(len(self.desc.ops), 'operator')}"

    _repr_html_ = repr_html


def _runtime(hook: Callable[..., Any] | None) -> Callable[..., Any]:
    """A function that the runtime fills in."""
    if hook is None:
        raise NotBuiltYet("a block runs once fluidnb.runtime is imported.", where=capture(2))
    return hook


def _noted(parameter: Parameter, old: Variable | None) -> Parameter:
    """A parameter that was just declared, or the one that its description had before; the running layer has it."""
    if isinstance(old, Parameter):
        parameter.desc.view = parameter = old
    elif old is None:
        naming.note_made(parameter.desc)
    naming.note_parameter(parameter)
    return parameter


def _program_over(desc: BlockDesc) -> Program:
    """The program over a block's description, made at the first call."""
    from fluidnb.program.program import Program

    view = desc.program.view
    return view if isinstance(view, Program) else Program(desc.program)
