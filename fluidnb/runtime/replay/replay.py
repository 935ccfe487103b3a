"""The compiled run: segments in order. Control operators run to their end here; the interpreter pushes a frame."""

from itertools import count
from typing import Any

from fluidnb.errors import FluidError
from fluidnb.memory import flags
from fluidnb.op import Control, Loop
from fluidnb.runtime.compile.lowering import LoweredBlock
from fluidnb.runtime.kernel_errors import cause, failed
from fluidnb.runtime.observers import observers
from fluidnb.runtime.replay.replay_memory import ReplayMemory
from fluidnb.runtime.replay.segment import Segment
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import on_host

#: More iterations than any loop makes.
_NO_LIMIT = 1 << 62


def run_segments(segment: Segment) -> Segment:
    """Run a segment and those that follow, to the end of the block; gives the one with the final variables."""
    segment.run()
    run = segment.bound.run
    while segment.guard is not None:
        if run.stop:
            run.check()
        try:
            key = segment.guard()
        except Exception as e:
            found = segment.binder.refusal(e) if segment.binder else e
            raise failed(found, segment.block.ops[segment.end], segment.scope) from cause(e)
        follower = segment.next.get(key)
        if follower is None:
            segment = segment.child(key)
        else:
            segment = follower
            segment.run()
    if segment.updates is not None:
        segment.updates.run()
    return segment


def root_segment(bound: ReplayMemory, block: LoweredBlock, scope: Scope) -> Segment:
    """The first segment of a block, not bound yet."""
    return Segment(bound, block, scope, 0, drain)


def drain(control: Control) -> None:
    """Run a control operator to its end."""
    bound: ReplayMemory = control.executor
    lowered, clock = bound.lowered, bound.clock
    block = lowered.blocks[control.block_index]
    for tensor, array, lod in control.scope.moved.values():  # a nested block may change them, or may not run
        tensor.array, tensor.lod_ = array, lod
    control.begin()
    saved = control.records and lowered.steps.needed(block.index)
    outer_path, random, arrays = clock.path, block.index in lowered.random, lowered.inner_arrays[block.index]
    k = 0
    try:
        if control.only_copies and not observers:
            from fluidnb.runtime.replay.unrolled_loop import run_unrolled  # few programs have such

            if run_unrolled(control, bound, saved):
                return
        while True:
            if k < 2 and not saved and _run_bare(control, bound, block, k):  # the first iteration may have bound it
                return
            if random:
                clock.path = outer_path * 1000003 + k + 1
            parent = control.enter(k)
            if parent is None:
                return
            if block.index != control.block_index:  # of a parameter server, whose blocks draw no random numbers
                block = lowered.blocks[control.block_index]
                arrays = lowered.inner_arrays[block.index]
            key = block.index, id(parent)
            body = control.roots.get(key)
            if body is None or block.index in lowered.movers:
                body = control.roots[key] = _body(control, block, parent)
            for array in arrays:
                array.clear()
            control.prepare(k, body.scope)
            try:
                bound.run.check()
                end = run_segments(body).scope
                control.leave(k, end)
            except FluidError as e:
                e.iteration = control.iteration(k)
                raise
            except KeyboardInterrupt:
                bound.run.iteration = control.iteration(k)
                raise
            if saved:
                control.steps.append(lowered.steps.save(block.index, end))
            k += 1
    finally:
        clock.path = outer_path


def _run_bare(control: Control, bound: ReplayMemory, block: LoweredBlock, k: int) -> bool:
    """Run a loop from iteration ``k`` on without bookkeeping; False where its body is not bound or has a guard."""
    body = control.roots.get((block.index, id(control.scope)))
    if body is None or body.guard is not None or block.index in bound.lowered.random or not isinstance(control, Loop):
        return False
    if bound.lowered.inner_arrays[block.index] or block.index in bound.lowered.movers:
        return False
    condition, body_run, run = control.condition.value.array, body.run, bound.run
    more = condition.item if bound.place_kind == "cpu" else lambda: on_host(condition).item()
    limit = flags.values["max_loop_iterations"]
    try:
        if body.code is not None and body.code.loop is not None and _is_native(body, condition):
            done, failed = body.code.loop.run((limit or _NO_LIMIT) - k, run)
            k += done
            if failed >= 0:  # the call raises the error
                body_run(failed)
                k += 1
            run.check()
        begun = k
        for k in range(begun, limit) if limit else count(begun):  # noqa: B007
            if not more():
                return True
            body_run()
            if run.stop:  # Ctrl-C came between two iterations, when no list of calls was under way
                run.check()
    except FluidError as e:
        e.iteration = k
        raise
    except KeyboardInterrupt:
        run.iteration = k
        raise
    if more():
        raise control.endless(limit)
    return True


def _is_native(body: Segment, condition: Any) -> bool:
    """Whether a run may make all iterations in C: nothing watches its operators."""
    assert body.code is not None and body.code.loop is not None
    watched = observers or body.bound.lowered.check_nan or flags.values["native"] == "off"
    return not watched and body.code.loop.condition is condition


def _body(control: Control, block: LoweredBlock, parent: Scope) -> Segment:
    """The bound body for a control operator, shared by all bindings that see and give it the same variables."""
    lowered = control.executor.lowered
    cells = [parent.cell(name)[0] for name in lowered.outer[block.index]]
    around = id(parent) if block.index in lowered.movers else None
    arrays = [getattr(cell.value, "array", cell.value) for cell in cells]
    lods = [getattr(cell.value, "lod_", ()) for cell in cells]
    key = (block.index, around, control.inputs_key, tuple(zip(map(id, arrays), lods, strict=True)))
    body: Segment | None = lowered.bodies.get(key)
    if body is None:
        lowered.kept_alive.append(arrays)
        body = lowered.bodies[key] = root_segment(control.executor, block, Scope(parent, block))
        if isinstance(control, Loop):
            body.condition = control.condition.value.array
        return body
    for name, cell in zip(lowered.outer[block.index], cells, strict=True):
        if cell.value is None and body.scope.parent is not None:  # the body created it when it was bound
            cell.value = body.scope.parent.cell(name)[0].value
    return body
