"""The Executor: runs a program in a scope on a place."""

import weakref
from collections.abc import Mapping
from operator import is_
from traceback import clear_frames
from typing import Any, NamedTuple, Never, NoReturn

import numpy as np

from fluidnb.arguments import Signature, checked, refuse_unknown
from fluidnb.errors import EnforceNotMet, NotBuiltYet, NotFed, OpTypeError, near
from fluidnb.memory import OutOfMemory, flags
from fluidnb.op.define import registry
from fluidnb.op.engine import acting_role
from fluidnb.op.transform import copy_between
from fluidnb.program import Program, default_main_program, hooks, origin
from fluidnb.program.prune import refuse_dropped
from fluidnb.proto.desc import ProgramDesc
from fluidnb.runtime import scope as scopes
from fluidnb.runtime.blas_threads import follow_flag
from fluidnb.runtime.compile.layout import order_of
from fluidnb.runtime.compile.lowering import LoweredProgram, release_oldest
from fluidnb.runtime.feed_fetch import Fed, check_feed, fed, fetch_names, operand, takes_rows
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.interpreter.failed_run import note
from fluidnb.runtime.interpreter.interpreter import Interpreter
from fluidnb.runtime.interrupt import install
from fluidnb.runtime.last_values import remember
from fluidnb.runtime.observers import after_run, over
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay.specialization import Specialization, bring_here
from fluidnb.runtime.results import fetched, results
from fluidnb.runtime.run_numbers import coming_run, next_run
from fluidnb.runtime.scope import Scope
from fluidnb.utils.representations import repr_html
from fluidnb.values import invalidation as epoch
from fluidnb.values import strict_feeds as declared
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.move_value import move_value
from fluidnb.values.place import CPUPlace, Place
from fluidnb.values.reader import EOFException
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor


class Prepared(NamedTuple):
    """A run about to begin, as an attached debugger gets it."""

    lowered: LoweredProgram
    program: Program
    scope: Scope  # the user's scope
    values: Mapping[str, Fed]  # the feeds
    return_numpy: bool  # see `Executor.run`


class Executor:
    """Runs programs on a place.

    Persistable variables live in the scope, the others go when the run ends. Every operator runs, not only those that
    the fetches need.

    Args:
        place: where to run; default the CPU.

    Example:
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     x = fluid.layers.data("x", shape=[2])
        ...     y = fluid.layers.scale(x, scale=2.0)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(main, feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])[0]
        array([[2., 2.]], dtype=float32)

    Source: developer guide, section on the Executor.
    """

    #: What a message says where one is expected.
    argument_hint = "fluid.Executor(fluid.CPUPlace()) makes one."

    @checked
    def __init__(self, place: Place | None = None) -> None:
        self.place = CPUPlace() if place is None else place
        DeviceContext.get(self.place)  # refused now, not at the first run
        copy_between("cpu", self.place.kind)
        install()
        follow_flag()
        self._on_host = self.place.kind == "cpu"
        self._closed = False
        self._hot: Specialization | None = None

    def __repr__(self) -> str:
        return f"Executor({self.place}{', closed' if self._closed else ''})"

    _repr_html_ = repr_html

    def close(self) -> None:
        """Refuse to run from now on."""
        self._closed, self._hot = True, None

    def train_from_dataset(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not part of fluidnb: files are not read by threads inside a run."""
        raise NotBuiltYet(
            "Executor.train_from_dataset and infer_from_dataset are not part of fluidnb: one process runs a program, "
            "and files are not read inside a run.",
            hint="call run() for each batch: paddle.batch, fluid.reader and fluid.DataFeeder make it.",
        )

    infer_from_dataset = train_from_dataset

    def run(
        self, program: Program | None = None, feed: Mapping[str, Any] | None = None, fetch_list: Any = None,
        feed_var_name: str = "feed", fetch_var_name: str = "fetch", scope: Scope | None = None,
        return_numpy: bool = True, use_program_cache: bool = False, keep_scopes: bool = False, **unknown: Never,
    ) -> list[Any]:  # fmt: skip
        """Run a program once.

        Args:
            program: the program, or a CompiledProgram; default the main program.
            feed: variable name -> ndarray, LoDTensor, (ndarray, lengths), array of a device or nested list of numbers.
            fetch_list: Variables or names whose values are wanted, as a list, set, generator or `dict.values()`.
            feed_var_name, fetch_var_name, use_program_cache: ignored (compatibility).
            scope: where persistable variables live; default the global scope.
            return_numpy: ndarrays (True) or LoDTensors (False) in the result.
            keep_scopes: run operator by operator and leave the run's scopes inside ``scope`` until the next such run.

        Returns:
            The fetched values, copies, in the order of ``fetch_list``.

        Raises:
            NotFound: an unknown name in feed or fetch_list.
            OpValueError: a fed value does not fit its data variable.
            EnforceNotMet: an operator failed, a variable that it reads has no value, the executor is closed, or a
                fetched value has LoD and ``return_numpy`` is True.
            EOFException: a reader in the program has no more batches.
        """
        if program is None:
            program = default_main_program()
        elif type(program) is not Program:
            if getattr(program, "is_parallel", False) and self._on_host and not self._closed:
                if unknown:
                    refuse_unknown(Executor.run, self, unknown)
                _RUN.checked((self,), {"return_numpy": return_numpy, "keep_scopes": keep_scopes})
                return _on_places(program, scope).run(feed, fetch_list, return_numpy)  # type: ignore[no-any-return]
            program, feed = _for_one_device(program, feed)
        if scope is None:
            mine = scopes._mine.guards
            scope = mine[-1] if mine else scopes._stack[-1]
        hot = self._hot
        if (
            hot is not None
            and type(feed) is dict
            and fetch_list is not None
            and keep_scopes is False
            and (return_numpy is True or return_numpy is False)
            and not unknown
            and origin.recorder is None
            and hot.scope is scope
            and hot.epoch == epoch.value
            and hot.registry_version == registry.version
            and hot.lowered.check_nan is flags.values["check_nan_inf"]
            and hot.lowered.use_mkldnn is flags.values["use_mkldnn"]
            and type(program) is Program
            and hot.desc is program.desc
            and hot.version == hot.desc.version
            and len(feed) == len(hot.feeds)
            and type(fetch_list) is list
            and len(fetch_list) == len(hot.fetch_list)
            and all(map(is_, fetch_list, hot.fetch_list))
            and hot.lowered.lock.acquire(False)  # before feeds are copied: another thread may run with its own
        ):
            out, direct = None, hot.direct
            try:
                for buffer, name, lod, shape, dtype in hot.feeds:
                    value = feed.get(name)
                    if type(value) is not np.ndarray or lod or value.shape != shape:
                        break
                    if value.dtype is not dtype and value.dtype != dtype:
                        break
                    if self._on_host and (direct is None or not direct.take(name, value)):
                        buffer[...] = value  # a third of what np.copyto takes for few elements
                else:
                    rerun = self._rerun if self._on_host else self._rerun_on_device
                    out = rerun(hot, program, return_numpy, feed)
            finally:
                hot.lowered.lock.release()
            if out is not None:
                if after_run:
                    over(program, scope)
                return out
        if unknown:
            refuse_unknown(Executor.run, self, unknown)
        out = self._run(program, feed, fetch_list, scope, return_numpy, keep_scopes)
        if after_run:
            over(program, scope)
        return out

    def _rerun(self, hot: Specialization, program: Program, return_numpy: bool, feed: Any = None) -> list[Any]:
        """Run what is bound for this program, scope, fetches and shapes."""
        lowered = hot.lowered
        number = next_run(lowered, program, hot.scope) if lowered.random else 0
        before = Checkpoint(lowered, hot.scope) if lowered.check_nan else None
        direct = hot.direct
        try:
            if direct is not None:
                plain = return_numpy and hot.fetches is not None and self._on_host and declared.binding
                direct.aim() if plain else direct.keep_results()
            values = hot.run(number)
        except BaseException as error:
            if isinstance(error, EOFException) and hot.epoch >= 0:  # every pass ends so: what is bound stays good
                raise
            self._hot = None
            if direct is not None and feed is not None:
                direct.settle(feed)
            note(program, hot.scope, lowered, hot.fed(), number, error, bool(hot.root.calls), before)
            lowered.forget()
            if isinstance(error, OutOfMemory):
                clear_frames(error.__traceback__)
                error.__traceback__ = None  # closures of its frames hold buffers; the error itself says where it was
                hot.drop()
            raise
        if return_numpy and hot.fetches is not None and self._on_host and declared.binding:
            out: list[Any] = []
            for array, lod in values:
                if lod:
                    return results(values, lowered, True)
                own = None if direct is None else direct.result(len(out))
                out.append(array.copy() if own is None else own)
        else:
            out = results(values, lowered, return_numpy)
        lowered.latest = out
        return out

    def _rerun_on_device(self, hot: Specialization, program: Program, return_numpy: bool, feed: Any) -> list[Any]:
        """The same on a device, on the stream of this thread."""
        with DeviceContext.get(self.place).turn(hot.lowered, hot.scope.outermost()):
            hot.fill({name: (array, ()) for name, array in feed.items()})
            return self._rerun(hot, program, return_numpy)

    def _run(
        self, program: Any, feed: Any, fetch_list: Any, scope: Any, return_numpy: bool, keep_scopes: bool
    ) -> list[Any]:
        _RUN.checked((self,), {"return_numpy": return_numpy, "keep_scopes": keep_scopes})
        asked = epoch.asked
        lowered, values = self.prepare(program, feed, fetch_list, scope)
        attached = program_state(program.desc).attached
        if attached is not None:
            return attached(Prepared(lowered, program, scope, values, return_numpy))
        if keep_scopes:
            return self._keep(lowered, program, scope, values, return_numpy)
        if not lowered.lock.acquire(False):  # under way in another thread, or around this very call
            lowered = lowered.again(program.random_seed)
            lowered.lock.acquire()
        try:
            with DeviceContext.get(self.place).turn(lowered, scope.outermost()):
                hot = self._specialize(lowered, program, scope, values)
                hot.fill(values)
                out = self._rerun(hot, program, return_numpy)
            if not (lowered.ran or values or lowered.fetches):  # a startup program, which most scripts run once
                lowered.forget()
            elif type(fetch_list) is list and hot.fetches is not None and not lowered.fed_rows:
                hot.fetch_list = fetch_list[:]
                self._hot = hot
            lowered.ran = True
            remember(program, lowered)
            return out
        finally:
            if epoch.asked != asked:  # meanwhile, by another thread: what this run has bound does not know it
                epoch.value += 1
            lowered.lock.release()

    @staticmethod
    def _specialize(
        lowered: LoweredProgram, program: Program, scope: Scope, values: Mapping[str, Fed]
    ) -> Specialization:
        """The lowered program bound for a scope and feeds, kept from an earlier run or new."""
        lowered.evict()
        key = (id(scope), *((a.shape, a.dtype, lod) for a, lod in values.values()))
        hot: Specialization | None = lowered.specializations.pop(key, None)
        if hot is None or not hot.is_good(scope):
            if hot is not None:
                lowered.forget()
            try:
                hot = Specialization(lowered, scope, values)
            except Exception as error:
                note(program, scope, lowered, values, coming_run(lowered, program, scope), error, False)
                if isinstance(error, OutOfMemory):
                    clear_frames(error.__traceback__)
                    error.__traceback__ = None
                raise
        lowered.specializations[key] = hot  # in the order of their last use
        return hot

    def prepare(self, program: Any, feed: Any, fetch_list: Any, scope: Any) -> tuple[LoweredProgram, dict[str, Fed]]:
        """Check the arguments of `run`, and lower the program.

        Returns:
            The lowered program and the feeds: name -> (array, LoD).
        """
        self._check_call(program, scope)
        origin.ran(program)
        if hooks.before_run is not None and not acting_role():
            hooks.before_run(program, scope)
        desc = program.desc
        feed = check_feed({} if feed is None else feed)
        rows = {name: value for name, value in feed.items() if takes_rows(name, value, desc)}
        values = {name: fed(name, value, desc) for name, value in feed.items() if name not in rows}
        fetches = (fetch_list is not None and fetch_names(fetch_list, desc)) or _fetch_targets(desc)
        lowered = self._lowered(desc, tuple(values), tuple(fetches), program.random_seed, tuple(rows))
        for name, value in rows.items():
            variable = scope.var(name)
            if not isinstance(variable.value, SelectedRows):
                variable.value = SelectedRows()
            bound = variable.value  # the same object in every run: bound calls refer to it
            bound.rows_, bound.height_, bound.value = value.rows_.copy(), value.height_, value.value._copy()
            move_value(bound, lowered.place)
        _check_names(lowered, scope)
        return lowered, values

    def interpret(
        self, program: Program | None = None, feed: Any = None, fetch_list: Any = None, scope: Scope | None = None,
        interpreter: type[Interpreter] = Interpreter,
    ) -> Interpreter:  # fmt: skip
        """Begins a run that goes step by step, forwards and backwards; nothing runs yet.

        Args:
            program, feed, fetch_list, scope: see `run`.
            interpreter: `fluidnb.runtime.Interpreter` or a subclass, whose override points see each operator.

        Returns:
            The interpreter: ``run()`` runs to the end, ``step()`` and ``back()`` one operator, ``fetch()`` gives the
            results. Its scopes are dropped with it.

        Example:
            >>> x = fluid.layers.fill_constant([2], "float32", 3.0)
            >>> y = fluid.layers.scale(x, 2.0)
            >>> run = fluid.Executor().interpret(fetch_list=[y])
            >>> run.step(); run.here.desc.type()
            'scale'
            >>> run.run().fetch()
            [array([6., 6.], dtype=float32)]
        """
        if not isinstance(interpreter, type) or not issubclass(interpreter, Interpreter):
            raise OpTypeError(
                "The interpreter of a run must be a class.", expected="Interpreter or a subclass",
                received=repr(interpreter), argument="interpreter",
            )  # fmt: skip
        program = default_main_program() if program is None else program
        scope = scopes.global_scope() if scope is None else scope
        lowered, values = self.prepare(program, feed, fetch_list, scope)
        run = self.interpreter(lowered, scope, values, next_run(lowered, program, scope), interpreter)
        weakref.finalize(run, _drop, scope, run.stack[0].scope)
        return run

    def _check_call(self, program: Any, scope: Any) -> None:
        if self._closed:
            raise EnforceNotMet(
                "Attempted to use a closed Executor", expected="an executor that is open", received="one after close()",
                hint="make a new one: fluid.Executor(place).",
            )  # fmt: skip
        if not isinstance(program, Program):
            raise OpTypeError(
                f"Executor requires Program as its Parameter. But you passed in {type(program).__name__}.",
                expected="a fluid.Program", received=repr(program)[:80],
                hint="a feed is named: exe.run(feed={...})." if isinstance(program, dict)
                else "left out, it is the default main program.",
            )  # fmt: skip
        if not isinstance(scope, Scope):
            raise OpTypeError(
                f"scope should be a Scope, but {type(scope).__name__} was given.", expected="a fluid.Scope",
                received=repr(scope)[:80], hint="left out, it is fluid.global_scope().",
            )  # fmt: skip

    def _lowered(
        self, desc: ProgramDesc, feeds: tuple[str, ...], fetches: tuple[str, ...], seed: int, rows: tuple[str, ...]
    ) -> LoweredProgram:
        lowered_programs = program_state(desc).lowered_programs
        key = (feeds, fetches, rows, self.place, flags.values["check_nan_inf"])
        lowered = lowered_programs.get(key)
        if lowered is not None and lowered.use_mkldnn is not flags.values["use_mkldnn"]:
            lowered = None
        if lowered is None or lowered.version != desc.version or lowered.registry_version != registry.version:
            # A copy, in one step of the interpreter's lock: another thread may lower the same program now.
            for old, other in lowered_programs.copy().items():
                if other.version != desc.version:
                    lowered_programs.pop(old, None)
            lowered = LoweredProgram(desc, feeds, fetches, self.place, seed, rows)
            refuse_dropped(desc.blocks[0], fetches, "fetched")
            lowered_programs[key] = lowered
        if len(lowered_programs) > 1:
            lowered_programs[key] = lowered_programs.pop(key, lowered)  # in the order of their last use
            release_oldest(lowered_programs)
        lowered.clock.seed = seed
        return lowered

    def _keep(
        self, lowered: LoweredProgram, program: Program, scope: Scope, values: Mapping[str, Fed], return_numpy: bool
    ) -> list[Any]:
        """Run with the interpreter and leave its scopes inside the user's."""
        scope.drop_kids()
        outermost = scope.outermost()
        known = frozenset(outermost.vars)
        number = next_run(lowered, program, scope)
        before = Checkpoint(lowered, scope) if lowered.check_nan else None
        interpreter = self.interpreter(lowered, scope, values, number)
        try:
            interpreter.run(journal=False)
        except BaseException as error:
            note(program, scope, lowered, values, number, error, True, before)
            scope.drop_kids()
            outermost.erase([n for n, v in outermost.vars.items() if n not in known and v.value is None])
            raise
        out = fetched(lowered, scope.kids[-1], return_numpy)
        lowered.latest = out
        remember(program, lowered)
        return out

    @classmethod
    def interpreter(
        cls, lowered: LoweredProgram, scope: Scope, values: Mapping[str, Fed], run: int = 0,
        interpreter: type[Interpreter] = Interpreter,
    ) -> Interpreter:  # fmt: skip
        """An interpreter at the start of a lowered program, with a local scope inside ``scope`` that holds the feeds.

        Args:
            run: the number of the run; random numbers depend on it.
        """
        bring_here(lowered, scope)
        local = scope.new_scope()
        local.block = lowered.blocks[0]
        context = DeviceContext.get(lowered.place)
        for name, (array, lod) in values.items():
            buffer = context.empty(array.shape, array.dtype, order_of(lowered.layout, name, array.shape))
            context.fill(buffer, array)
            local.var(name).value = LoDTensor(buffer, lod, lowered.place, name)
        return interpreter(lowered, local, run)

    machine = interpreter  # the former name


#: The declared arguments of `run`, which checks them only where it prepares a run: its fast path is measured in µs.
_RUN = Signature(Executor.run, method=True)


def _fetch_targets(desc: ProgramDesc) -> list[str]:
    """The variables of the program's fetch operators, by column."""
    ops = [op for op in desc.blocks[0].ops if op.optype == "fetch"]
    return [op.input("X")[0] for op in sorted(ops, key=lambda op: op.attrs.get("col", 0))]


def _drop(scope: Scope, kid: Scope) -> None:
    if kid in scope.kids:
        scope.kids.remove(kid)


def _is_empty(scope: Scope, name: str) -> bool:
    variable = scope.find_var(name)
    return variable is None or variable.value is None or getattr(variable.value, "array", 0) is None


def _check_names(lowered: LoweredProgram, scope: Scope) -> None:
    """Refuse a run that reads data which is not fed, or fetches a variable without a value."""
    for name in lowered.fetches:
        if not lowered.writes[name] and name not in lowered.feeds and _is_empty(scope, name):
            raise EnforceNotMet(
                f'"{name}" is fetched but has no value.', slots=[operand("fetched", lowered.desc.blocks[0].vars[name])],
                expected="a variable that is fed, written by an operator, or held by the scope",
                received=f"{name}, which nothing writes", hint="if it is a parameter, run the startup program first.",
            )  # fmt: skip
    missing = [name for name in lowered.unfed if _is_empty(scope, name)]
    if missing:
        raise NotFed(
            f"The program reads data that was not fed: {', '.join(missing)}.",
            slots=[operand("data", lowered.desc.blocks[0].vars[name]) for name in missing],
            expected=f"feed with {', '.join(repr(n) for n in missing)}",
            received=", ".join(map(repr, lowered.feeds)) or "an empty feed",
            hint=near(missing[0], lowered.feeds) or f'exe.run(feed={{"{missing[0]}": ...}}, ...).',
            names=missing,
        )


def _on_places(program: Any, scope: Scope | None) -> Any:
    """The object that runs a program for several places."""
    return program.on_places(scope)


def _for_one_device(program: Any, feed: Any) -> tuple[Any, Any]:
    """The program inside one for several devices, and the feed of a list that has one for each device."""
    if not hasattr(program, "compiled"):
        return program, feed
    return program.compiled, feed[0] if isinstance(feed, list) and len(feed) == 1 else feed
