"""Fluid's ``framework`` module: programs, blocks, operators, variables, default programs and guards.

Example:
    >>> from fluidnb import framework
    >>> p = framework.Program()
    >>> before = framework.switch_main_program(p)
    >>> framework.default_main_program() is p, framework.switch_main_program(before) is p
    (True, True)
"""

from __future__ import annotations

from typing import Any

from fluidnb import core
from fluidnb.absent import refusal
from fluidnb.errors import near
from fluidnb.op import get_all_op_protos, get_op, op_proto
from fluidnb.program import (
    CONTROL_DEP_VAR_PREFIX,
    EMPTY_VAR_NAME,
    GRAD_VAR_SUFFIX,
    TEMP_VAR_NAME,
    ZERO_VAR_SUFFIX,
    Block,
    BlockGuard,
    Operator,
    OpRole,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    get_var,
    grad_var_name,
    name_scope,
    program_guard,
    switch_main_program,
    switch_startup_program,
    unique_name,
)
from fluidnb.program.printing import proto_text
from fluidnb.proto.framework_pb2 import OpProto
from fluidnb.values import VarType, is_floating, var_type
from fluidnb.values.place_lists import cpu_places, cuda_pinned_places, cuda_places


def convert_np_dtype_to_dtype_(np_dtype: Any) -> VarType:
    """The VarType number of a numpy dtype, a name or a number.

    Example:
        >>> convert_np_dtype_to_dtype_("int64")
        <VarType.INT64: 3>
    """
    return var_type(np_dtype)


def dtype_is_floating(dtype: Any) -> bool:
    """Whether elements of a dtype are floating-point numbers.

    Example:
        >>> dtype_is_floating("float16"), dtype_is_floating(VarType.INT64)
        (True, False)
    """
    return is_floating(dtype)


class OpProtoHolder:
    """The operator protos by type; there is one holder.

    Example:
        >>> [slot.name for slot in OpProtoHolder.instance().get_op_proto("mul").inputs]
        ['X', 'Y']
    """

    _instance: OpProtoHolder | None = None

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """The one holder."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def get_op_proto(self, type: str) -> OpProto:
        """The proto of an operator."""
        return op_proto(get_op(type))


def in_dygraph_mode() -> bool:
    """Whether layers compute at once instead of writing a program: never here.

    Example:
        >>> fluid.in_dygraph_mode()
        False
    """
    return False


#: Fluid's other names of the same, and what there is not: programs as graphs of the C++ library's passes.
_debug_string_, _get_var = proto_text, get_var
IrGraph = refusal(
    "fluid.framework.IrGraph", "it holds a program for the passes of Paddle's C++ library",
    "program.block(0).ops and .vars are the graph; fluid.transpiler rewrites it.",
)  # fmt: skip

#: What the default programs were called as variables of this module; another program may be the default tomorrow.
_DEFAULTS = {
    "_main_program_": default_main_program,
    "_startup_program_": default_startup_program,
    "g_main_program": default_main_program,
    "g_startup_program": default_startup_program,
}


def __getattr__(name: str) -> Any:
    if name in _DEFAULTS:
        return _DEFAULTS[name]()
    raise AttributeError(f"module 'fluidnb.framework' has no attribute '{name}'. {near(name, __all__)}".rstrip())


__all__ = [
    "CONTROL_DEP_VAR_PREFIX", "EMPTY_VAR_NAME", "GRAD_VAR_SUFFIX", "TEMP_VAR_NAME", "ZERO_VAR_SUFFIX", "Block",
    "BlockGuard", "IrGraph", "OpProtoHolder", "OpRole", "Operator", "Parameter", "Program", "Variable",
    "convert_np_dtype_to_dtype_", "core", "cpu_places", "cuda_pinned_places", "cuda_places", "default_main_program",
    "default_startup_program", "dtype_is_floating", "get_all_op_protos", "get_var", "grad_var_name", "in_dygraph_mode",
    "name_scope", "program_guard", "switch_main_program", "switch_startup_program", "unique_name",
]  # fmt: skip
