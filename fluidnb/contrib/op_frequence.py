"""Fluid's ``contrib.op_frequence`` module: how often operators, and pairs of operators, occur in a program."""

from collections import Counter

from fluidnb.arguments import checked
from fluidnb.program import Program

__all__ = ["op_freq_statistic"]

Counts = list[tuple[str, int]]


@checked
def op_freq_statistic(program: Program) -> tuple[Counts, Counts]:
    """Counts the operators of block 0, and the pairs of which one reads what the other wrote.

    What writes nothing but parameters, as optimizers do, is not counted.

    Returns:
        (type, count) of operators and (``"writer->reader"``, count) of pairs, most frequent first.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> y = fluid.layers.relu(fluid.layers.relu(fluid.layers.tanh(x)))
        >>> op_freq_statistic(fluid.default_main_program())
        ([('relu', 2), ('tanh', 1)], [('tanh->relu', 1), ('relu->relu', 1)])
    """
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
