"""Hooks of descs, set by `fluidnb.op`: attribute checks, shape inference and type inference.

Example:
    >>> from fluidnb.proto import hooks
    >>> callable(hooks.check_attrs)
    True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc
    from fluidnb.proto.op_desc import OpDesc

#: ``check_attrs(op)`` converts the attributes of an operation, and writes the defaults of those that were left out.
check_attrs: Callable[[OpDesc], None] | None = None
#: ``infer_shape(op, block)`` writes shapes, dtypes and LoD levels of what an operation writes.
infer_shape: Callable[[OpDesc, BlockDesc], None] | None = None
#: ``infer_var_type(op, block)`` writes the types (tensor or rows) of the variables that an operation writes.
infer_var_type: Callable[[OpDesc, BlockDesc], None] | None = None
