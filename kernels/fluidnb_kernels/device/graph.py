"""CUDA graphs: consecutive asynchronous calls are captured and launched as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.memory import flags
from fluidnb_kernels.cuda import Function, backend, gemm
from fluidnb_kernels.device import copies

flags.define_flag("cuda_graphs", True, "Runs on CUDAPlace launch kernels in a row as one CUDA graph.")

Call = tuple[Callable[..., Any], tuple[Any, ...]]

#: Fewer calls than these are not worth a graph.
_LEAST = 4
#: How often a device may refuse a graph before it is not asked any more.
_TRIES = 3
#: Functions that put work into the current stream, always the same, and neither wait nor look at the host.
_PURE = {gemm.launch, copies.within}


class Captured:
    """Calls that are captured when they are made, and one graph from then on; their kernels have been compiled.

    Where the device refuses the graph, nothing of it has been done: the calls are made one by one, and from then on if
    it does so again.

    Args:
        calls: functions with their arguments.
        ops: the operator of each.

    Attributes:
        under_way: the operator whose call was made last, for errors.
    """

    def __init__(self, calls: Sequence[Call], ops: Sequence[Any]) -> None:
        self.calls, self.ops = launches(calls), ops
        self.under_way = ops[0]
        self._graph: Any = None
        self._refused = 0

    def __call__(self) -> None:
        if self._refused == _TRIES:
            return self._one_by_one()
        cuda = backend.cupy().cuda
        try:
            if self._graph is None:
                self._graph = self._captured(cuda)
            self._graph.launch(cuda.get_current_stream())
        except Exception:
            self._graph = None
            self._refused += 1
            self._one_by_one()

    def _captured(self, cuda: Any) -> Any:
        stream = cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture(cuda.runtime.streamCaptureModeRelaxed)
            try:
                self._one_by_one()
            finally:
                graph = stream.end_capture()
        return graph

    def _one_by_one(self) -> None:
        for (function, args), op in zip(self.calls, self.ops, strict=True):
            self.under_way = op
            function(*args)


def joined(calls: Sequence[Call], ops: Sequence[Any]) -> tuple[list[Call], list[Any]]:
    """Calls with those in a row that a graph can hold put together.

    Args:
        calls: functions with their arguments.
        ops: the operator of each.

    Returns:
        The calls, and the first operator of each.
    """
    made: list[Call] = []
    of: list[Any] = []
    at = 0
    while at < len(calls):
        end = at
        while end < len(calls) and _is_pure(calls[end][0]):
            end += 1
        if end - at >= _LEAST:
            made.append((Captured(calls[at:end], ops[at:end]), ()))
            of.append(ops[at])
            at = end
            continue
        end = max(end, at + 1)
        made += calls[at:end]
        of += ops[at:end]
        at = end
    return made, of


def launches(calls: Sequence[Call]) -> list[Call]:
    """Calls with those of kernels as launches whose arguments are ready.

    Args:
        calls: functions with their arguments.

    Returns:
        As many calls.
    """
    return [f.launch(*args) if isinstance(f, Function) else (f, args) for f, args in calls]


def _is_pure(function: Any) -> bool:
    return isinstance(function, Function) or function in _PURE
