"""Parameter: a variable that training changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpAssertionError, OpTypeError, OpValueError
from fluidnb.op import get_op
from fluidnb.program import declare_var as declare
from fluidnb.program.variable import Variable, _set
from fluidnb.utils.source_location import capture
from fluidnb.values.dtypes import VarType

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.proto.desc import VarDesc


class Parameter(Variable):
    """A persistable variable of the global block that training changes.

    Args:
        block: a block of the program; the parameter goes to the global block.
        shape: sizes, none of them unknown.
        dtype: dtype in any spelling.
        name: its name; None makes one.
        trainable: whether optimizers change it.
        optimize_attr: factors for its optimizer, ``{"learning_rate": 1.0}`` when left out.
        regularizer: its weight decay, or None.
        gradient_clip_attr: its gradient clipping, or None.
        do_model_average: whether model averaging includes it.
        kwargs: further arguments of `Variable`.

    Attributes:
        initialize_op_attrs: type and attributes of the operator that initializes it, or None.
        optimize_op_attrs: type and attributes of its optimizer's operator, or None before there is one.

    Source: fluid.framework.Parameter; Fluid's Python API design.
    """

    #: What a message says where one is expected.
    argument_hint = "layers.create_parameter() makes one."

    _DETAILS = (
        *Variable._DETAILS, "trainable", "optimize_attr", "regularizer", "gradient_clip_attr", "do_model_average",
    )  # fmt: skip

    trainable: bool = True
    optimize_attr: dict[str, Any]
    regularizer: Any = None
    gradient_clip_attr: Any = None
    do_model_average: bool | None = None
    initialize_op_attrs: dict[str, Any] | None = None
    optimize_op_attrs: dict[str, Any] | None = None

    @checked
    def __init__(
        self, block: Block, shape: Sequence[int] | None = None, dtype: Any = None, name: str | None = None, *,
        trainable: bool = True, optimize_attr: dict[str, Any] | None = None, regularizer: Any = None,
        gradient_clip_attr: Any = None, do_model_average: bool | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        declare.check_parameter(name, shape, dtype)
        super().__init__(block.program.global_block(), name=name, shape=shape, dtype=dtype, persistable=True, **kwargs)
        self._describe(trainable, optimize_attr, regularizer, gradient_clip_attr, do_model_average)

    def _describe(
        self, trainable: bool, optimize_attr: dict[str, Any] | None, regularizer: Any, gradient_clip_attr: Any,
        do_model_average: bool | None,
    ) -> None:  # fmt: skip
        self.desc.set_is_parameter(True)
        _set(self, "optimize_attr", optimize_attr or {"learning_rate": 1.0})
        if trainable is not True:
            _set(self, "trainable", trainable)
        if regularizer is not None:
            _set(self, "regularizer", regularizer)
        if gradient_clip_attr is not None:
            _set(self, "gradient_clip_attr", gradient_clip_attr)
        if do_model_average is not None:
            _set(self, "do_model_average", do_model_average)
        self.desc.saved = None

    @classmethod
    def _of_layer(
        cls, block: Block, name: str, shape: Sequence[int], dtype: Any, described: Mapping[str, Any]
    ) -> Parameter:
        """As the class itself, for a layer, which has checked the arguments.

        Args:
            block: the global block.
            described: the arguments from ``trainable`` to ``do_model_average``.
        """
        declare.check_parameter(name, shape, dtype)
        kind = VarType.LOD_TENSOR
        desc = declare.variable(block.desc, kind, name, shape, dtype, None, True, False, False)
        return cls._over(block, desc, described)

    @classmethod
    def _over(cls, block: Block, desc: VarDesc, described: Mapping[str, Any]) -> Parameter:
        self = cls.__new__(cls)
        Variable._view(self, block, desc)
        self._describe(**described)
        return self

    def _copied(self, block: Block, described: Mapping[str, Any]) -> Parameter:
        """The same parameter in the global block of another program, which has no variable of its name."""
        return self._over(block, declare.like(block.desc, self.desc.name(), self.desc, True), described)

    def _view(self, block: Block, desc: VarDesc) -> None:
        super()._view(block, desc)
        _set(self, "optimize_attr", {"learning_rate": 1.0})

    @staticmethod
    def _defaults() -> dict[str, Any]:
        return {"optimize_attr": {"learning_rate": 1.0}}

    @property
    def persistable(self) -> bool:
        """True: a parameter outlives runs."""
        return True

    @persistable.setter
    def persistable(self, value: bool) -> None:
        if not value:
            raise OpAssertionError(f"parameter {self.name} is persistable.", expected="True", received=repr(value))
        self.desc.set_persistable(True)

    def _rate_factor(self) -> float | Variable:
        """The factor of its learning rate in ``optimize_attr``."""
        factor = self.optimize_attr.get("learning_rate") if isinstance(self.optimize_attr, Mapping) else None
        if isinstance(factor, Variable):
            return factor
        try:
            return float(factor)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise OpTypeError(
                f"The factor of the learning rate of {self.name} must be a number or a Variable.",
                expected='optimize_attr={"learning_rate": 1.0}, for example',
                received=f"optimize_attr={shown(self.optimize_attr)}",
            ) from None  # fmt: skip


def initialize(parameter: Parameter, init_attr: Mapping[str, Any]) -> None:
    """Append the operator that initialises a parameter, to the startup program where there is one, else in front."""
    from fluidnb.program.defaults import startup_of

    if not isinstance(init_attr, Mapping):
        raise OpTypeError("init_attr should be a dict.", where=capture(), received=repr(init_attr)[:200])
    attrs = dict(init_attr)
    op_type = attrs.pop("type", None)
    if not isinstance(op_type, str):
        raise OpValueError(
            f"init_attr of parameter {parameter.name} has no type.", where=capture(),
            expected='{"type": "uniform_random", "min": -1.0, "max": 1.0}', received=repr(dict(init_attr)),
        )  # fmt: skip
    if "filename" in attrs:
        attrs["file_path"] = attrs.pop("filename")
    known = get_op(op_type).attrs
    if "shape" in known:
        attrs.setdefault("shape", list(parameter.desc.shape()))
    if "dtype" in known:
        attrs.setdefault("dtype", int(parameter.desc.dtype()))
    startup = startup_of(parameter.block.program)
    if startup is None:
        home = parameter.block
    else:
        home = startup.global_block()
        home.create_parameter(name=parameter.name, shape=parameter.shape, dtype=parameter.dtype)
    put = home.prepend_op if startup is None else home.append_op
    put(op_type, outputs={"Out": [parameter.name]}, attrs=attrs)
    parameter.initialize_op_attrs = {"type": op_type, **attrs}
