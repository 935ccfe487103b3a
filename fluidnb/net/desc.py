"""Writing the description of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fluidnb.errors import OpTypeError
from fluidnb.initializer import default_bias_initializer, default_weight_initializer
from fluidnb.net.net_pb2 import NetDesc, OpDef
from fluidnb.program import Program
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.wire import parse
from fluidnb.values.dtypes import VarType, np_dtype, var_type

#: The attributes of an operator by name.
OprAttr = dict[str, Any]


def op_def(
    type: str,
    inputs: Mapping[str, str | Sequence[str]] | None = None,
    outputs: Mapping[str, str | Sequence[str]] | None = None,
    attrs: OprAttr | None = None,
) -> OpDef:
    """An operator of a network.

    Args:
        type: operator type.
        inputs: slot -> name or names.
        outputs: the same for outputs.
        attrs: attribute -> value.

    Returns:
        The message.

    Example:
        >>> op_def("scale", {"X": "x"}, {"Out": "y"}, {"scale": 2.0}).outputs[0].arguments
        ['y']
    """

    def rows(slots: Mapping[str, str | Sequence[str]] | None) -> dict[str, Sequence[str]]:
        return {slot: [names] if isinstance(names, str) else names for slot, names in (slots or {}).items()}

    return OpDef.FromString(OpDesc(type, rows(inputs), rows(outputs), attrs).serialize_to_string())


def var_def(
    name: str, shape: Sequence[int] = (), dtype: Any = "float32", parameter: bool = False, lod_level: int = 0
) -> pb2.VarDesc:
    """A variable of a network: a tensor.

    Args:
        name: its name.
        shape: sizes, -1 for one that is not known.
        dtype: dtype in any spelling.
        parameter: whether it persists and training changes it.
        lod_level: levels of sequence nesting.

    Returns:
        The message.

    Example:
        >>> var_def("w", [13, 1], parameter=True).persistable
        True
    """
    var = VarDesc(name)
    var.set_shape(shape)
    var.set_dtype(var_type(dtype))
    var.set_lod_level(lod_level)
    if parameter:
        var.set_persistable(True)
        var.set_is_parameter(True)
    return var.pb


def net_desc(desc: NetDesc | bytes | None = None) -> NetDesc:
    """The description that a caller means.

    Args:
        desc: a NetDesc, the bytes of one, or None for an empty one.

    Returns:
        A copy.

    Raises:
        OpTypeError: it is something else.
        OpValueError: the bytes are no NetDesc.

    Example:
        >>> net_desc().model_type
        0
    """
    if isinstance(desc, bytes):
        return parse(NetDesc, desc, "net_desc")  # type: ignore[no-any-return]
    if desc is not None and not isinstance(desc, NetDesc):
        raise OpTypeError(
            "A network is built from a NetDesc.", expected="fluid.net.NetDesc(ops=[...], vars=[...])",
            received=f"{desc!r} ({type(desc).__name__})"[:200],
        )  # fmt: skip
    made = NetDesc()
    if desc is not None:
        made.CopyFrom(desc)
    return made


def declare(block: BlockDesc, variables: Iterable[pb2.VarDesc]) -> None:
    """Declare variables of a network in a block.

    Args:
        block: the block.
        variables: the messages; they are copied.

    Raises:
        OpValueError: two have the same name.
    """
    for var in variables:
        block.add_var(VarDesc.parse_from_string(var.SerializeToString()))


def startup_program(desc: NetDesc) -> Program:
    """The program that initializes a network's persistable variables.

    Args:
        desc: the network. What its ``init_ops`` do not write gets Fluid's defaults: Xavier for parameters of two and
            more dimensions, zeros for the rest.

    Returns:
        The program.

    Example:
        >>> net = NetDesc(vars=[var_def("w", [13, 1], parameter=True), var_def("b", [1], parameter=True)])
        >>> [op.type for op in startup_program(net).global_block().ops]
        ['uniform_random', 'fill_constant']
    """
    program = Program()
    block = program.global_block()
    declare(block.desc, [var for var in desc.vars if var.persistable])
    for op in desc.init_ops:
        block.put_desc(OpDesc.parse_from_string(op.SerializeToString()))
    written = {name for op in block.desc.ops for name in op.output_arg_names()}
    for variable in list(block.vars.values()):
        if variable.name not in written and variable.desc.type() == VarType.LOD_TENSOR:
            weight = len(variable.shape) > 1 and np_dtype(variable.dtype).kind == "f"
            (default_weight_initializer() if weight else default_bias_initializer())(variable, block)
    return program
