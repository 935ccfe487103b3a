"""The operator that initializes a parameter, from ``init_attr={"type": ..., ...}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import get_op
from fluidnb.program.parameter import Parameter
from fluidnb.utils.source_location import capture


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
