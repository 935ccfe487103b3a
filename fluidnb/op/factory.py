"""Operators by keywords, as in scripts of versions 0.10 to 0.12: ``Operator("mul", X="x", Y="y", Out="z")``.

Example:
    >>> from fluidnb.op import Operator
    >>> print(Operator("mul", X="x", Y="y", Out="z"))
    Op(mul), inputs:{X[x], Y[y]}, outputs:{Out[z]}.
    >>> Operator.get_op_inputs("sum"), Operator.get_op_output_names("sum")
    ([('X', True)], ['Out'])

Source: Fluid's op module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from fluidnb.errors import NotBuiltYet, OpTypeError, OpValueError, near
from fluidnb.op.define import registry
from fluidnb.op.proto import get_all_op_protos
from fluidnb.proto.attr_values import encode
from fluidnb.proto.framework_pb2 import FLOATS, INTS, LONGS, OpDesc, OpProto
from fluidnb.utils.source_location import capture, warn
from fluidnb.values import kernel_packages


def is_str(s: Any) -> bool:
    """Whether a value is a str (Fluid's name)."""
    return isinstance(s, str)


class OpDescCreationMethod:
    """Makes descriptions of one type of operator from keywords.

    Example:
        >>> from fluidnb.op import get_op, op_proto
        >>> desc = OpDescCreationMethod(op_proto(get_op("scale")))(X="x", Out="y", scale=2.0)
        >>> desc.type, desc.inputs[0].parameter, desc.attrs[0].f
        ('scale', 'X', 2.0)
    """

    def __init__(self, op_proto: Any) -> None:
        if not isinstance(op_proto, OpProto):
            text = "Type of op_proto should be OpProto."
            raise OpTypeError(text, where=capture(), expected="an OpProto", received=repr(op_proto)[:80])
        self._proto: OpProto = op_proto

    def __call__(self, *args: Any, **kwargs: Any) -> OpDesc:
        """Creates a description.

        Args:
            kwargs: slot -> a name or a list of names; attribute -> value, None for the default.

        Returns:
            The message; a slot that is left out has no arguments.
        """
        if args:
            raise OpValueError(
                "Only keyword arguments are supported.", where=capture(), received=repr(args)[:80],
                expected='for example X="x", Out="y", scale=2.0',
            )  # fmt: skip
        proto = self._proto
        desc = OpDesc(type=proto.type)
        for side, slots, field in (("Input", proto.inputs, desc.inputs), ("Output", proto.outputs, desc.outputs)):
            for slot in slots:
                field.add(parameter=slot.name, arguments=self._arguments(side, slot, kwargs.pop(slot.name, None)))
        for attr in proto.attrs:
            value = kwargs.pop(attr.name, None)
            if value is not None:
                if attr.type in (INTS, LONGS, FLOATS) and isinstance(value, int | float):
                    value = [value]  # older programs have one number where a list is declared: dim of reduce_sum
                encode(desc.attrs.add(), attr.name, attr.type, value)
        if kwargs:
            warn(f"{proto.type} has no input, output or attribute {', '.join(kwargs)}; it is passed over.")
        return desc

    def _arguments(self, side: str, slot: Any, names: str | Sequence[str] | None) -> list[str]:
        row = [] if names is None else [names] if isinstance(names, str) else list(names)
        if len(row) > 1 and not slot.duplicable:
            raise OpValueError(
                f"{side} {slot.name} expects only one {side.lower()}, but {len(row)} are given.", where=capture(2),
                expected="one name", received=", ".join(map(str, row)),
            )  # fmt: skip
        return row

    @staticmethod
    def any_is_true(generator: Iterable[Any]) -> bool:
        """Whether one of several values is true (Fluid's name for ``any``)."""
        return any(generator)


class OpInfo(NamedTuple):
    """The factory's record of an operator type."""

    name: str
    method: Callable[..., Any]  # creates an operator that runs without a program from keywords
    inputs: list[tuple[str, bool]]  # (slot, whether it takes a list) of each input
    outputs: list[tuple[str, bool]]  # the same for outputs
    attrs: list[str]  # names of its attributes


def create_op_creation_method(op_proto: OpProto) -> OpInfo:
    """Creates the factory's record of an operator type.

    Example:
        >>> from fluidnb.op import get_op, op_proto
        >>> print(create_op_creation_method(op_proto(get_op("relu"))).method(X="x", Out="y"))
        Op(relu), inputs:{X[x]}, outputs:{Out[y]}.
    """
    describe = OpDescCreationMethod(op_proto)

    def method(*args: Any, **kwargs: Any) -> Any:
        desc = describe(*args, **kwargs).SerializeToString()
        return importlib.import_module("fluidnb.core").Operator.create(desc)  # by name: the core is a higher package

    return OpInfo(
        op_proto.type, method, [(slot.name, slot.duplicable) for slot in op_proto.inputs],
        [(slot.name, slot.duplicable) for slot in op_proto.outputs], [attr.name for attr in op_proto.attrs],
    )  # fmt: skip


class OperatorFactory:
    """Creates operators that run without a program and lists operator types; ``fluid.op.Operator`` is an instance.

    Example:
        >>> add = OperatorFactory()("elementwise_add", X="x", Y="y", Out="z")
        >>> scope = fluid.Scope()
        >>> for name in ("x", "y"):
        ...     scope.var(name).get_tensor().set(np.ones(2, "float32"), fluid.CPUPlace())
        >>> add.run(scope, fluid.CPUPlace()); np.array(scope.find_var("z").get_tensor())
        array([2., 2.], dtype=float32)
    """

    def __init__(self) -> None:
        self._version = -1
        self._methods: dict[str, OpInfo] = {}

    @property
    def op_methods(self) -> dict[str, OpInfo]:
        """Type -> the factory's record of it; follows the registry."""
        kernel_packages.load()
        if self._version != registry.version:
            self._methods = {proto.type: create_op_creation_method(proto) for proto in get_all_op_protos()}
            self._version = registry.version
        return self._methods

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a ``core.Operator``: its type (by position or ``type=``), then slots and attributes by keyword."""
        types = [*args, *([kwargs.pop("type")] if "type" in kwargs else [])]
        if len(types) != 1:
            raise OpValueError(
                'Except the argument "type", all of the other arguments should be keyword arguments.', where=capture(),
                expected='for example Operator("mul", X="x", Y="y", Out="z")', received=repr(args)[:80],
            )  # fmt: skip
        return self.get_op_info(types[0]).method(**kwargs)

    def types(self) -> list[str]:
        """All types of operators."""
        return list(self.op_methods)

    def get_op_info(self, t: str) -> OpInfo:
        """Returns the record of an operator type."""
        info = self.op_methods.get(t)
        if info is None:
            raise OpValueError(
                f"The operator: {t} is not registered.", where=capture(2), expected="a type of operator", received=t,
                hint=near(t, self.op_methods),
            )  # fmt: skip
        return info

    def get_op_input_names(self, type: str) -> list[str]:
        """The input slots of a type."""
        return [name for name, _ in self.get_op_info(type).inputs]

    def get_op_inputs(self, type: str) -> list[tuple[str, bool]]:
        """The input slots of a type, and whether each takes a list."""
        return self.get_op_info(type).inputs

    def get_op_output_names(self, type: str) -> list[str]:
        """The output slots of a type."""
        return [name for name, _ in self.get_op_info(type).outputs]

    def get_op_outputs(self, type: str) -> list[tuple[str, bool]]:
        """The output slots of a type, and whether each takes a list."""
        return self.get_op_info(type).outputs

    def get_op_attr_names(self, type: str) -> list[str]:
        """The attributes of a type."""
        return self.get_op_info(type).attrs


class _Gone:
    """A maker of operators that ran a network for each step or branch; later versions run blocks."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltYet(
            f"{self._name} ran a separate network, which later versions replaced by blocks.", where=capture(),
            hint=f"{self._instead} does the same.",
        )  # fmt: skip


Operator = OperatorFactory()
RecurrentOp = _Gone("RecurrentOp", "layers.StaticRNN")
DynamicRecurrentOp = _Gone("DynamicRecurrentOp", "layers.DynamicRNN")
CondOp = _Gone("CondOp", "layers.IfElse")
