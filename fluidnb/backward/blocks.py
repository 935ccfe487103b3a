"""Backward through an operator that runs a block: a gradient block for its block, and a gradient operator that runs it.

A gradient that *arrives* at a variable which the block writes is rewritten by the gradient block itself: it is
propagated where an iteration leaves the variable alone. So are values carried from one iteration to the next, and
arrays, whose elements are separate gradients. A variable that the block only *reads* has a gradient inside the block,
which the operator sums over iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fluidnb.backward.path import is_array
from fluidnb.op import EMPTY, GRAD, check_desc, get_op, make_grad
from fluidnb.proto.desc import BlockDesc, OpDesc

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

#: Suffix of the names of copies of counters.
KEPT = "@KEPT"
#: Operators that run a block through which gradients go.
RUN_BLOCKS = frozenset({"while", "conditional_block", "recurrent"})


def through(walk: Walk, position: int, op: OpDesc, arrived: dict[str, str]) -> None:
    """Add the gradient of an operator that runs a block; ``arrived``: variable written -> name of its gradient."""
    if op.optype != "recurrent":
        _block(walk, position, op, arrived)
    elif arrived:
        _recurrent(walk, op, arrived)


def restored(walk: Walk, op: OpDesc, name: str) -> bool:
    """Whether the gradient of an operator undoes everything that the operator does to a variable."""
    if adds_in_place(op):
        return id(op) in walk.undone
    inner = walk.inner_of.get(id(op))
    if inner is None or name in inner.replaced:
        return False
    return all(restored(inner, o, name) for o in inner.block.ops if name in o.output_arg_names())


def counted(block: BlockDesc, name: str) -> bool:
    """Whether a block, with those inside, does nothing to a variable but add numbers in place."""
    return all(adds_in_place(op) or _runs_counting(op, name) for op in block.ops if name in op.output_arg_names())


def undo(walk: Walk, position: int, name: str) -> bool:
    """Add the operator that undoes a counter's increment, if there can be one."""
    op = walk.block.ops[position]
    if not adds_in_place(op):
        if id(op) in walk.inner_of or not _runs_counting(op, name):
            return False
        _block(walk, position, op, {}, counts=True)
        return restored(walk, op, name)
    if id(op) not in walk.undone:
        walk.undone.add(id(op))
        (back,) = make_grad(op)
        check_desc(get_op(back.optype), back)
        walk.keep(op.output_arg_names()[0])
        walk.ops.append(back)
    return True


def adds_in_place(op: OpDesc) -> bool:
    """Whether an operator adds a number to a variable in place."""
    return op.optype == "increment" and op.ins["X"] == op.outs["Out"]


def counts_for_all(walk: Walk, name: str) -> bool:
    """Whether every iteration of a walk's block, and nothing else, counts on a variable of the blocks around."""
    return not walk.block.has_var(name) and counted(walk.block, name)


def _runs_counting(op: OpDesc, name: str) -> bool:
    """Whether an operator runs a block that does nothing to a variable but count, and whose steps are kept."""
    if "sub_block" not in op.attrs or op.optype == "recurrent" or op.attrs.get("is_test", False):
        return False
    assert op.block is not None and op.block.program is not None
    return counted(op.block.program.blocks[op.attrs["sub_block"]], name)


def _block(walk: Walk, position: int, op: OpDesc, arrived: dict[str, str], counts: bool = False) -> None:
    forward = _forward(walk, op)
    (gradient,) = make_grad(op)
    slots = [slot.removesuffix(GRAD) for slot in gradient.outs]
    reads = [n for slot in slots for n in op.ins[slot] if arrived and walk.wanted(n)]
    writes = set(op.output_arg_names())
    counts = counts or (walk.nested and any(counts_for_all(walk, n) and _runs_counting(op, n) for n in writes))
    if not counts and not reads and not any(_lives_before(walk, position, n) for n in arrived):
        return
    carried = dict(arrived)
    for name in dict.fromkeys(reads):
        if name in carried:
            continue
        if is_array(walk.block, name):
            carried[name] = walk.array_gradient(name)
        elif name in writes and op.optype == "while":  # the last value of the loop is not used, earlier ones are
            carried[name] = walk.zeros(name)
    inner = walk.inside(forward, outer=carried)
    for name, outside in carried.items():
        inner.hand_in(name, outside)
    inner.run()
    for name, outside in carried.items():
        inner.hand_out(name, outside)
    sums = [n for n in dict.fromkeys(reads) if n not in carried and inner.finish(n)]
    if not inner.ops:
        return
    handed_in = [carried[n] for n in dict.fromkeys(op.outs["Out"]) if n in carried]
    gradient.remove_input("Out" + GRAD)
    if handed_in:
        gradient.set_input("Out" + GRAD, handed_in)
    gradient.set_attr("original_output_grad", handed_in)
    listed: set[str] = set()
    # rows that decide and are read appear in two slots; their gradient counts once, and not where they decide
    for slot in sorted(slots, key="Cond".__eq__):
        gradients = [carried.get(n, n + GRAD if n in sums else EMPTY) for n in op.ins[slot]]
        gradient.set_output(slot + GRAD, [EMPTY if n in listed else n for n in gradients])
        listed.update(gradients)
    for name in writes:
        if any(restored(inner, o, name) for o in forward.ops if name in o.output_arg_names()):
            walk.keep(name)
    _add(walk, op, gradient, inner, sums)
    for name, handed in carried.items():
        walk.pass_on(name, handed)


def _recurrent(walk: Walk, op: OpDesc, arrived: dict[str, str]) -> None:
    reads = [n for n in dict.fromkeys(op.input_arg_names()) if walk.wanted(n)]
    if not reads:
        return
    states: list[str] = op.attrs.get("states", [])
    previous: list[str] = op.attrs.get("ex_states", [])
    arrays = [n for n in op.ins.get("parameters", []) if n in reads and is_array(walk.block, n)]
    carried = {n: walk.array_gradient(n) for n in arrays}
    given = [n + GRAD for n in dict.fromkeys((*arrived, *states))]
    inner = walk.inside(_forward(walk, op), outer=carried, given=given, also=previous)
    for name in dict.fromkeys((*arrived, *states)):
        inner.hand_in(name, name + GRAD)
    for name, outside in carried.items():
        inner.hand_in(name, outside)
    inner.run()
    for name, outside in carried.items():
        inner.hand_out(name, outside)
    finished = {n for n in dict.fromkeys((*previous, *reads)) if n not in carried and inner.finish(n)}
    (gradient,) = make_grad(op, [n for n in op.input_arg_names() if n not in reads])
    inside = {"inputs": op.ins["inputs"], "initial_states": previous, "parameters": op.ins.get("parameters", [])}
    for slot, names in inside.items():  # what the step net reads beside the way to its outputs has no gradient there
        rows = zip(names, gradient.outs.get(slot + GRAD, []), strict=False)
        gradient.set_output(slot + GRAD, [carried.get(n, g if n in finished else EMPTY) for n, g in rows])
    if set(states) & set(op.outs["outputs"]):
        gradient.set_attr("sum_states", True)
    walk.arrive(op, gradient, arrived)
    _add(walk, op, gradient, inner, [n for n in reads if n not in carried])
    for name, handed in carried.items():
        walk.pass_on(name, handed)


def _forward(walk: Walk, op: OpDesc) -> BlockDesc:
    program = walk.block.program
    assert program is not None
    block: BlockDesc = program.blocks[op.attrs["sub_block"]]
    return block


def _lives_before(walk: Walk, position: int, name: str) -> bool:
    """Whether a variable may have a value that needs a gradient before an operator writes it."""
    if not walk.block.has_var(name):
        return True
    return walk.wanted(name) and any(name in o.output_arg_names() for o in walk.block.ops[:position])


def _add(walk: Walk, op: OpDesc, gradient: OpDesc, inner: Walk, sums: Iterable[str]) -> None:
    if "op_namescope" in op.attrs:
        gradient.set_attr("op_namescope", op.attrs["op_namescope"])
    walk.inner[id(gradient)] = walk.inner_of[id(op)] = inner
    walk.add(gradient, {n + GRAD: n for n in sums})
