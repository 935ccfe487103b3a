"""CUDA graphs: consecutive asynchronous calls are captured and launched as a whole."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from fluidnb_kernels.cuda import Function, backend, gemm
from fluidnb_kernels.device import copies

Call = tuple[Callable[..., Any], tuple[Any, ...]]

#: Fewer calls than these are not worth a graph.
_LEAST = 4
#: How often a device may refuse a graph before it is not asked any more.
_TRIES = 3
#: Functions that put work into the current stream, always the same, and neither wait nor look at the host.
_PURE = {gemm.launch, copies.within}


class Captured:
    """Calls that are captured when they are made, and one graph from then on; made one by one where that fails."""

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
    """Calls with those in a row that a graph can hold put together, and the first operator of each."""
    pairs: list[tuple[Call, Any]] = []
    for pure, run in groupby(zip(calls, ops, strict=True), key=lambda pair: _is_pure(pair[0][0])):
        row = list(run)
        if pure and len(row) >= _LEAST:
            row = [((Captured(*zip(*row, strict=True)), ()), row[0][1])]
        pairs += row
    return [call for call, _ in pairs], [op for _, op in pairs]


def launches(calls: Sequence[Call]) -> list[Call]:
    """Calls with those of kernels as launches whose arguments are ready."""
    return [f.launch(*args) if isinstance(f, Function) else (f, args) for f, args in calls]


def _is_pure(function: Any) -> bool:
    return isinstance(function, Function) or function in _PURE
