"""Variable: a view over a VarDesc, with what only construction knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.errors import Operand, OpValueError
from fluidnb.program import codes, declare, hooks, origin
from fluidnb.program.constants import grad_var_name
from fluidnb.program.indexing import Indexing
from fluidnb.program.live import ensure_live, is_live
from fluidnb.program.math_ops import Arithmetic
from fluidnb.program.no_value import NoValue
from fluidnb.proto.desc import VarDesc
from fluidnb.values.dtypes import VarType
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.operator import Operator
    from fluidnb.program.parameter import Parameter


class Variable(Arithmetic, Indexing, NoValue):
    """A variable of a block: a name, a type, and for tensors a shape, a dtype and a LoD level.

    It has no value; values live in a scope while programs run. Python operators append operators to the program.

    Args:
        block: the block.
        type: what it is, by default a LoD tensor.
        name: its name; None makes one.
        shape: sizes; -1 is not known before the run, as a rule the batch.
        dtype: dtype in any spelling; float32 when left out.
        lod_level: levels of sequence nesting; 0 when left out.
        persistable: whether its value outlives a run; False when left out.
        stop_gradient: whether backward stops here.
        is_data: whether it is fed.
        error_clip: clipping of its gradient inside backward.

    Attributes:
        block: the block.
        desc: the description.
        origin: the run of the cell that made it, or None.

    Raises:
        OpValueError: the block has a variable of this name that differs.

    Example:
        >>> from fluidnb.program import Program
        >>> x = Variable(Program().global_block(), name="x", shape=[-1, 13], dtype="float32")
        >>> x.shape, x.dtype.name
        ((-1, 13), 'FP32')

    Source: fluid.framework.Variable.
    """

    #: What `to_string` adds to the description.
    _DETAILS: tuple[str, ...] = ("error_clip", "stop_gradient", "fragment")

    block: Block
    desc: VarDesc
    origin: origin.Origin | None
    _op: Operator | None
    _params: list[Parameter] | None

    def __init__(
        self,
        block: Block,
        type: int = VarType.LOD_TENSOR,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        lod_level: int | None = None,
        persistable: bool | None = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        error_clip: Any = None,
    ) -> None:
        desc = declare.variable(block.desc, type, name, shape, dtype, lod_level, persistable, stop_gradient, is_data)
        self._view(block, desc)
        self.__dict__["error_clip"] = error_clip

    @classmethod
    def over(cls, block: Block, desc: VarDesc) -> Variable:
        """The view over a description that exists: a `Parameter` where the description says so.

        Args:
            block: the view over the description's block.
            desc: the description.

        Returns:
            The view, made at the first call.
        """
        if desc.view is None:
            from fluidnb.program.parameter import Parameter

            kind = Parameter if desc.is_parameter() else Variable
            view = kind.__new__(kind)
            view._view(block, desc)
        return desc.view  # type: ignore[no-any-return]

    def _view(self, block: Block, desc: VarDesc) -> None:
        self.__dict__.update(
            block=block, desc=desc, origin=origin.current(), error_clip=None, _op=None, _params=None, **self._defaults()
        )
        desc.view = self

    @staticmethod
    def _defaults() -> dict[str, Any]:
        """What a fresh view of this kind knows beyond its description."""
        return {}

    def __setattr__(self, name: str, value: Any) -> None:
        origin.writing(self.block.program)
        # A cell that writes what is there already depends on it: after a change of the cells before, it would differ.
        self._noted()
        super().__setattr__(name, value)
        self.block.desc.program.touch()

    def _seen(self) -> VarDesc:
        """The description, noted as read by the cell that runs; refuses a handle that was replaced."""
        ensure_live(self, "read")
        return self._noted()

    def _noted(self) -> VarDesc:
        """The description, noted as read by the cell that runs; a handle that was replaced may still ask."""
        desc = self.desc
        if origin.recorder is not None and desc.block is not None:
            origin.recorder.looked_up(desc.block, desc.name(), desc)
        return desc

    # What the description says.

    @property
    def name(self) -> str:
        """The name, unique in the block."""
        return self.desc.name()

    @property
    def type(self) -> VarType:
        """What it is: LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY, STEP_SCOPES, …."""
        return VarType(self.desc.type())

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; -1 where the run decides."""
        return tuple(self._seen().shape())

    @property
    def dtype(self) -> VarType:
        """The type of its elements."""
        return VarType(self._seen().dtype())

    @property
    def lod_level(self) -> int:
        """How deep sequences nest in it."""
        return self._seen().lod_level()

    @property
    def persistable(self) -> bool:
        """Whether its value outlives a run."""
        return self._noted().persistable()

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.desc.set_persistable(bool(value))

    @property
    def stop_gradient(self) -> bool:
        """Whether backward stops here."""
        return self._noted().stop_gradient()

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.desc.set_stop_gradient(bool(value))

    @property
    def is_data(self) -> bool:
        """Whether it is fed, so that a run checks shape and dtype of the feed."""
        return self._noted().need_check_feed()

    @is_data.setter
    def is_data(self, value: bool) -> None:
        self.desc.set_need_check_feed(bool(value))

    @property
    def idx(self) -> int:
        """Its place among the variables of the block, from 0."""
        origin.saw_list(self.block.program)
        return list(self.block.desc.vars).index(self.name)

    # What Python knows.

    @property
    def fragment(self) -> Any:
        """The key of the cell that made it, or None."""
        return origin.fragment_key(self.origin)

    @property
    def lives(self) -> bool:
        """Whether it is still part of its program: not removed, and its cell neither replaced nor removed."""
        return is_live(self)

    @property
    def op(self) -> Operator | None:
        """The last operator that writes it, or None for data and parameters."""
        origin.saw_list(self.block.program)
        op = self._op
        if op is None or op.desc.block is None or self.name not in op.output_arg_names:
            op = next((o for o in reversed(self.block.ops) if self.name in o.desc.output_arg_names()), None)
            self.__dict__["_op"] = op
        return op

    @property
    def writer(self) -> Operator | None:
        """The last operator that writes it (the seed's name for `op`)."""
        return self.op

    @property
    def params(self) -> list[Parameter]:
        """The parameters of the layer that gave this variable, in the order in which the layer made them."""
        return list(self._params or ())

    @property
    def param(self) -> Parameter:
        """The first parameter of the layer that gave this variable, as a rule its weight.

        Raises:
            OpValueError: no layer with parameters gave it.
        """
        if not self._params:
            raise OpValueError(
                f"variable {self.name} has no parameter.", slots=[self._operand()], where=capture(),
                expected="the result of a layer with parameters", received=f"{self!r}",
                hint="layers.fc and conv2d make parameters; program.global_block().all_parameters() has all.",
            )  # fmt: skip
        return self._params[0]

    @property
    def grad(self) -> Variable:
        """The variable's gradient.

        Raises:
            OpValueError: the program has no gradient of it.
        """
        found = self.block.find_var_recursive(grad_var_name(self.name))
        if found is None:
            why = "call optimizer.minimize or append_backward first"
            if self.stop_gradient:
                why = "its stop_gradient is True"
            raise OpValueError(
                f"variable {self.name} has no gradient yet: {why}.", slots=[self._operand()], where=capture(),
                hint="gradients are variables too: fetch them, or look at them with program.global_block().vars.",
                expected=f"a variable {grad_var_name(self.name)}", received=f"none in {self.block.program.short()}",
            )  # fmt: skip
        return found

    def set_error_clip(self, error_clip: Any) -> None:
        """Clip the variable's gradient inside backward.

        Args:
            error_clip: for example ``ErrorClipByValue(max=1.0)``.
        """
        self.error_clip = error_clip

    _set_error_clip = set_error_clip

    # How it shows itself.

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: whether to add what only Python knows.

        Returns:
            Several lines.

        Raises:
            OpValueError: required fields are not set.

        Example:
            >>> from fluidnb.program import Program
            >>> x = Program().global_block().create_var(name="x", shape=[2], dtype="float32")
            >>> print(x.to_string().splitlines()[0])
            name: "x"
        """
        from fluidnb.program.printing import proto_text

        text = proto_text(self.desc.pb, throw_on_error)
        if with_details:
            text += "".join(f"{name}: {getattr(self, name)}\n" for name in self._DETAILS)
        return text

    def __repr__(self) -> str:
        parts = [f"{type(self).__name__} {self.name}: {codes.kind_code(self.desc)}"]
        if self.origin is not None:
            parts.append(f"cell {self.origin.title}")
        if self.origin is not None and self.origin.fate:
            parts.append(self.origin.fate)
        else:
            value = None if hooks.last_value is None else hooks.last_value(self)
            parts.append("no value yet: run its program and fetch it" if value is None else f"last value {value}")
        return ", ".join(parts)

    def _repr_html_(self) -> str | None:
        return None if hooks.repr_html is None else hooks.repr_html(self)

    def _operand(self) -> Operand:
        return "variable", self.name, *codes.elements(self.desc)
