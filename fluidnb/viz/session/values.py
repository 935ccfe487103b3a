"""Summaries of the tensors that a paused session wrote last and reads next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.view import has_value
from fluidnb.debug.writes import wrote
from fluidnb.op import EMPTY
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.values.model import TensorSummary
from fluidnb.viz.values.reader import read_tensor

#: Variables of each kind read at most.
_MOST = 6


@dataclass(frozen=True, slots=True)
class Values:
    """The tensors around the position of a session.

    Args:
        reads: inputs of the next operator.
        wrote: outputs of the last step.
        fetched: fetched values, after the end of the run.
        more: number of further outputs of the last step.
    """

    reads: tuple[TensorSummary, ...] = ()
    wrote: tuple[TensorSummary, ...] = ()
    fetched: tuple[TensorSummary, ...] = ()
    more: int = 0


def read_values(session: Session) -> Values:
    """Reads the tensors around the position of a session.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", 1.0))
        >>> d = fluid.debug(feed={}); at = d.step(); values = read_values(d); d.close()
        >>> values.wrote[0].name, values.wrote[0].values, values.reads[0].name
        ('fill_constant_0.tmp_0', '[1, 1]', 'fill_constant_0.tmp_0')
    """
    if session.closed or session.snapshot.state not in ("paused", "done"):
        return Values()
    return session.inspect(_read)


def _read(debugger: Debugger) -> Values:
    tape, names = debugger.tape, debugger.snapshot.wrote
    machine = tape.machine
    here = machine.here
    reads = _summaries(() if here is None else here.reads(), machine.stack[-1].scope)
    fetched = _summaries(machine.plan.fetches, machine.stack[0].scope) if tape.done else ()
    if not names or tape.at == tape.runs[-1].first:
        return Values(reads, (), fetched)
    undo = tape.last()
    inner = undo.stack[-1]
    scope = inner.scope if inner.pc < len(inner.block.ops) else undo.stack[-2].scope  # after leaving a block
    names = tuple(name for name in names if (v := scope.find_var(name)) is not None and wrote(undo, v))
    return Values(reads, _summaries(names[:_MOST], scope), fetched, max(0, len(names) - _MOST))


def _summaries(names: Iterable[str], scope: Any) -> tuple[TensorSummary, ...]:
    summaries = []
    for name in list(dict.fromkeys(names))[:_MOST]:
        variable = None if name == EMPTY else scope.find_var(name)
        if variable is not None and type(variable.value) is LoDTensor and has_value(variable.value):
            summaries.append(read_tensor(variable.value, name))
    return tuple(summaries)
