"""Hooks of programs, set by higher packages: values to show, name hints and runs.

Example:
    >>> from fluidnb.program import hooks
    >>> hooks.last_value is None or callable(hooks.last_value)
    True
"""

from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class Hint(NamedTuple):
    """Name hint for the results of a layer call.

    Args:
        prefix: the start of the names of the parameters that the call makes, for example ``h`` for ``h.w_0``; without
            targets the layer's type follows, ``net`` for ``net.fc_0.w_0``.
    """

    prefix: str
    # the names to which the user assigns the result, in order; empty when the call is part of an expression
    targets: tuple[str, ...] = ()


#: ``last_value(variable)`` gives the last known value as one short text, or None. Set by the runtime.
last_value: Callable[[Any], str | None] | None = None
#: ``set_value(name, array)`` gives a variable of the global scope a value. Set by the runtime.
set_value: Callable[[str, Any], None] | None = None
#: ``global_scope()`` gives the default scope of executors. Set by the runtime.
global_scope: Callable[[], Any] | None = None
#: ``name_hint(frame)`` reads the user's line in ``frame`` and gives a `Hint`, or None for Fluid's counters.
name_hint: Callable[[FrameType], Hint | None] | None = None
#: ``before_run(program, scope)`` is called when a program is about to run that was not run like this just before; it
#: may initialize variables of the scope. Set by the magics.
before_run: Callable[[Any, Any], None] | None = None
#: ``normalized_weight(attr, shape, make)`` makes a weight of a length and a direction. Set by the layers.
normalized_weight: Callable[[Any, Any, Any], Any] | None = None
#: ``infer_block(block, scope)`` makes a block ready to run in a scope and infers shapes. Set by the runtime.
infer_block: Callable[[Any, Any], Any] | None = None
#: ``run_block(block, scope, place)`` runs a block. Set by the runtime.
run_block: Callable[[Any, Any, Any], Any] | None = None
#: ``eval_block(block, targets, scope, place)`` runs what the targets need and gives their values. Set by the runtime.
eval_block: Callable[[Any, Any, Any, Any], Any] | None = None
#: ``body_ends(block, opener, role)`` is called at the end of the body of a ``with`` that fills a block, before the
#: operator that runs the block is appended. ``opener`` is the object whose block it is, a While for example, ``role``
#: says which one where it has several. It may append to the block. Set by the magics while a cell runs.
body_ends: Callable[[Any, Any, str], object] | None = None
#: ``debug_prompt()`` gives the function that prompts for the next command of a paused debug session, called with the
#: session; or None without an interactive user. Set by the terminal.
debug_prompt: Callable[[], Callable[[Any], None] | None] | None = None
#: ``training_begins(engine)`` is called before the trainers of a `LocalEngine` start. Set while a script is debugged.
training_begins: Callable[[Any], None] | None = None
#: ``debug_began(session)`` is called when a debug session is there, before anything runs in it. Set by the magics.
debug_began: Callable[[Any], None] | None = None
