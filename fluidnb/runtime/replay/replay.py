"""The replay: runs a bound plan. It drains control operators; the machine pushes a frame for them instead."""

from __future__ import annotations

from itertools import count
from typing import Any

from fluidnb.errors import FluidError
from fluidnb.memory import flags
from fluidnb.op import Control, Loop
from fluidnb.runtime.compile.lowering import LoweredBlock
from fluidnb.runtime.kernel_errors import cause, failed
from fluidnb.runtime.replay.replay_memory import ReplayMemory
from fluidnb.runtime.replay.segment import Segment
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import on_host


def walk(node: Segment) -> Segment:
    """Run a node and what follows it, up to the end of the block.

    Args:
        node: the block's first node.

    Returns:
        The last node; its scope has the variables as they are at the end.
    """
    node.run()
    run = node.bound.run
    while node.guard is not None:
        if run.stop:
            run.check()
        try:
            key = node.guard()
        except Exception as e:
            raise failed(e, node.block.ops[node.end], node.scope) from cause(e)
        follower = node.next.get(key)
        if follower is None:
            node = node.child(key)
        else:
            node = follower
            node.run()
    return node


def root_node(bound: ReplayMemory, block: LoweredBlock, scope: Scope) -> Segment:
    """The first node of a block, not bound yet.

    Args:
        bound: the memory policy.
        block: the block.
        scope: where its variables are.

    Returns:
        The node.
    """
    return Segment(bound, block, scope, 0, drain)


def drain(control: Control) -> None:
    """Run a control operator to its end.

    Args:
        control: what its kernel returned.
    """
    bound: ReplayMemory = control.walker
    plan, clock = bound.plan, bound.clock
    block = plan.blocks[control.block_index]
    for tensor, array, lod in control.scope.moved.values():  # a block inside may leave them otherwise, or may not run
        tensor.array, tensor.lod_ = array, lod
    control.begin()
    saved = control.records and plan.steps.needed(block.index)
    if not saved and _run_bare(control, bound, block):
        return
    outer_path, random, arrays = clock.path, block.index in plan.random, plan.inner_arrays[block.index]
    k = 0
    try:
        while True:
            if random:
                clock.path = outer_path * 1000003 + k + 1
            parent = control.enter(k)
            if parent is None:
                return
            body = control.roots.get(id(parent))
            if body is None or block.index in plan.movers:
                body = control.roots[id(parent)] = _body(control, block, parent)
            for array in arrays:
                array.clear()
            control.prepare(k, body.scope)
            try:
                bound.run.check()
                end = walk(body).scope
                control.leave(k, end)
            except FluidError as e:
                e.iteration = control.iteration(k)
                raise
            except KeyboardInterrupt:
                bound.run.iteration = control.iteration(k)
                raise
            if saved:
                control.steps.append(plan.steps.save(block.index, end))
            k += 1
    finally:
        clock.path = outer_path


def _run_bare(control: Control, bound: ReplayMemory, block: LoweredBlock) -> bool:
    """A loop whose body is bound, has no guard and draws nothing needs no bookkeeping: it is run here."""
    body = control.roots.get(id(control.scope))
    if body is None or body.guard is not None or block.index in bound.plan.random or not isinstance(control, Loop):
        return False
    if bound.plan.inner_arrays[block.index] or block.index in bound.plan.movers:
        return False
    condition, run, held = control.condition.value.array, body.run, bound.run
    more = condition.item if bound.place_kind == "cpu" else lambda: on_host(condition).item()
    limit, k = flags.values["max_loop_iterations"], 0
    try:
        for k in range(limit) if limit else count():  # noqa: B007
            if not more():
                return True
            run()
            if held.stop:  # Ctrl-C came between two iterations, when no list of calls was under way
                held.check()
    except FluidError as e:
        e.iteration = k
        raise
    except KeyboardInterrupt:
        held.iteration = k
        raise
    if more():
        raise control.endless(limit)
    return True


def _body(control: Control, block: LoweredBlock, parent: Scope) -> Segment:
    """The bound body for a control operator, shared by all bindings that see and give it the same variables."""
    plan = control.walker.plan
    cells = [parent.cell(name)[0] for name in plan.outer[block.index]]
    around = id(parent) if block.index in plan.movers else None
    key = (block.index, around, control.given, tuple((id(_held(c)), getattr(c.value, "lod_", ())) for c in cells))
    found: Segment | None = plan.bodies.get(key)
    if found is None:
        plan.held.append([_held(c) for c in cells])
        found = root_node(control.walker, block, Scope(parent, block))
        plan.bodies[key] = found
        return found
    for name, cell in zip(plan.outer[block.index], cells, strict=True):
        made = found.scope.parent.cell(name)[0] if found.scope.parent is not None else cell
        if cell.value is None:  # an outer variable that the body itself made when it was bound
            cell.value = made.value
    return found


def _held(cell: Any) -> Any:
    return getattr(cell.value, "array", cell.value)
