"""Groups: launches in a row that compute element by element, as one launch of a kernel made for them.

Values go from step to step in registers, and what no later call reads is not written. Each step rounds as its own
kernel does, so that the numbers are the same. Groups are made where FLAGS_native is ``require``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb.values.device_context import Joined, JoinedOps
from fluidnb_kernels.device.element_groups import Call, Group, key_of, step_of
from fluidnb_kernels.device.group_text import launch


def grouped(calls: Sequence[Call], ops: Sequence[Any], lives: Mapping[int, Any]) -> Joined:
    """Calls with those that compute element by element in groups.

    Args:
        calls: of a segment, in order.
        ops: the operator of each.
        lives: identity of an array -> which calls touch its buffer, where that is known.

    Returns:
        The calls; the first operator of each; what kernels were made for.
    """
    result = Joined([], [], [])
    at = 0
    while at < len(calls):
        group = _group_at(calls, at)
        steps = 1 if group is None else len(group.steps)
        call = calls[at]
        if group is not None and steps > 1:
            written = [(key_of(array), array) for step in group.steps for array in step.written]
            last = {key: lives.get(id(array)) for key, array in written}
            call = launch(group, {key for key, life in last.items() if life is not None and life.last < at + steps})
            joined = list(dict.fromkeys(ops[at : at + steps]))
            result.made.append(JoinedOps(joined, steps, call[0].source.own))
        result.calls.append(call)
        result.ops.append(ops[at])
        at += steps
    return result


def _group_at(calls: Sequence[Call], at: int) -> Group | None:
    """The longest group that begins with a call."""
    step = step_of(calls[at])
    if step is None:
        return None
    group = Group(step)
    for call in calls[at + 1 :]:
        step = step_of(call)
        if step is None or not group.take(step):
            break
    return group
