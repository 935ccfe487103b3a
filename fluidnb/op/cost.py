"""Cost of an operator: multiply-adds, and bytes read and written, from the shapes of its operands.

``@op(cost=...)`` declares the multiply-adds as a formula, for example ``"Output * Filter[1:]"`` or ``"8 * Param"``: a
sum of products of numbers, slots (their number of elements), sizes of a slot's axes (``Filter[1:]``; a bound may be an
integer attribute) and attributes (the product of a list). A function of a context returns the number instead, or a
`Cost` where the operator does not read or write whole operands. A gradient operator costs as much as its forward
operator for each gradient that it computes, twice as much at most. An addition, a comparison or a function of one
element counts as one multiply-add.
"""

import math
import re
from typing import NamedTuple

from fluidnb.errors import OpValueError, near
from fluidnb.op.compile_context import CompileContext, Spec
from fluidnb.op.context import EMPTY, GRAD, Context
from fluidnb.op.define import OpDef, get_op
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType

_FACTOR = re.compile(r"(\w+)(?:\[(-?\w*):(-?\w*)\])?")


class Cost(NamedTuple):
    """Cost of one call of an operator."""

    multiply_adds: int  # multiplications with an addition each
    read: int | None = None  # bytes that it reads; None for all of its inputs
    written: int | None = None  # bytes that it writes; None for all of its outputs
    exact: bool = True  # whether all sizes are known; an unknown size counts as 1


class _CostContext(CompileContext):
    """The context of an operator in which unknown sizes are 1."""

    __slots__ = ("exact",)

    def __init__(self, definition: OpDef, desc: OpDesc, block: BlockDesc) -> None:
        super().__init__(definition, desc, block)
        self.exact = True

    def _spec(self, var: VarDesc) -> Spec:
        spec = super()._spec(var)
        self.exact = self.exact and min(spec.shape, default=0) >= 0
        return Spec(tuple(max(n, 1) if n < 0 else n for n in spec.shape), spec.dtype)


def elements(c: Context, slot: str) -> int:
    """The number of elements of all operands of a slot."""
    return sum(math.prod(x.shape) for x in c.all(slot))


def cost_of(desc: OpDesc, block: BlockDesc, forward: OpDesc | None = None) -> Cost:
    """The cost of one call of an operator of a program, without the blocks that it runs.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.data("x", [8, 3], append_batch_size=False))
        >>> cost_of(y.op.desc, y.block.desc)
        Cost(multiply_adds=24, read=96, written=96, exact=True)
    """
    definition = get_op(desc.optype)
    c = _CostContext(definition, desc, block)
    cost = _declared(definition, c)
    if cost is None and definition.is_grad:
        cost, c = _of_gradient(desc, block, forward)
    cost = cost or Cost(0)
    read, written, exact = _bytes(_CostContext(definition, desc, block))
    return Cost(
        cost.multiply_adds, read if cost.read is None else cost.read,
        written if cost.written is None else cost.written, exact and c.exact,
    )  # fmt: skip


def _declared(definition: OpDef, c: Context) -> Cost | None:
    """The cost that an operator declares; None without."""
    rule = definition.cost
    if rule is None:
        return None
    if isinstance(rule, str):
        return Cost(sum(math.prod(_factor(f, c) for f in term.split(" * ")) for term in rule.split(" + ")))
    cost = rule(c)
    return cost if isinstance(cost, Cost) else Cost(int(cost))


def _factor(text: str, c: Context) -> int:
    """The value of one factor of a formula."""
    match = _FACTOR.fullmatch(text)
    if text.isdecimal():
        return int(text)
    definition = c.definition
    slot = "" if match is None else match[1]
    if slot + GRAD in c.inputs and slot not in c.inputs:  # of a gradient operator, whose outputs are not at hand
        slot += GRAD
    if match is not None and (match[1] in definition.inputs or match[1] in definition.outputs):
        if match[2] is None:
            return elements(c, slot)
        first, last = (int(c.attr(n)) if n in definition.attrs else int(n) if n else None for n in match.groups()[1:])
        operand = c[slot]
        return math.prod(() if operand is None else operand.shape[first:last])
    if text in definition.attrs:
        value = c.attr(text)
        return math.prod(value) if isinstance(value, list | tuple) else int(value)
    raise OpValueError(
        f"{text} of the cost of {definition.type} is unknown.",
        expected="a number, a slot, a slot[a:b] or an attribute",
        received=str(definition.cost), hint=near(text, (*definition.inputs, *definition.outputs, *definition.attrs)),
    )  # fmt: skip


def _of_gradient(desc: OpDesc, block: BlockDesc, forward: OpDesc | None) -> tuple[Cost | None, _CostContext]:
    """The cost of a gradient operator from that of its forward operator; its own inputs serve where that is unknown."""
    base = get_op(desc.optype.removesuffix("_grad")) if forward is None else get_op(forward.optype)
    c = _CostContext(base, forward or desc, block)
    if base.is_grad:
        once, c = _of_gradient(forward or desc, block, None)
    else:
        once = _declared(base, c)
    count = sum(any(n != EMPTY for n in names) for slot, names in desc.outs.items() if slot.endswith(GRAD))
    return (None if once is None else Cost(once.multiply_adds * min(count, 2))), c


def _bytes(c: _CostContext) -> tuple[int, int, bool]:
    """Bytes of the inputs and of the outputs of an operator, each variable once, and whether all are known."""
    known = True
    totals = []
    for slots in (c.inputs, c.outputs):
        total = 0
        for name in dict.fromkeys(n for names in slots.values() for n in names if n != EMPTY):
            var = c.block.find_var_recursive(name)
            if var is None or var.type() != VarType.LOD_TENSOR:
                known = known and (var is None or var.type() != VarType.SELECTED_ROWS)
                continue
            spec = c._spec(var)
            total += math.prod(spec.shape) * (spec.dtype.itemsize if spec.dtype is not None else 0)
        totals.append(total)
    return totals[0], totals[1], known and c.exact
