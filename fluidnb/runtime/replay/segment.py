"""Segments of a compiled run: the flat lists of calls between one guard and the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from fluidnb.memory import flags
from fluidnb.op import Binder
from fluidnb.op.rule_evaluation import evaluate
from fluidnb.runtime.compile.lowering import LoweredBlock, LoweredOp, LoweredProgram
from fluidnb.runtime.kernel_errors import cause, failed, interrupted
from fluidnb.runtime.nan_check import checks
from fluidnb.runtime.native.segment_code import Calls, NativeCall, SegmentCode, large_calls
from fluidnb.runtime.observers import awaited, observed, observed_on_device, observers
from fluidnb.runtime.replay.buffer_placement import Life, no_lives, placed
from fluidnb.runtime.replay.joined_calls import joined
from fluidnb.runtime.replay.replay_memory import ReplayMemory, Unexpected
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext, Joined
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable

Array = Any
#: Segments after one guard of the main block: a reader may give sequences of other lengths in every batch.
_MOST_FOLLOWERS = 64
#: Bound updates that a program keeps: scopes that are gone must not keep their parameters.
_MOST_UPDATES = 4


class Segment:
    """The calls of a block from one guard to the next.

    It is bound whole before any of its calls is made; its buffers are then placed in the block's arena. The key of its
    guard selects what follows: another branch, or a shape that depends on values, is a new child, and what is bound
    already is not touched.
    """

    __slots__ = (
        "before", "binder", "block", "bound", "calls", "code", "condition", "drain", "end", "guard", "made", "next",
        "ops", "past_guard", "run", "scope", "start", "unrolled", "updates",
    )  # fmt: skip

    def __init__(
        self, bound: ReplayMemory, block: LoweredBlock, scope: Scope, start: int, drain: Callable[[Any], None]
    ) -> None:
        self.bound, self.block, self.scope, self.start, self.drain = bound, block, scope, start, drain
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []
        self.ops: list[LoweredOp] = []
        self.code: SegmentCode | None = None  # on the host, once it is bound
        self.unrolled: SegmentCode | None = None  # of all iterations of the loop whose body it is
        self.made: list[NativeCall] = []  # on a device: kernels of several operators
        self.next: dict[Any, Segment] = {}
        self.guard: Callable[[], Any] | None = None  # gives the key of what follows; None at the end of the block
        self.binder: Binder | None = None  # of the operator that the guard belongs to
        self.past_guard = False
        self.condition: Array | None = None  # the condition of the loop whose body begins here
        self.end = start
        self.updates: Segment | None = None  # the last operators of the program, where they are bound apart
        self.before: BindRollback | None = None  # until the first run has ended
        self.run: Callable[..., None] = self._bind_and_run

    def child(self, key: Any) -> Segment:
        """The segment that follows when the guard gave ``key``, bound and run."""
        if self.block.index == 0 and len(self.next) >= _MOST_FOLLOWERS:
            del self.next[next(iter(self.next))]
        self.bound.lowered.segments += 1
        segment = self.next[key] = Segment(self.bound, self.block, self.scope.fork(), self.end, self.drain)
        segment.past_guard = self.end == self.start or not self.block.ops[self.end - 1].definition.control
        segment.run()
        return segment

    def _bind_and_run(self) -> None:
        self.bind()
        try:
            if self.end == self._stop() < len(self.block.ops):
                self.updates = self._bound_updates()
        except BaseException:
            self._undo(-1)
            raise
        self.run()

    def bind(self) -> None:
        """Bind the calls up to the next guard; nothing is computed yet but constants."""
        bound = self.bound
        self.before = BindRollback(self.scope)
        try:
            calls = self._bind_ops(self.before)
            lives: Callable[[], dict[int, Life]] = no_lives
            groups: list[list[int]] = []
            plan = bound.plan
            if plan is not None:
                lives = plan.end(calls)
            elif bound.buffers:
                calls, lives, groups = placed(calls, self.ops, bound, self.block.index, self.scope)
            self.calls = [(partial(f, **kw) if kw else f, args) for f, args, kw in calls]
            if bound.place_kind == "cpu":
                condition = None if self.guard else self.condition
                plain = Calls(self.calls, self.ops, self.ops)
                self.code = SegmentCode(plain, joined(plain, calls, groups), lives, condition)
                self.code.take_products()
                if plan is not None:
                    self.code.use(plan.template.code, plan.sample(plain, lives))
                if not bound.lowered.check_nan:
                    self.code.first()
                replay = flat(self.code, bound, self.scope)
            else:
                replay = _flat_on_device(self, lives)
        except BaseException:
            self._undo(-1)
            raise
        self.run = partial(self._run_first, replay)

    def _run_first(self, replay: Callable[..., None]) -> None:
        """The run after binding: where it ends early, operators that it did not reach have changed nothing."""
        run = self.bound.run
        run.at = -1
        again = self.code is not None and large_calls(self.calls) is not None
        self.run = partial(self._run_again, replay) if again else replay
        try:
            run.check()  # binding may have taken a while
            replay()
        except BaseException:
            self._undo(run.at)
            if self.updates is not None:
                self.updates._undo(-1)
            raise
        self.before = None

    def _run_again(self, replay: Callable[..., None]) -> None:
        """The second run, of calls over large arrays: from now on they are made in parts."""
        if self.run is not replay:  # a loop that has begun keeps what it calls
            from fluidnb.runtime.replay.tiled_calls import tiled  # most processes have no large arrays

            assert self.code is not None
            self.run = replay
            self.code.replace(tiled)
        replay()

    def _undo(self, at: int) -> None:
        """Put back what binding has changed for the operator of a call and those behind it; -1 for all."""
        if self.before is not None:
            self.before.restore(first_call(self.ops, at))

    def _stop(self) -> int:
        """The index of the operator at which this segment ends at the latest."""
        lowered = self.bound.lowered
        apart = self.bound.handed_over and self.block.index == 0 and self.start < lowered.updates_from
        return lowered.updates_from if apart else len(self.block.ops)

    def _bound_updates(self) -> Segment:
        """The operators behind this segment, bound once for all shapes that give them the same arrays."""
        lowered, user = self.bound.lowered, self.scope
        while user.block is not None and user.parent is not None:
            user = user.parent
        scope = Scope(user, self.block)
        for name in lowered.handed_over:
            value = self.scope.cell(name)[0].value
            if type(value) is LoDTensor:
                value = LoDTensor(value.array, value.lod_, value.place, name)
            scope.vars[name] = Variable(name, value)
        names = {name: None for op in self.block.ops[self.end :] for name in (*op.reads(), *op.writes())}
        values = [scope.cell(name)[0].value for name in names]
        key = id(user), *((id(x.array), x.lod_) for x in values if type(x) is LoDTensor and x.array is not None)
        known: tuple[Segment, Any] | None = lowered.updates.get(key)
        if known is not None:
            return known[0]
        segment = Segment(ReplayMemory(lowered), self.block, scope, self.end, self.drain)
        kept = user, [x.array for x in values if type(x) is LoDTensor]  # so that identities in the key stay theirs
        segment.bind()
        if len(key) > len(names):  # all are tensors that have memory already
            while len(lowered.updates) >= _MOST_UPDATES:
                del lowered.updates[next(iter(lowered.updates))]
            lowered.updates[key] = segment, kept
        return segment

    def _bind_ops(self, before: BindRollback) -> list[Any]:
        """The calls of its operators, by a template or by their kernels."""
        bound = self.bound
        if bound.plan is not None:
            bound.plan.begin()
            try:
                return self._bind(before)
            except Unexpected:
                before.restore(0)
                bound.lowered.templates.drop(bound.plan)
                self.ops.clear()
                bound.shared.clear()
                for name in self.scope.vars.keys() - bound.lowered.feeds:
                    del self.scope.vars[name]
        if bound.record is not None:
            bound.record.begin()
        calls = self._bind(before)
        if bound.record is not None:
            bound.lowered.templates.end(bound.record)
        return calls

    def _bind(self, before: BindRollback) -> list[Any]:
        bound, ops, index, stop = self.bound, self.block.ops, self.start, self._stop()
        lowered = bound.lowered
        calls: list[Any] = []
        bound.buffers = {}
        plan, record = bound.plan, bound.record
        while index < stop:
            op = ops[index]
            if op.guard is not None and not (self.past_guard and index == self.start):
                binder = self.binder = Binder(op, bound, self.scope)
                on_host = bound.place_kind == "cpu"
                self.guard = partial(op.guard, binder) if on_host else partial(evaluate, op.guard, binder)
                break
            try:
                if plan is not None and plan.emit(index, self.scope, calls, self.ops):
                    index += 1
                    continue
                before.note(op, len(calls))
                fold = self._is_constant(op, lowered)
                bound.pin = fold
                binder = Binder(op, bound, self.scope)
                binder.bind()
                fold = fold and not binder.uses_rng
                for function, args, kw in binder.calls if fold else ():
                    function(*args, **kw)
            except Unexpected:
                raise
            except Exception as e:
                raise failed(e, op, self.scope) from cause(e)
            finally:
                bound.pin = False
            if binder.transforms:
                lowered.notes[op.block, op.index] = binder.transforms
            if fold:
                for name in op.writes():
                    value = self.scope.cell(name)[0].value
                    bound.share((value.value if isinstance(value, SelectedRows) else value).array)
            else:
                emitted = binder.calls + (checks(binder) if lowered.check_nan else [])
                calls += emitted
                self.ops += [op] * len(emitted)
            if plan is not None:
                plan.check(index, self.scope)
            elif record is not None:
                record.add(op, binder, binder.calls, self.scope, fold)
            index += 1
            if binder.control is not None:
                binder.control.executor = bound
                calls.append((self.drain, (binder.control,), {}))
                self.ops.append(op)
                if index < stop:  # what follows is bound when the block has run
                    self.guard = partial(after_control, [self.scope.cell(n)[0] for n in op.writes()], lowered, {})
                    break
        self.end = index
        return calls

    @staticmethod
    def _is_constant(op: LoweredOp, lowered: LoweredProgram) -> bool:
        """Whether an operator without inputs is the only writer of its output: it runs once, while binding."""
        d = op.definition
        if op.inputs or d.infer is None or d.random or d.side_effect or d.data_shape or d.control or d.host_only:
            return False
        names = list(op.writes())
        return bool(names) and all(lowered.writes[n] == 1 and n not in lowered.persistable for n in names)


def flat(code: SegmentCode, bound: ReplayMemory, scope: Scope) -> Callable[..., None]:
    """The run of a segment: a loop over its calls, all of them or those from an index on."""
    run, off, values = bound.run, bound.lowered.check_nan, flags.values
    push, pop = run.stack.append, run.stack.pop

    def replay(at: int = 0) -> None:
        begun = 0.0
        if off or at or observers:
            calls, ops, units = code.plain if values["native"] == "off" else code.in_order
        elif values["native"] == "off":
            calls, ops, units = code.in_numpy
        else:
            if code.waiting:
                code.first()
                begun = perf_counter()
            calls, ops, units = code.best
        left: Any = iter(calls)
        if at:
            left.__setstate__(at)
        push((left, calls, units))
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
        if begun:
            code.count(perf_counter() - begun)

    return replay


def _flat_on_device(segment: Segment, lives: Callable[[], dict[int, Life]]) -> Callable[[], None]:
    """The same on a device, which may join calls after a first run without an error."""
    calls, ops, scope, run = segment.calls, segment.ops, segment.scope, segment.bound.run
    context, apart = DeviceContext.get(segment.bound.place), Joined(calls, ops, [])
    best: dict[bool, Joined] = {}  # with and without native code

    def replay() -> None:
        watched, native = observers or flags.values["benchmark"], flags.values["native"] == "require"
        joined, of, _ = apart if watched else best.get(native, apart)
        left: Any = iter(joined)
        run.stack.append((left, joined, of))
        try:
            if observers:
                observed_on_device(left, of, context)
            elif watched:
                awaited(left, context)
            else:
                for function, args in left:
                    function(*args)
                if native not in best:
                    best[native] = context.joined(calls, ops, lives() if native else None)
                    made = best[native].made
                    segment.made = [NativeCall(each.ops, each.replaced, 1, each.text) for each in made]
        except BaseException as e:
            _stopped(e, left, joined, of, run, scope)
            raise
        finally:
            run.stack.pop()

    return replay


def _stopped(e: BaseException, left: Any, calls: list[Any], ops: list[LoweredOp], run: Any, scope: Scope) -> None:
    """Record the call at which a segment has stopped, and raise an error in the words of its operator."""
    run.at = len(calls) - left.__length_hint__() - 1  # a list iterator knows how many items are left
    if isinstance(e, KeyboardInterrupt) and ops:
        interrupted(e, ops[run.at], run.iteration)
        run.iteration = None
    if isinstance(e, Exception):
        # joined calls know which of them was running
        raise failed(e, getattr(calls[run.at][0], "under_way", ops[run.at]), scope) from cause(e)


def first_call(ops: list[LoweredOp], at: int) -> int:
    """The index of the first call of the operator of a call."""
    while at > 0 and ops[at - 1] is ops[at]:
        at -= 1
    return max(at, 0)


def after_control(cells: list[Any], lowered: LoweredProgram, known: dict[Any, Any]) -> Any:
    """The key of what follows a control operator: identities and LoDs of its outputs, which ``known`` keeps alive."""
    parts, values = [], []
    for cell in cells:
        value = cell.value
        tensor = type(value) is LoDTensor
        array = value.array if tensor else value
        parts.append((id(array), value.lod_ if tensor else ()))
        values.append(array)
    key = tuple(parts)
    if key not in known:
        known[key] = values
        lowered.kept_alive.append(values)
    return key


class _Row(NamedTuple):
    first: int
    name: str
    variable: Variable | None
    value: Any
    array: Any
    lod: Any


class BindRollback:
    """Outer variables before binding, which gives outputs their memory before any call is made."""

    __slots__ = ("_rows", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._rows: list[_Row] = []

    def note(self, op: LoweredOp, first: int) -> None:
        """Record the outer variables that an operator may change, before it is bound."""
        scope = self._scope
        local = scope.block.local
        for name in (*op.reads(), *op.writes()):
            if name not in local:
                variable = scope.find_var(name)
                value = None if variable is None else variable.value
                array, lod = (value.array, value.lod_) if type(value) is LoDTensor else (None, ())
                self._rows.append(_Row(first, name, variable, value, array, lod))

    def restore(self, reached: int) -> None:
        """Restore the variables of operators that were not run, from the call ``reached`` on."""
        for row in reversed(self._rows):
            if row.first < reached:
                continue
            if row.variable is None:
                self._scope.cell(row.name)[1].erase([row.name])
                continue
            row.variable.value = row.value
            if type(row.value) is LoDTensor:
                row.value.array, row.value.lod_ = row.array, row.lod
