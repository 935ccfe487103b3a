"""Links of an explorer to its session: cells, position of the debug session, weak callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

from fluidnb.debug.snapshot import Snapshot
from fluidnb.program import Program
from fluidnb.program.origin import fragment_key
from fluidnb_magics.session.workbench import Workbench


def weakly(method: Callable[..., Any]) -> Callable[..., None]:
    """A method as a function that does not keep its object alive, and does nothing when that is gone.

    Args:
        method: a bound method.

    Returns:
        The function.

    Example:
        >>> names = {"x": 1}
        >>> class Counter:
        ...     def add(self, n): names["x"] += n
        >>> counter = Counter(); add = weakly(counter.add); add(2); del counter; add(2); names["x"]
        3
    """
    held = WeakMethod(method)

    def call(*args: Any) -> None:
        found = held()
        if found is not None:
            found(*args)

    return call


def cell_spans(bench: Workbench, program: Program) -> list[dict[str, Any]]:
    """The cells that built a program, with the operators that each made.

    Args:
        bench: the session.
        program: the program.

    Returns:
        For each cell that made some: title, number of its prompt, and spans of operators as [block, first, last].
    """
    spans: dict[Any, list[list[int]]] = {}
    for block in program.desc.blocks:
        before = None
        for index, op in enumerate(block.ops):
            key = fragment_key(getattr(op.view, "origin", None))
            if key is not None and key == before:
                spans[key][-1][2] = index
            elif key is not None:
                spans.setdefault(key, []).append([block.idx, index, index])
            before = key
    return [
        {"title": placed.title, "number": placed.cell.number, "spans": spans[placed.key]}
        for placed in bench.cells
        if placed.key in spans
    ]


def stand_of(snapshot: Snapshot) -> dict[str, Any]:
    """The position of a debug session, as plain data.

    Args:
        snapshot: the session at that moment.

    Returns:
        Its state, the operator that comes next as [block, index] or None, the blocks around it, and it in a line.

    Example:
        >>> from fluidnb.debug.stop import Stop, StopKind
        >>> stand_of(Snapshot("idle", Stop(StopKind.IDLE)))
        {'state': 'idle', 'op': None, 'frames': [], 'text': 'idle at step 0, no run yet'}
    """
    op = snapshot.op
    return {
        "state": snapshot.state,
        "op": None if op is None else [op.block, op.index],
        "frames": [[frame.block, frame.pc, frame.iteration] for frame in snapshot.frames],
        "text": snapshot.text,
    }
