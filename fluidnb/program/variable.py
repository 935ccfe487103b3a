"""Variable: a view over a VarDesc, with what only construction knows."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import Operand, OpTypeError, OpValueError
from fluidnb.program import declare_var as declare
from fluidnb.program import hooks, indexing, origin
from fluidnb.program import pseudo_code as codes
from fluidnb.program.constants import grad_var_name
from fluidnb.program.layer_calls import layer
from fluidnb.program.stale_handles import gone, is_live
from fluidnb.proto.desc import VarDesc
from fluidnb.utils.escapes import visible_line
from fluidnb.utils.representations import repr_html
from fluidnb.utils.source_location import capture, warn
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declared
from fluidnb.values.dtypes import VAR_TYPES, VarType

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.operator import Operator
    from fluidnb.program.parameter import Parameter

_INTEGERS = (VarType.BOOL, VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64)
_SYMBOLS = {
    "elementwise_add": "+", "elementwise_sub": "-", "elementwise_mul": "*", "elementwise_div": "/",
    "elementwise_pow": "**", "elementwise_mod": "%", "elementwise_floordiv": "//", "less_than": "<",
    "less_equal": "<=", "greater_than": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "matmul": "@",
}  # fmt: skip
_RUN = "run the program: exe.run(program, feed=..., fetch_list=[variable])."
#: Methods of tensors in PyTorch, numpy and Paddle 2 -> what to do instead.
_METHODS_ELSEWHERE = {
    **dict.fromkeys(("numpy", "item", "tolist", "detach"), _RUN),
    "backward": "append its gradients: fluid.append_backward(variable), or optimizer.minimize(variable).",
    "grad": 'fetch its gradient by name, variable.name + "@GRAD", after fluid.append_backward(loss).',
    **dict.fromkeys(("view", "permute"), "layers.reshape and layers.transpose give other shapes."),
}


#: Functions of numpy that are Python's operators -> the variable's method where it stands on the left, on the right.
_OPERATORS_OF_NUMPY: dict[str, tuple[str, str]] = {
    **{
        name: (f"__{method}__", f"__r{method}__")
        for name, method in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"),
                             ("power", "pow"), ("remainder", "mod"), ("floor_divide", "floordiv"),
                             ("matmul", "matmul"))
    },
    "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"), "equal": ("__eq__", "__eq__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"), "not_equal": ("__ne__", "__ne__"),
    "negative": ("__neg__", "__neg__"),
}  # fmt: skip
#: Functions and reductions of numpy -> the layer that computes the same.
_LAYERS_OF_NUMPY = {
    **{name: name for name in ("ceil", "cos", "exp", "floor", "isfinite", "log", "reciprocal", "sign", "sin", "sqrt",
                               "square", "tanh")},
    "absolute": "abs", "maximum": "elementwise_max", "minimum": "elementwise_min",
    "add.reduce": "reduce_sum", "multiply.reduce": "reduce_prod", "maximum.reduce": "reduce_max",
    "minimum.reduce": "reduce_min",
}  # fmt: skip


#: Sets an attribute of a view without noting an edit.
_set = object.__setattr__


def _operator(op_type: str, reverse: bool = False) -> Callable[[Any, Any], Variable]:
    """The method of an operator of Python, which appends one; ``reverse``: the variable is on the right."""

    @layer
    def method(self: Any, other: Any) -> Variable:
        return _binary(self, other, op_type, reverse)

    return method


class Variable:
    """A variable of a block: a name, a type, and for tensors a shape, a dtype and a LoD level.

    It has no value: a scope has one while programs run. ``+ - * / ** // % @``, comparisons, ``-x`` and ``x[1:3]``
    append operators to the program. ``float(x)``, ``np.array(x)`` and loops over it are refused; ``bool(x)`` is True.

    Args:
        type: its type, by default a LoD tensor.
        name: its name; None makes one.
        shape: sizes; -1 is not known before the run, as a rule the batch.
        dtype: dtype in any spelling; float32 when left out.
        lod_level: levels of sequence nesting; 0 when left out.
        persistable: whether its value outlives a run; False when left out.
        stop_gradient: whether backward stops here.
        is_data: whether it is fed.
        error_clip: clipping of its gradient inside backward.

    Attributes:
        origin: the run of the cell that made it, or None.

    Example:
        >>> x = fluid.layers.data("x", [13]); y = 1 - 2 * x
        >>> [op.type for op in x.block.ops], y.shape
        (['scale', 'scale'], (-1, 13))

    Source: fluid.framework.Variable, math_op_patch.
    """

    #: What a message says where one is expected.
    argument_hint = "layers.fill_constant() makes a variable that holds a number, layers.data() one to feed."

    #: What `to_string` adds to the description.
    _DETAILS: tuple[str, ...] = ("error_clip", "stop_gradient", "cell_key")

    block: Block
    desc: VarDesc
    origin: origin.Origin | None
    # None of the class: most variables have no others, and every variable comes here.
    error_clip: Any = None
    _op: Operator | None = None
    _params: list[Parameter] | None = None

    @checked
    def __init__(
        self,
        block: Block,
        type: int = VarType.LOD_TENSOR,
        name: str | None = None,
        shape: Any = None,  # `declare.variable` refuses with the name of the variable
        dtype: Any = None,
        lod_level: int | None = None,
        persistable: bool | None = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        error_clip: Any = None,
    ) -> None:
        desc = declare.variable(block.desc, type, name, shape, dtype, lod_level, persistable, stop_gradient, is_data)
        self._view(block, desc)
        if error_clip is not None:
            _set(self, "error_clip", error_clip)
        desc.saved = None

    @classmethod
    def over(cls, block: Block, desc: VarDesc) -> Variable:
        """The view over an existing description: a `Parameter` where the description says so."""
        if desc.view is None:
            kind: type[Variable] = Variable
            if desc.is_parameter():
                from fluidnb.program.parameter import Parameter  # which imports this module

                kind = Parameter
            view = kind.__new__(kind)
            view._view(block, desc)
        return desc.view  # type: ignore[no-any-return]

    def _view(self, block: Block, desc: VarDesc) -> None:
        # Not by the dict, which Python makes when somebody asks for it.
        _set(self, "block", block)
        _set(self, "desc", desc)
        _set(self, "origin", origin.current())
        desc.view, desc.saved = self, None

    def _note_writer(self, operator: Operator | None) -> None:
        """Remember the last operator that writes it."""
        _set(self, "_op", operator)

    def _note_params(self, parameters: list[Parameter]) -> None:
        """Remember the parameters of its layer."""
        _set(self, "_params", parameters)
        self.desc.saved = None

    @staticmethod
    def _defaults() -> dict[str, Any]:
        """Initial attributes of a new view of this kind, beyond its description."""
        return {}

    def __setattr__(self, name: str, value: Any) -> None:
        origin.writing(self.block.program)
        # A cell that writes what is there already depends on it: after a change of the cells before, it would differ.
        self._noted()
        super().__setattr__(name, value)
        self.desc.saved = None
        self.block.desc.program.touch()

    def _seen(self) -> VarDesc:
        """The description, noted as read by the cell that runs; refuses a handle that was replaced."""
        if not is_live(self):
            gone(f"variable {self.name}", self, "read")
        return self._noted()

    def _noted(self) -> VarDesc:
        """The description, recorded as read by the running cell; allowed for a replaced handle too."""
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
        """Its type: LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY, STEP_SCOPES, …."""
        return VAR_TYPES[self.desc.type()]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; -1 where the run decides."""
        return tuple(self._seen().shape())

    @property
    def dtype(self) -> VarType:
        """The type of its elements."""
        return VAR_TYPES[self._seen().dtype()]

    @property
    def lod_level(self) -> int:
        """The number of LoD levels."""
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
        return self._noted().is_data()

    @is_data.setter
    def is_data(self, value: bool) -> None:
        self.desc.set_is_data(bool(value))

    @property
    def idx(self) -> int:
        """Its place among the variables of the block, from 0."""
        origin.saw_list(self.block.program)
        return list(self.block.desc.vars).index(self.name)

    # What Python knows.

    @property
    def cell_key(self) -> Any:
        """The key of the cell that created it, or None."""
        return origin.cell_key(self.origin)

    fragment = cell_key

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
            self._note_writer(op)
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
        """The first parameter of the layer that gave this variable, as a rule its weight; OpValueError without one."""
        if not self._params:
            raise OpValueError(
                f"variable {self.name} has no parameter.", slots=[self._operand()], where=capture(),
                expected="the result of a layer with parameters", received=f"{self!r}",
                hint="layers.fc and conv2d make parameters; program.global_block().all_parameters() has all.",
            )  # fmt: skip
        return self._params[0]

    @property
    def grad(self) -> Variable:
        """The variable's gradient; OpValueError when the program has none."""
        gradient = self.block.find_var_recursive(grad_var_name(self.name))
        if gradient is None:
            why = "call optimizer.minimize or append_backward first"
            if self.stop_gradient:
                why = "its stop_gradient is True"
            raise OpValueError(
                f"variable {self.name} has no gradient yet: {why}.", slots=[self._operand()], where=capture(),
                hint="gradients are variables too: fetch them, or list them with program.global_block().vars.",
                expected=f"a variable {grad_var_name(self.name)}", received=f"none in {self.block.program.short()}",
            )  # fmt: skip
        return gradient

    def set_error_clip(self, error_clip: Any) -> None:
        """Set the clipping of its gradient inside backward, for example ``ErrorClipByValue(max=1.0)``."""
        self.error_clip = error_clip

    _set_error_clip = set_error_clip

    # Operators of Python: each appends operators to the program, as fluid's math_op_patch. A number beside + - * /
    # becomes one ``scale`` operator; elsewhere a constant of shape [1].

    @layer
    def astype(self, dtype: Any) -> Variable:
        """The variable with elements of another type.

        Args:
            dtype: dtype in any spelling.

        Example:
            >>> fluid.layers.data("x", [3], dtype="int64").astype("float32").dtype.name
            'FP32'
        """
        number = dtypes.var_type(dtype)
        return _append(self, "cast", {"X": [self]}, {"in_dtype": int(self.dtype), "out_dtype": int(number)}, number)

    @layer
    def __neg__(self) -> Variable:
        return _scale(self, -1.0, 0.0)

    __add__ = __radd__ = _operator("elementwise_add")
    __sub__, __rsub__ = _operator("elementwise_sub"), _operator("elementwise_sub", True)
    __mul__ = __rmul__ = _operator("elementwise_mul")
    __truediv__, __rtruediv__ = _operator("elementwise_div"), _operator("elementwise_div", True)
    __pow__, __rpow__ = _operator("elementwise_pow"), _operator("elementwise_pow", True)
    __mod__, __floordiv__ = _operator("elementwise_mod"), _operator("elementwise_floordiv")
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", True)
    __lt__, __le__ = _operator("less_than"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater_than"), _operator("greater_equal")

    def __eq__(self, other: object) -> Any:
        # With what is no operand, == stays Python's question whether two things are one.
        return _equal(self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _not_equal(self, other) if _is_operand(other) else NotImplemented

    __hash__ = object.__hash__

    @layer
    def __getitem__(self, item: Any) -> Variable:
        return indexing.sliced(self, indexing.plan(self, item))

    # Conversions to values: refused, since a variable has no value while a program is built.

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise OpTypeError(
            f"{what} needs a value, and variable {self.name} has none while a program is built.",
            slots=[self._operand()], where=capture(2), hint=hint,
            expected="a value that Python knows now", received="a variable, whose values come when its program runs",
        )  # fmt: skip

    def __bool__(self) -> bool:
        """True: scripts write ``if bias:`` and ``mask or default`` for "was one given". A cell gets a warning."""
        if origin.recorder is not None:
            name = self.name
            warn(
                f"if, while, and, or, not see a variable, not its value: {name} counts as True while a program is "
                "built. Branch inside the program: layers.IfElse, layers.Switch, layers.While; "
                f'write "{name} is not None" where that is meant.'
            )
        return True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            hint = _METHODS_ELSEWHERE.get(name)
            more = "" if hint is None else f": variable {self.name} has no value while a program is built; {hint}"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}", name=name, obj=self)

    def __iter__(self) -> NoReturn:
        self._refuse("A Python loop", "loop inside the program: layers.While, layers.StaticRNN, layers.DynamicRNN.")

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("An array", _RUN)

    def __float__(self) -> NoReturn:
        self._refuse("A number", _RUN)

    __int__ = __float__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Operators with a number of numpy on the left; other functions of numpy are refused."""
        on_left, on_right = _OPERATORS_OF_NUMPY.get(ufunc.__name__, ("", ""))
        operator = getattr(type(self), on_left if inputs[0] is self else on_right, None)
        if operator is None or method != "__call__" or kwargs:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            layer = _LAYERS_OF_NUMPY.get(name)
            self._refuse(f"numpy's {name}", _RUN if layer is None else f"layers.{layer} computes it in the program.")
        others = [other for other in inputs if other is not self] or inputs[1:]
        result = operator(self, *others)
        if result is NotImplemented:  # by == and !=, which Python calls with any object
            raise _no_operand(self, others[0], ufunc.__name__)
        return result

    # Text and HTML.

    @checked
    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: whether to add facts that are not in the description.
        """
        from fluidnb.program.printing import proto_text

        text = proto_text(self.desc.pb, throw_on_error)
        if with_details:
            text += "".join(f"{name}: {getattr(self, name)}\n" for name in self._DETAILS)
        return text

    def __repr__(self) -> str:
        parts = [f"{type(self).__name__} {visible_line(self.name)}: {codes.kind_code(self.desc)}"]
        if self.origin is not None:
            parts.append(f"cell {self.origin.title}")
        if self.origin is not None and self.origin.fate:
            parts.append(self.origin.fate)
        else:
            value = None if hooks.last_value is None else hooks.last_value(self)
            parts.append("no value yet: run its program and fetch it" if value is None else f"last value {value}")
        return ", ".join(parts)

    _repr_html_ = repr_html

    def _operand(self) -> Operand:
        return "variable", self.name, *codes.elements(self.desc)


_equal, _not_equal = _operator("equal"), _operator("not_equal")


def _is_number(other: object) -> bool:
    return isinstance(other, numbers.Real | np.bool_) or (
        isinstance(other, np.ndarray)
        and other.ndim == 0
        and (other.dtype.kind in "biuf" or other.dtype.name == "bfloat16")
    )


def _is_operand(other: object) -> bool:
    return isinstance(other, Variable) or _is_number(other)


def _binary(x: Variable, other: Any, op_type: str, reverse: bool = False) -> Variable:
    arithmetic, product = op_type.startswith("elementwise"), op_type == "matmul"
    if _is_number(other) and not product:
        try:
            value = float(other)
        except OverflowError:
            raise OpValueError(
                f"The number beside variable {x.name} is too large.", where=capture(2), expected="a 64-bit float",
                received=f"a larger {type(other).__name__}", slots=[x._operand()],
            ) from None  # fmt: skip
        # Fluid before 1.6 divided integers into integers, and so do we while Paddle's names are installed.
        whole = x.dtype in _INTEGERS and op_type == "elementwise_div" and value.is_integer() and not declared.binding
        if arithmetic and x.dtype in _INTEGERS and not whole and (op_type == "elementwise_div" or value % 1):
            x = x.astype("float32")
        scaled = None if whole else _as_scale(op_type, value, reverse)
        if scaled is not None:
            return _scale(x, *scaled)
        other = _constant(x, other, value, op_type)
    elif not isinstance(other, Variable):
        raise _no_operand(x, other, op_type)
    left, right = (other, x) if reverse else (x, other)
    dtype = left.dtype if arithmetic or product else VarType.BOOL
    attrs = {"transpose_X": False, "transpose_Y": False, "alpha": 1.0} if product else {"axis": -1}
    return _append(x, op_type, {"X": [left], "Y": [right]}, attrs, dtype)


def _no_operand(x: Variable, other: Any, op_type: str) -> OpTypeError:
    kinds = "variable" if op_type == "matmul" else "variable or a number"
    return OpTypeError(
        f"{_SYMBOLS[op_type]} takes a {kinds} beside variable {x.name}.", where=capture(3),
        expected=f"a {kinds}", received=f"{type(other).__name__} {other!r}"[:200],
        slots=[("variable", x.name, dtypes.dtype_name(x.dtype), x.shape)],
        hint="layers.assign turns an array into a variable.",
    )  # fmt: skip


def _as_scale(op_type: str, value: float, reverse: bool) -> tuple[float, float] | None:
    """The factor and the bias with which ``scale`` does the work of an operator and a number, where it can."""
    if op_type == "elementwise_add":
        return 1.0, value
    if op_type == "elementwise_sub":
        return (-1.0, value) if reverse else (1.0, -value)
    if op_type == "elementwise_mul":
        return value, 0.0
    if op_type == "elementwise_div" and not reverse and value != 0:
        return 1.0 / value, 0.0
    return None


def _scale(x: Variable, scale: float, bias: float) -> Variable:
    return _append(x, "scale", {"X": [x]}, {"scale": scale, "bias": bias, "bias_after_scale": True}, x.dtype)


def _constant(x: Variable, other: Any, value: float, op_type: str) -> Variable:
    number = x.dtype
    if number == VarType.BOOL:
        value = float(bool(value))
    attrs = {"shape": [1], "dtype": int(number), "value": value}
    if number in _INTEGERS and number != VarType.BOOL and declared.binding:
        if not dtypes.holds(number, other):
            raise OpValueError(
                f"{_SYMBOLS[op_type]} takes a number of the dtype of variable {x.name}.", where=capture(3),
                expected=f"a number that {dtypes.dtype_name(number)} has", received=repr(value), slots=[x._operand()],
                hint=f'convert the variable: layers.cast({x.name}, "float32") in its place.',
            )  # fmt: skip
        if int(np.float32(value)) != int(other):
            attrs["str_value"] = str(int(other))  # `value` is a 32-bit float
    out = _append(x, "fill_constant", {}, attrs, number)
    out.stop_gradient = True
    return out


def _append(x: Variable, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], dtype: int) -> Variable:
    block = x.block.program.current_block()
    out = block.create_var(name=block._free_name(op_type + ".tmp"), dtype=dtype, shape=[], persistable=False)
    block.append_op(type=op_type, inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out
