"""Steps of optimizers in a row, for many parameters, as one launch: a table on the device has a row for each."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from fluidnb.values.device_context import Joined, JoinedOps
from fluidnb_kernels.cuda import BLOCKS, THREADS, Function, address_of

Call = tuple[Any, tuple[Any, ...]]
#: Columns of a row of each kernel's table, in the order of its arguments: addresses, numbers, and what blocks need.
_READ, _WRITTEN = ("p", "g", "s", "u", "v", "rate", "pow1", "pow2"), ("p_out", "s_out", "u_out", "v_out")
_NUMBERS, _BLOCKS = tuple("abcde"), ("n", "first", "blocks")
_PARAMETER = np.dtype([
    *((name, np.uint64) for name in (*_READ, *_WRITTEN)), *((name, np.float64) for name in _NUMBERS),
    *((name, np.int64) for name in _BLOCKS),
])  # fmt: skip
_POWERS = np.dtype(
    [(n, np.uint64) for n in ("pow1", "pow2", "next1", "next2")] + [(n, np.float64) for n in ("beta1", "beta2")]
)
#: How many arrays a kernel reads, and how many it writes behind them.
_ARRAYS = {"update": (len(_READ), len(_WRITTEN)), "advance": (2, 2)}


def together(calls: Sequence[Call], ops: Sequence[Any], to_device: Callable[[Any], Any]) -> Joined:
    """Calls with the steps of parameters that do not meet in memory as one launch for each kind of step.

    Args:
        calls: of a segment, in order.
        ops: the operator of each.
        to_device: copies an array of the host.
    """
    result = Joined([], [], [])
    for known, rows in groupby(zip(calls, ops, strict=True), key=lambda row: _kind(row[0]) != ""):
        run = list(rows)
        if known and len(run) > 1 and not _meet([call for call, _ in run]):
            _put_together(run, result, to_device)
        else:
            result.calls.extend(call for call, _ in run)
            result.ops.extend(op for _, op in run)
    return result


def _kind(call: Call) -> str:
    """``update`` or ``advance`` for such a launch, else nothing."""
    function = call[0]
    kind = function.name.partition("<")[0] if isinstance(function, Function) else ""
    return kind if kind in _ARRAYS else ""


def _meet(calls: Sequence[Call]) -> bool:
    """Whether some launches depend on each other, other than powers that are advanced behind steps that read them."""
    kinds = [_kind(call) for call in calls]
    readers, writers = defaultdict[tuple[int, int], set[int]](set), defaultdict[tuple[int, int], set[int]](set)
    for k, (call, kind) in enumerate(zip(calls, kinds, strict=True)):
        read, written = _ARRAYS[kind]
        arrays = call[1][3 : 3 + read + written]
        for i, array in enumerate(arrays):
            start = address_of(array)
            (readers if i < read else writers)[start, start + array.nbytes].add(k)
    for place, some in writers.items():
        (writer, *others) = some
        if others:
            return True
        for reader in readers[place] - {writer}:
            if kinds[writer] != "advance" or kinds[reader] != "update" or reader > writer:
                return True
    behind, written = 0, False  # of places that overlap
    for place in sorted({*readers, *writers}):
        start, end = place
        apart = start >= behind
        written = place in writers or (written and not apart)
        if written and not apart:
            return True
        behind = max(behind, end)
    return False


def _put_together(run: Sequence[tuple[Call, Any]], result: Joined, to_device: Callable[[Any], Any]) -> None:
    """Add one launch for each kernel: all steps, then the powers for the next ones, which read what steps read."""
    names = dict.fromkeys(call[0].name for call, _ in run)
    for name in sorted(names, key=lambda name: name.startswith("advance")):
        some = [(call, op) for call, op in run if call[0].name == name]
        call = _launch([call for call, _ in some], to_device) if len(some) > 1 else some[0][0]
        result.calls.append(call)
        result.ops.append(some[0][1])
        if len(some) > 1:
            text = f"{call[0].name} for {len(some)} parameters"
            result.made.append(JoinedOps([op for _, op in some], len(some), text))


def _launch(calls: Sequence[Call], to_device: Callable[[Any], Any]) -> Call:
    """The launch of a kernel over the rows of a table."""
    function = calls[0][0]
    kind = _kind(calls[0])
    arrays = sum(_ARRAYS[kind])
    table = np.zeros(len(calls), _PARAMETER if kind == "update" else _POWERS)
    width = int(function.name.rpartition(",")[2].rstrip("> ")) if kind == "update" else 1
    blocks = 0
    for row, (_, (_, _, _, *args)) in zip(table, calls, strict=True):
        for column, array in zip(table.dtype.names or (), args[:arrays], strict=False):
            row[column] = address_of(array)
        for column, number in zip((table.dtype.names or ())[arrays:], args[arrays:], strict=False):
            row[column] = number
        if kind == "update":
            row["first"], row["blocks"] = blocks, max(1, min(BLOCKS, -(-int(args[-1]) // (THREADS * width))))
            blocks += int(row["blocks"])
    name = function.name.replace(kind, kind + "_all", 1)
    grid = blocks if kind == "update" else -(-len(calls) // THREADS)
    return function.source[name], ((grid,), (THREADS,), 0, to_device(table.view(np.uint8)), np.int32(len(calls)))
