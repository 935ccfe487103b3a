"""Nodes of the replay: the flat lists of calls between one guard and the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fluidnb.memory import flags
from fluidnb.op import Binder
from fluidnb.op.rule_evaluation import ask
from fluidnb.runtime.compile.lowering import LoweredBlock, LoweredOp, LoweredProgram
from fluidnb.runtime.kernel_errors import cause, failed, interrupted
from fluidnb.runtime.nan_check import checks
from fluidnb.runtime.observers import awaited, observed, observed_on_device, observers
from fluidnb.runtime.replay.bind_rollback import BindRollback
from fluidnb.runtime.replay.buffer_placement import placed
from fluidnb.runtime.replay.replay_memory import ReplayMemory
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor

Array = Any

#: Nodes after one guard of the main block: a reader may give sequences of other lengths in every batch.
_MOST_FOLLOWERS = 64


class Segment:
    """The calls of a block from one guard to the next.

    A node is bound whole before any of its calls is made; its buffers are then placed in the block's arena. What comes
    after it is found by the key that its guard gives: a branch taken for the first time, or a shape that depends on
    values, is a new child, and nothing that is bound already is touched.

    Args:
        bound: the memory policy.
        block: the block.
        scope: where its variables are.
        start: index of its first operator.
        drain: runs a control operator (the replay's).

    Attributes:
        run: makes the calls.
        guard: gives the key of what follows, or None at the end of the block.
        next: key -> node.
    """

    __slots__ = (
        "block", "bound", "calls", "drain", "end", "guard", "next", "ops", "past_guard", "run", "scope", "start",
    )  # fmt: skip

    def __init__(
        self, bound: ReplayMemory, block: LoweredBlock, scope: Scope, start: int, drain: Callable[[Any], None]
    ) -> None:
        self.bound, self.block, self.scope, self.start, self.drain = bound, block, scope, start, drain
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []
        self.ops: list[LoweredOp] = []
        self.next: dict[Any, Segment] = {}
        self.guard: Callable[[], Any] | None = None
        self.past_guard = False
        self.end = start
        self.run: Callable[[], None] = self._bind_and_run

    def child(self, key: Any) -> Segment:
        """The node that follows when the guard gave ``key``, bound and run."""
        if self.block.index == 0 and len(self.next) >= _MOST_FOLLOWERS:
            del self.next[next(iter(self.next))]
        self.bound.plan.nodes += 1
        node = self.next[key] = Segment(self.bound, self.block, self.scope.fork(), self.end, self.drain)
        node.past_guard = not self._after_control
        node.run()
        return node

    @property
    def _after_control(self) -> bool:
        return self.end > self.start and self.block.ops[self.end - 1].definition.control

    def _bind_and_run(self) -> None:
        run, before = self.bound.run, BindRollback(self.scope)
        run.at = -1
        try:
            calls = self._bind(before)
            if self.bound.buffers:
                calls = placed(calls, self.ops, self.bound, self.block.index, self.scope)
            self.calls = [(partial(f, **kw) if kw else f, args) for f, args, kw in calls]
            self.run = flat(self.calls, self.ops, self.bound, self.scope)
            run.check()  # binding may have taken a while
            self.run()
        except BaseException:
            before.take_back(first_call(self.ops, run.at))
            raise

    def _bind(self, before: BindRollback) -> list[Any]:
        bound, ops, index = self.bound, self.block.ops, self.start
        plan = bound.plan
        calls: list[Any] = []
        bound.buffers = {}
        while index < len(ops):
            op = ops[index]
            if op.guard is not None and not (self.past_guard and index == self.start):
                asked = Binder(op, bound, self.scope)
                self.guard = partial(op.guard, asked) if bound.place_kind == "cpu" else partial(ask, op.guard, asked)
                break
            before.note(op, len(calls))
            fold = self._is_constant(op, plan)
            bound.pin = fold
            binder = Binder(op, bound, self.scope)
            try:
                binder.bind()
                fold = fold and not binder.uses_rng
                for function, args, kw in binder.calls if fold else ():
                    function(*args, **kw)
            except Exception as e:
                raise failed(e, op, self.scope) from cause(e)
            finally:
                bound.pin = False
            if binder.transforms:
                plan.notes[op.block, op.index] = binder.transforms
            if fold:
                for name in op.writes():
                    value = self.scope.cell(name)[0].value
                    bound.share((value.value if isinstance(value, SelectedRows) else value).array)
            else:
                made = binder.calls + (checks(binder) if plan.check_nan else [])
                calls += made
                self.ops += [op] * len(made)
            index += 1
            if binder.control is not None:
                binder.control.walker = bound
                calls.append((self.drain, (binder.control,), {}))
                self.ops.append(op)
                if index < len(ops):  # what follows is bound when the block has run
                    self.guard = partial(after_control, [self.scope.cell(n)[0] for n in op.writes()], plan, {})
                    break
        self.end = index
        return calls

    @staticmethod
    def _is_constant(op: LoweredOp, plan: LoweredProgram) -> bool:
        """Whether an operator without inputs is the only writer of its output: it runs once, while binding."""
        d = op.definition
        if op.inputs or d.infer is None or d.random or d.side_effect or d.data_shape or d.control or d.host_only:
            return False
        names = list(op.writes())
        return bool(names) and all(plan.writes[n] == 1 and n not in plan.persistable for n in names)


def flat(calls: list[Any], ops: list[LoweredOp], bound: ReplayMemory, scope: Scope) -> Callable[[], None]:
    """The replay of a node: a bare loop over its calls.

    Args:
        calls: functions with their arguments.
        ops: the operator of each call.
        bound: holds the run, so that an interrupt finds where it is.
        scope: where the variables are, for messages.

    Returns:
        A function without arguments.
    """
    if bound.place_kind != "cpu":
        return _flat_on_device(calls, ops, bound, scope)
    run = bound.run
    push, pop = run.stack.append, run.stack.pop

    def replay() -> None:
        left: Any = iter(calls)
        push((left, calls, ops))
        try:
            if observers:
                observed(left, ops)
            else:
                for function, args in left:
                    function(*args)
        except BaseException as e:
            _stopped(e, left, calls, ops, run, scope)
            raise
        finally:
            pop()

    return replay


def _flat_on_device(calls: list[Any], ops: list[LoweredOp], bound: ReplayMemory, scope: Scope) -> Callable[[], None]:
    """The same on a device, which may put calls together once the first run has shown that they can be made."""
    run, context = bound.run, DeviceContext.get(bound.place)
    apart = best = calls, ops

    def replay() -> None:
        nonlocal best
        watched = observers or flags.values["benchmark"]
        made, of = apart if watched else best
        left: Any = iter(made)
        run.stack.append((left, made, of))
        try:
            if observers:
                observed_on_device(left, of, context)
            elif watched:
                awaited(left, context)
            else:
                for function, args in left:
                    function(*args)
                if best is apart:
                    best = context.joined(calls, ops)
        except BaseException as e:
            _stopped(e, left, made, of, run, scope)
            raise
        finally:
            run.stack.pop()

    return replay


def _stopped(e: BaseException, left: Any, calls: list[Any], ops: list[LoweredOp], run: Any, scope: Scope) -> None:
    """Note at which call a node has stopped, and raise an error of its operator where it is one."""
    run.at = len(calls) - left.__length_hint__() - 1  # a list iterator knows how many items are left
    if isinstance(e, KeyboardInterrupt) and ops:
        interrupted(e, ops[run.at], run.iteration)
        run.iteration = None
    if isinstance(e, Exception):
        # several calls made as one know whose turn it was
        raise failed(e, getattr(calls[run.at][0], "under_way", ops[run.at]), scope) from cause(e)


def first_call(ops: list[LoweredOp], at: int) -> int:
    """The index of the first call of an operator.

    Args:
        ops: the operator of each call.
        at: index of one of its calls; -1 gives 0.

    Returns:
        The index.

    Example:
        >>> first_call(["a", "b", "b"], 2), first_call([], -1)
        (1, 0)
    """
    while at > 0 and ops[at - 1] is ops[at]:
        at -= 1
    return max(at, 0)


def after_control(cells: list[Any], plan: LoweredProgram, known: dict[Any, Any]) -> Any:
    """The key of what follows a control operator: which objects its outputs are now, and their LoD.

    Args:
        cells: its outputs.
        plan: counts the objects that are kept alive.
        known: key -> those objects, so that an identity means the same thing in every run; a key is added once.

    Returns:
        A hashable key.
    """
    parts, values = [], []
    for cell in cells:
        value = cell.value
        tensor = type(value) is LoDTensor
        held = value.array if tensor else value
        parts.append((id(held), value.lod_ if tensor else ()))
        values.append(held)
    key = tuple(parts)
    if key not in known:
        known[key] = values
        plan.held.append(values)
    return key
