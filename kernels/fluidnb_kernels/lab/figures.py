"""Costs of a kernel: times on the processor, launches and bytes on the emulator."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from fluidnb_kernels.cuda import Function, backend
from fluidnb_kernels.lab.cases import Case
from fluidnb_kernels.lab.launch import Launcher

#: Seconds for which a kernel is timed.
_LONG = 0.05
#: How often a GPU does it before one waits for it.
_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """One launch."""

    kernel: str
    grid: tuple[int, ...]  # blocks
    block: tuple[int, ...]  # threads of a block
    shared: int  # bytes of dynamic shared memory
    arguments: int  # bytes of the arrays that it is given
    read: int  # bytes of those that it may only read

    @property
    def threads(self) -> int:
        """The number of threads."""
        return prod(self.grid) * prod(self.block)

    @property
    def written(self) -> int:
        """Bytes of the arrays that it may write."""
        return self.arguments - self.read


def launch_facts(calls: Sequence[Any], launcher: Launcher | None = None) -> tuple[LaunchFacts, ...]:
    """The launches among what a kernel emitted."""
    out = []
    for function, args, _ in calls:
        if not isinstance(function, Function):
            continue
        grid, block, shared, *given = args
        arrays = {id(a): a.nbytes for a in given if isinstance(a, np.ndarray)}
        read = 0
        if launcher is not None:
            part = next(p for p in launcher.text.parts if p.name == function.name.partition("<")[0])
            pairs = zip(part.parameters, given, strict=True)
            read = sum(a.nbytes for p, a in pairs if isinstance(a, np.ndarray) and not p.written)
        out.append(LaunchFacts(function.name, tuple(grid), tuple(block), shared, sum(arrays.values()), read))
    return tuple(out)


def time_of(case: Case, place: str = "cpu") -> float:
    """Seconds that the calls of a case take."""
    with np.errstate(all="ignore"):
        calls = case.bind(place, case.scope(place))
        wait = backend.cupy().cuda.get_current_stream().synchronize if place == "gpu" else None
        repeat = _AT_ONCE if wait is not None else 1
        best, end = float("inf"), perf_counter() + _LONG
        while perf_counter() < end or best == float("inf"):
            start = perf_counter()
            for function, args, kw in calls * repeat:
                function(*args, **kw)
            if wait is not None:
                wait()
            best = min(best, (perf_counter() - start) / repeat)
    return best
