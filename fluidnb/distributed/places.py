"""Places: one program on several places of this process, each with a share of the batch."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from sys import intern
from typing import Any

import numpy as np

from fluidnb.distributed.connection import Connection
from fluidnb.distributed.group import Group
from fluidnb.distributed.shares import shares_of
from fluidnb.errors import EnforceNotMet, NotBuiltYet, OpValueError
from fluidnb.op import engine
from fluidnb.program import Program, hooks
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.feed_fetch import fetch_names
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler.distribute.places import place_programs
from fluidnb.values import LoDTensor
from fluidnb.values.lod import from_lengths
from fluidnb.values.place import CPUPlace, Place

_numbers = count()


class Places:
    """Runs a program on several places by threads, which share the parameters.

    Each place computes the gradients of its share of a batch. They are reduced over places, and the first place
    updates the parameters in the scope. Persistable variables that forward operators write, such as running averages,
    are separate on each place; those of the first are in the scope, as in Fluid.

    Threads and not processes: numpy computes large arrays in parallel in threads, too, and there a feed, a gradient
    and a parameter are never copied to another process. A small convolutional network, 512 rows, two cores: 1.4 times
    the throughput of one place by threads, 0.55 by processes (``tests/benchmarks/distributed.py``).

    Args:
        program: with or without optimizer.
        places: on the CPU.
        scope: of the persistable variables.
        scale: of the loss's gradient: ``mean`` over places, ``one``, or ``fed`` by the user.

    Example:
        >>> x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1])
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, bias_attr=False), y))
        >>> main, scope = fluid.default_main_program(), fluid.global_scope()
        >>> out = fluid.Executor().run(fluid.default_startup_program())
        >>> places = Places(main, [fluid.CPUPlace()] * 2, scope)
        >>> places.run({"x": np.zeros((4, 2), "float32"), "y": np.ones((4, 1), "float32")}, [loss])
        [array([1., 1.], dtype=float32)]
    """

    def __init__(self, program: Program, places: Sequence[Place], scope: Scope, scale: str = "mean") -> None:
        if any(place.kind != "cpu" for place in places):
            raise NotBuiltYet(
                "Several GPUs at once are not built: places of data parallel training are on the CPU.",
                expected="fluid.cpu_places(2)", received=", ".join(map(repr, places)),
                hint="one fluid.CUDAPlace(0) takes the whole batch.",
            )  # fmt: skip
        self.program, self.version, self.scale, self.scope = program, program.version, scale, scope
        number = next(_numbers)
        self.endpoints = [f"places-{number}:{k}" for k in range(len(places))]
        self.programs = place_programs(program, self.endpoints, scale)
        for k, other in enumerate(self.programs):
            other.random_seed = program.random_seed and program.random_seed + k  # other dropout on each place
        self._executors = [Executor(place) for place in places]
        self._scopes = [scope, *(Scope(scope) for _ in places[1:])]
        self._made = [_written(other) for other in self.programs]
        block = program.desc.block(0)
        persistable = {name for name, var in block.vars.items() if var.persistable()}
        self._states = [made & persistable for made in self._made]
        self._threads = ThreadPoolExecutor(max(1, len(places) - 1), thread_name_prefix="fluidnb place")
        self._running = threading.Lock()  # one run at a time
        self._under_way: set[int] = set()  # the threads of the run under way
        self._group = Group(len(places), deadline=None)  # threads end with an error or a result
        self._connections = [Connection(k, True, self._call) for k in range(len(places))]

    def __len__(self) -> int:
        return len(self.programs)

    # ---- fluidnb.op.engine.Engine

    def trainer(self, number: int) -> Connection:
        """The connection of a place."""
        return self._connections[number]

    def server(self, endpoint: str) -> Any:
        """See `fluidnb.op.engine.Engine`: there is none."""
        raise NotImplementedError("places have no server")

    def _call(self, endpoint: str, method: str, *args: Any, check: Callable[[], None]) -> Any:
        return getattr(self._group, method)(*args, check)

    # ---- runs

    def run(self, feed: Any, fetch_list: Any, return_numpy: bool = True) -> list[Any]:
        """Run the program once on all places.

        Args:
            feed: name -> value of the whole batch, which is shared equally, or a list with a feed for each place.
            fetch_list: variables or names.
            return_numpy: ndarrays (True) or LoDTensors (False) in the result.

        Returns:
            For each of ``fetch_list`` the values of all places, one after another along the first axis.

        Raises:
            OpValueError: the batch cannot be shared equally, the list of feeds has another length, or values of
                several places do not fit behind each other.
            EnforceNotMet: an operator of the program asks for a run of it.
        """
        if threading.get_ident() in self._under_way:
            raise EnforceNotMet(
                "A program on several places cannot run inside its own run.", expected="a run that is over",
                received="a run by one of its operators, such as py_func", hint="run a clone of the program there.",
            )  # fmt: skip
        feeds = self._feeds(feed)
        if hooks.before_run is not None:
            hooks.before_run(self.program, self.scope)
        for state, inside in zip(self._states[1:], self._scopes[1:], strict=True):
            _separate(state, inside)
        # the executor repeats a bound run where the names are the same objects
        names = [intern(name) for name in fetch_names(() if fetch_list is None else fetch_list, self.program.desc)]
        wanted = [[name for name in names if k == 0 or name in self._made[k]] for k in range(len(self))]

        def place(k: int) -> list[Any]:
            self._under_way.add(threading.get_ident())
            try:
                return self._executors[k].run(
                    self.programs[k], feeds[k], wanted[k], scope=self._scopes[k], return_numpy=False
                )
            except BaseException as e:
                self._group.fail(e)
                raise
            finally:
                self._under_way.discard(threading.get_ident())

        with self._running:
            rows = self._together(place)
        first_values = dict(zip(names, rows[0], strict=True))
        found = [{**first_values, **dict(zip(some, row, strict=True))} for some, row in zip(wanted, rows, strict=True)]
        return [_joined([values[name] for values in found], name, return_numpy) for name in names]

    def _together(self, place: Callable[[int], list[Any]]) -> list[list[Any]]:
        """The results of a function for each place; the first runs in this thread."""
        engine.attach(self, self.endpoints)
        others = [self._threads.submit(place, k) for k in range(1, len(self))]
        try:
            return [place(0), *(other.result() for other in others)]
        except BaseException as e:
            wait(others)
            first, self._group = self._group.error or e, Group(len(self), deadline=None)
            raise first from None  # the others say only that it has stopped them
        finally:
            engine.detach(self)

    def _feeds(self, feed: Any) -> list[Mapping[str, Any]]:
        """The feed of each place."""
        if isinstance(feed, list | tuple):
            if len(feed) != len(self):
                raise OpValueError(
                    "The list of feeds has another length than there are places.", expected=f"{len(self)} feeds",
                    received=f"{len(feed)} feeds", hint="a dict with the whole batch is shared among places.",
                )  # fmt: skip
            return list(feed)
        if feed is not None and not isinstance(feed, Mapping):
            return [feed] * len(self)  # Executor.run says what a feed is
        parts = {name: shares_of(name, value, len(self), "places") for name, value in (feed or {}).items()}
        return [{name: row[k] for name, row in parts.items()} for k in range(len(self))]


def _written(program: Program) -> set[str]:
    """Variables of the global block that a program's operators write, or that are fed."""
    block = program.desc.block(0)
    data = {name for name, var in block.vars.items() if var.is_data()}
    return data.union(*(op.output_arg_names() for op in block.ops))


def _separate(names: set[str], inside: Scope) -> None:
    """Give a scope inside another one separate variables of these names."""
    for name in names - inside.vars.keys():
        outer = inside.find_var(name)
        if outer is not None and isinstance(outer.value, LoDTensor) and outer.value.array is not None:
            inside.var(name).get_tensor().set(np.array(outer.value), CPUPlace())


def _joined(values: list[Any], name: str, return_numpy: bool) -> Any:
    """Values of all places, one after another."""
    if not all(isinstance(value, LoDTensor) for value in values):
        return values[0] if len(values) == 1 else values
    arrays, levels = [np.atleast_1d(np.asarray(value)) for value in values], [value.lod_ for value in values]
    if len({(array.shape[1:], len(lod)) for array, lod in zip(arrays, levels, strict=True)}) > 1:
        raise OpValueError(
            f"The values of {name} of several places do not fit behind each other.",
            expected="rows of the same shape, with as many levels of LoD",
            received=", ".join(f"{list(a.shape)} with {len(lod)}" for a, lod in zip(arrays, levels, strict=True)),
            hint="feed all places sequences, or none; pad them to one length in the feeds.",
        )  # fmt: skip
    whole = np.concatenate(arrays)
    if not any(levels):
        return whole if return_numpy else LoDTensor(whole, (), name=name)
    if return_numpy:
        raise EnforceNotMet(
            f"The fetched {name} consists of sequences, which an ndarray does not have.",
            expected="return_numpy=False", received="a tensor with LoD",
            hint="run(..., return_numpy=False) gives LoDTensors; np.array(tensor) drops the LoD.",
        )  # fmt: skip
    lengths = tuple(tuple(int(n) for lod in levels for n in np.diff(lod[i])) for i in range(len(levels[0])))
    return LoDTensor(whole, from_lengths(lengths), name=name)
