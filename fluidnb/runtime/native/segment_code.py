"""Native code of a segment: which calls it replaces, and when: at once, or between two runs when it is compiled."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidnb.errors import EnforceNotMet, NotFound
from fluidnb.memory import flags

if TYPE_CHECKING:
    from pathlib import Path

    from fluidnb.runtime.native.matrix_products import Products
    from fluidnb.runtime.native.native_loop import NativeLoop
    from fluidnb.runtime.native.sized_code import Sample, SizedCode
    from fluidnb.runtime.native.statements import Statement

#: Runs of a segment, and seconds in them, after which it is compiled in the background: about what a compiler takes.
OFTEN, LONG = 16, 0.2
#: Calls that one function makes: compilers take longer than in proportion for more.
MOST = 128
#: Bytes of an array from which on numpy's functions go through it in parts.
LARGE = 1 << 19
#: Multiplications of a product of matrices from which on C code may take its place: more than OpenBLAS computes without
#: a second thread.
LEAST_PRODUCT = 1 << 18
#: Characters of functions that are compiled together.
SIZE = 60_000


class Calls(NamedTuple):
    """The calls of a segment: what a run makes.

    Attributes:
        calls: callable and arguments of each.
        ops: the operator of each call, for errors.
        units: the operator of each call, where operators with a common call count as one: Ctrl-C stops between units.
    """

    calls: list[tuple[Any, tuple[Any, ...]]]
    ops: list[Any]
    units: list[Any]


def large_calls(calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> tuple[int, int] | None:
    """The numbers of the first and the last call with a large array; None where there are not two."""
    found = [k for k, (function, args) in enumerate(calls) if _is_large(function, args)]
    return (found[0], found[-1]) if len(found) > 1 else None


def _is_large(function: Any, args: Sequence[Any]) -> bool:
    """Whether an argument is a large array."""
    more = function.keywords.values() if type(function) is partial else ()
    return any(type(x) is np.ndarray and x.nbytes >= LARGE for x in (*args, *more))


def nothing() -> None:
    """A call whose work another one does."""


class NativeCall(NamedTuple):
    """One call of native code, or several with one text, for steps of an operator.

    Attributes:
        ops: the operators of which it makes calls, in order.
        replaced: how many calls of kernels it makes.
        loops: how many nests of loops it has.
        text: its C code.
        whole: whether it is a loop of the program, with all iterations.
        times: how many calls of native code it is.
    """

    ops: list[Any]
    replaced: int
    loops: int
    text: str
    whole: bool = False
    times: int = 1


class Compiled(NamedTuple):
    """Replacement of the calls of a segment.

    Attributes:
        calls: the calls with native ones among them.
        native: a description of the native ones.
        loop: the loop of which the segment is the body, as one call; None where there is none.
    """

    calls: Calls
    native: list[NativeCall]
    loop: NativeLoop | None


class SegmentCode:
    """The calls of a segment, and those with native code in their place once it is compiled.

    Args:
        plain: the calls that kernels emitted.
        joined: the same with those that are one call of a library; at the same places.
        lives: gives the buffers of the segment's own arrays; see `fluidnb.runtime.replay.buffer_placement.placed`.
        condition: the array of the condition, where the segment is the whole body of a loop.

    Attributes:
        in_numpy: what a run without native code makes.
        in_order: the plain calls, with products of matrices as in native code.
        best: what a run makes.
        loop: what makes all iterations, once it is compiled.
        waiting: whether runs are still counted; calls that stand for many are taken apart after some only, since with
            sequences of other lengths they are others.
        native: the calls of native code among them, but products of matrices.
        products: products of matrices among them.
        settled: whether ``best`` stays as it is from now on.
    """

    __slots__ = (
        "_built", "_calls", "_condition", "_lives", "_products", "_runs", "_seconds", "_sized", "best", "in_numpy",
        "in_order", "joined", "loop", "native", "plain", "products", "settled", "waiting",
    )  # fmt: skip

    def __init__(
        self, plain: Calls, joined: Calls, lives: Callable[[], dict[int, Any]], condition: Any = None
    ) -> None:
        self.plain, self.joined = plain, joined
        self.best = self.in_numpy = joined
        self.in_order = plain
        self._calls = tuple(joined.calls)  # Ctrl-C replaces one in the list until it is handled
        self._lives, self._runs, self._condition, self._seconds = lives, 0, condition, 0.0
        self._built = False
        self._sized: SizedCode | None = None
        self.loop: NativeLoop | None = None
        self.waiting, self.settled = True, False
        self.native: list[NativeCall] = []
        self.products: list[NativeCall] = []
        self._products: Products | None = None

    def take_products(self) -> None:
        """Let C code compute large products of matrices from the first run on, where this process has it."""
        self._products = products_of(self.joined.calls)
        self.best = self._with_products(self.joined)
        self.in_order = self.best if self.plain is self.joined else self._with_products(self.plain)

    def _with_products(self, calls: Calls) -> Calls:
        """The calls with products of matrices in C."""
        if self._products is None or not self._products.ready:
            return calls
        calls, self.products = self._products.replace(calls, self._lives)
        return calls

    def first(self) -> None:
        """Compile it now, where FLAGS_native is ``require``."""
        if flags.values["native"] == "require" and not self._built:
            from fluidnb.runtime.native.many_calls import any_of

            self._built = True
            self.waiting = any_of(self.joined)
            self._build(whole=not self.waiting)

    def replace(self, by: Callable[[Calls, dict[int, Any]], Calls]) -> None:
        """Let a function change the calls that are made without native code, where there is none yet."""
        if not self.native:
            self.in_numpy = by(self.joined, self._lives())
            self.best = self._with_products(self.in_numpy)

    def use(self, sized: SizedCode, sample: Sample) -> None:
        """Take native code that serves many sizes, or offer this binding for the comparison."""
        if flags.values["native"] == "auto":
            self._sized = sized
            made = sized.calls(sample)
            if made is None:
                sized.offer(sample)
            else:
                self.best, self.native = self._with_products(made[0]), made[1]

    def count(self, seconds: float) -> None:
        """Count a run; after some, let it be compiled in the background."""
        self._runs += 1
        self._seconds += seconds
        if _state.broken:
            return
        if self._sized is not None and self._sized.count(seconds, OFTEN, LONG):
            _state.submit(self._sized)
        if self._runs >= OFTEN and self._seconds >= LONG:
            self.waiting = False
            _state.submit(self)
            if self._products is not None:
                self._products.offer(_state.submit)

    def build(self) -> None:
        """Compile all of it and use it from the next run on."""
        self._build(whole=True)

    def _build(self, whole: bool) -> None:
        calls, lives = self._with_products(self.joined._replace(calls=list(self._calls))), self._lives()
        if whole:
            from fluidnb.runtime.native.many_calls import taken_apart

            calls, lives = taken_apart(calls, lives)
        try:
            with _of_files():
                self.best, self.native, self.loop = with_native(calls, lives, self._condition)
            self.settled = whole
        finally:
            if whole:
                self._lives, self._calls = dict, ()


def products_of(calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> Products | None:
    """The products in C for large ones among some calls; None without such calls, or where there can be none."""
    if flags.values["native"] == "off" or not any(_may_be_product(*call) for call in calls):
        return None
    from fluidnb.runtime.native.matrix_products import products

    found = products()
    if found is not None:
        with _of_files():
            found.decide()
    return found


def with_products(calls: list[tuple[Any, tuple[Any, ...]]], op: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The calls of an operator as a run makes them, with large products of matrices in C where it has them."""
    found = products_of(calls)
    if found is None or not found.ready:
        return calls
    return found.replace(Calls(calls, [op] * len(calls), [op] * len(calls)), dict)[0].calls


def _may_be_product(function: Any, args: Sequence[Any]) -> bool:
    """Whether a call is a large product of matrices."""
    if getattr(function, "func", function) not in (np.dot, np.matmul):
        return False
    out = args[2] if len(args) > 2 else function.keywords["out"]
    return bool(out.size * args[0].shape[-1] >= LEAST_PRODUCT)


@contextmanager
def _of_files() -> Iterator[None]:
    """Say what to do where the cache folder or the loader fails."""
    try:
        yield
    except OSError as error:
        raise EnforceNotMet(
            "Native code cannot be kept or cannot be loaded.", received=str(error),
            hint="set FLUIDNB_CACHE to a folder that you can write to; FLAGS_native=off does without.",
        ) from error  # fmt: skip


def with_native(plain: Calls, lives: dict[int, Any], condition: Any = None) -> Compiled:
    """The calls with native ones in the place of those that C code can make, and as a loop with this condition."""
    # Imported by the first compilation, since most processes make none.
    from fluidnb.runtime.native.c_source import HEAD, CFunction
    from fluidnb.runtime.native.compiler import library
    from fluidnb.runtime.native.functions import bound_call
    from fluidnb.runtime.native.loop_source import CLoop
    from fluidnb.runtime.native.native_loop import NativeLoop
    from fluidnb.runtime.native.statements import statement_of

    statements = [statement_of(call, i) for i, call in enumerate(plain.calls)]
    groups = groups_of([s for s in statements if s is not None and s.kind != "pick"], plain)
    if not groups:
        return Compiled(plain, [], None)
    every = [statement for statement in statements if statement is not None]
    loop = None if condition is None or len(every) < len(statements) else CLoop(every, lives, condition)
    functions = [CFunction(group, lives) for group in groups]
    paths: dict[str, Path] = {}
    for texts in files_of([*(f.text for f in functions), *([loop.text] if loop else [])]):
        paths.update(dict.fromkeys(texts, library(HEAD + "".join(texts))))
    units = units_of(plain.units, [(group[0].call, group[-1].call) for group in groups])
    left = {i: call for i, call in enumerate(plain.calls) if call[0] is not nothing}
    for group, function in zip(groups, functions, strict=True):
        first, last = group[0].call, group[-1].call
        left[first] = bound_call(paths[function.text], function.name, function.table, function.kept)
        for i in range(first + 1, last + 1):
            left.pop(i, None)
    whole = Calls(list(left.values()), *([row[i] for i in left] for row in (plain.ops, units)))
    made: dict[Any, NativeCall] = {}
    for group, function in zip(groups, functions, strict=True):
        ops = list(dict.fromkeys(plain.ops[s.call] for s in group))
        key = (function.name, *map(id, ops))
        one = made.get(key, NativeCall(ops, 0, len(function.regions), function.text, times=0))
        made[key] = one._replace(replaced=one.replaced + len(group), times=one.times + 1)
    native = list(made.values())
    if loop is None:
        return Compiled(whole, native, None)
    native.append(NativeCall(list(dict.fromkeys(plain.ops)), len(every), loop.nests, loop.text, whole=True))
    return Compiled(whole, native, NativeLoop(paths[loop.text], loop, condition))


def files_of(texts: Sequence[str]) -> list[list[str]]:
    """Different texts of functions, as many together as a compiler takes a second for."""
    files: list[list[str]] = []
    for text in dict.fromkeys(texts):
        if files and sum(map(len, files[-1])) + len(text) <= SIZE:
            files[-1].append(text)
        else:
            files.append([text])
    return files


def groups_of(statements: Sequence[Statement], plain: Calls) -> list[list[Statement]]:
    """Statements of calls with nothing between, few enough for a compiler; calls of one operator stay together."""
    groups: list[list[Statement]] = []
    ops = plain.ops
    for statement in statements:
        call = statement.call
        if groups:
            last = groups[-1][-1].call
            if all(function is nothing for function, _ in plain.calls[last + 1 : call]):
                size = len(groups[-1])
                if size < MOST or (ops[call] is ops[last] and size < 4 * MOST):
                    groups[-1].append(statement)
                    continue
        groups.append([statement])
    return groups


def units_of(before: list[Any], spans: Sequence[tuple[int, int]]) -> list[Any]:
    """For each call its unit before, or the first of the units that a native call joins with it.

    Args:
        spans: the first and the last call that each native call stands for.
    """
    units: list[Any] = []
    joined = {i for first, last in spans for i in range(first + 1, last + 1)}
    for i, unit in enumerate(before):
        same = i > 0 and (unit is before[i - 1] or i in joined)
        units.append(units[-1] if same else unit)
    return units


class _State:
    """The thread that compiles, and whether compiling has failed in this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked process, which has no such thread, or after a failure."""
        self.broken = False
        self._jobs: queue.SimpleQueue[SegmentCode | SizedCode | Products] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._left = 0
        self._idle = threading.Condition(self._lock)

    def submit(self, code: SegmentCode | SizedCode | Products) -> None:
        """Compile a segment, what bindings of many sizes share, or products of matrices in the background."""
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="compiler of native code", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # in a browser, where there is no compiler either
                    self.broken = True
                    return
                self._thread = thread
            self._left += 1
            self._jobs.put(code)

    def wait(self, seconds: float) -> bool:
        """Wait until all segments are compiled; whether they are."""
        with self._idle:
            return self._idle.wait_for(lambda: self._left == 0, seconds)

    def _work(self) -> None:
        left = True
        while left:  # then the thread ends: a process without threads can be forked
            code = self._jobs.get()
            try:
                if not self.broken:
                    code.build()
            except Exception as error:
                self._give_up(error)
            finally:
                del code
                with self._idle:
                    self._left -= 1
                    left = self._left > 0
                    if not left:
                        self._thread = None
                    self._idle.notify_all()

    def _give_up(self, error: Exception) -> None:
        """Say once why there is no native code, unless there is no compiler; numpy computes the same."""
        self.broken = True
        if isinstance(error, NotFound):
            return
        import logging  # 6 ms of start-up

        logging.getLogger("fluidnb").warning("Programs run without native code. %s", error)


_state = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)


def wait_for_native_code(seconds: float = 60.0) -> bool:
    """Wait until everything that is being compiled in the background is in use.

    Args:
        seconds: how long at most.

    Returns:
        Whether nothing is left to compile.

    Example:
        >>> wait_for_native_code()
        True
    """
    return _state.wait(seconds)


#: Begin anew after a failure.
forget: Callable[[], None] = _state.forget
