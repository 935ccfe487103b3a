"""An estimate of the memory that a program needs, before it runs."""

import math

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.values.dtypes import VarType, np_dtype

__all__ = ["memory_usage"]


@checked
def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """The memory of all variables that the operators of block 0 write, if none shared memory.

    `%fluid memory` and `Program.memory_plan` give what a run really takes, which is less.

    Args:
        batch_size: the number of rows that replaces -1 in a shape.

    Returns:
        (lower bound, upper bound, unit): 5 and 10 percent more than the sum, in "B", "KB" or "MB".

    Example:
        >>> x = fluid.layers.data("x", [1024])
        >>> y = fluid.layers.relu(x)
        >>> low, high, unit = memory_usage(fluid.default_main_program(), batch_size=10)
        >>> round(low, 1), round(high, 1), unit
        (42.0, 44.0, 'KB')
    """
    if batch_size <= 0:
        raise OpValueError("batch_size should be positive.", received=batch_size)
    block = program.global_block()
    written = dict.fromkeys(name for op in block.ops for name in op.output_arg_names)
    total = 0.0
    for name in written:
        x = block.vars.get(name)
        if x is not None and x.type == VarType.LOD_TENSOR:
            sizes = [batch_size * -size if size < 0 else size for size in x.shape]
            total += math.prod(sizes) * np_dtype(x.dtype).itemsize
    unit = "B"
    for larger in ("KB", "MB"):
        if total > 1024:
            total, unit = total / 1024, larger
    return total * 1.05, total * 1.1, unit
