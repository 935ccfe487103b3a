"""The gradient of the core's operators and networks, as an operator or network itself (versions 0.10 and 0.11)."""

from collections import Counter
from collections.abc import Collection

from fluidnb.core.net import Net
from fluidnb.core.operator import Operator
from fluidnb.op import EMPTY, GRAD, OpDesc, check_desc, get_op, make_grad


def backward(op: Operator | Net, no_grad_set: Collection[str] = ()) -> Operator | Net:
    """The gradient of an operator or a network; ``core.Operator.backward``.

    The gradients of its outputs are to be put into the scope as ``name@GRAD``. Where several operators read a variable,
    their gradients are summed.

    Returns:
        An operator where one does it all, else a sealed network.
    """
    unwanted = {name.removesuffix(GRAD) for name in no_grad_set}
    descs = [grad for desc in reversed(_flat(op)) for grad in make_grad(desc, unwanted)]
    if len(descs) == 1 and isinstance(op, Operator):
        return Operator(descs[0])
    net = Net.create()
    for desc in _summed(descs):
        net.append_op(Operator(desc))
    net.complete_add_op()
    return net


def _flat(op: Operator | Net) -> list[OpDesc]:
    """The descriptions of all operators, in the order in which they run."""
    return [op.desc] if isinstance(op, Operator) else [desc for inner in op.ops for desc in _flat(inner)]


def _summed(descs: list[OpDesc]) -> list[OpDesc]:
    """The same operators with duplicate gradients renamed, and the sums that accumulate them."""
    writers = Counter(name for desc in descs for name in desc.output_arg_names() if name != EMPTY)
    parts: dict[str, list[str]] = {}
    result: list[OpDesc] = []
    for desc in descs:
        result.append(desc)
        for name in dict.fromkeys(desc.output_arg_names()):
            if writers[name] < 2:
                continue
            row = parts.setdefault(name, [])
            row.append(f"{name}@RENAME@{len(row)}")
            desc.rename_output(name, row[-1])
            if len(row) == writers[name]:
                total = OpDesc("sum", {"X": row}, {"Out": [name]})
                check_desc(get_op("sum"), total)
                result.append(total)
    return result
