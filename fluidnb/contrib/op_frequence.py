"""Fluid's ``contrib.op_frequence`` module: how often operators, and pairs of operators, occur in a program."""

from __future__ import annotations

from collections import Counter

from fluidnb.errors import OpTypeError
from fluidnb.program import Program

__all__ = ["op_freq_statistic"]

Counts = list[tuple[str, int]]


def op_freq_statistic(program: Program) -> tuple[Counts, Counts]:
    """Counts the operators of block 0, and the pairs of which one reads what the other wrote.

    What writes nothing but parameters, as optimizers do, is not counted.

    Args:
        program: the program.

    Returns:
        (type, count) of operators and (``"writer->reader"``, count) of pairs, most frequent first.

    Raises:
        OpTypeError: not a Program.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> y = fluid.layers.relu(fluid.layers.relu(fluid.layers.tanh(x)))
        >>> op_freq_statistic(fluid.default_main_program())
        ([('relu', 2), ('tanh', 1)], [('tanh->relu', 1), ('relu->relu', 1)])

    Source: Fluid's contrib.op_freq_statistic.
    """
    if not isinstance(program, Program):
        raise OpTypeError("op_freq_statistic takes a Program.", expected="a Program", received=type(program).__name__)
    block = program.global_block().desc
    parameters = {name for name, var in block.vars.items() if var.is_parameter()}
    single: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    writer: dict[str, str] = {}
    for op in block.ops:
        for name in op.input_arg_names():
            if name in writer and name not in parameters:
                pairs[f"{writer[name]}->{op.optype}"] += 1
        written = [name for name in op.output_arg_names() if name not in parameters]
        writer.update(dict.fromkeys(op.output_arg_names(), op.optype))
        if written:
            single[op.optype] += 1
    return single.most_common(), pairs.most_common()
