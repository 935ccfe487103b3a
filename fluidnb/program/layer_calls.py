"""Layer calls: all or nothing, and results that are called as the user calls them.

``h = layers.fc(x, 10)`` may name its result ``h`` and its weight ``h.w_0``. The wish comes from `hooks.name_hint`;
without the hook, names are Fluid's: ``fc_0.tmp_0``, ``fc_0.w_0``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fluidnb.arguments import Signature
from fluidnb.program import hooks
from fluidnb.program import unique_name as names
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc

if TYPE_CHECKING:
    from fluidnb.program.parameter import Parameter
    from fluidnb.program.variable import Variable

P = ParamSpec("P")
R = TypeVar("R")


class LayerCall(names.Watch):
    """The outermost layer call that runs now.

    Args:
        hint: how its results want to be called, or None.

    Attributes:
        parameters: the parameters that it made or took, in order.
        made: the descriptions that it made, in order.
        starts: how many operators a block had when the call first wrote to it.
    """

    def __init__(self, hint: hooks.Hint | None) -> None:
        super().__init__()
        self.hint = hint
        self.parameters: list[Parameter] = []
        self.made: list[BlockDesc | OpDesc | VarDesc] = []
        self.starts: dict[BlockDesc, int] = {}

    def undo(self) -> None:
        """Take out all that the call made, and set the counters back."""
        for desc in reversed(self.made):
            if isinstance(desc, BlockDesc):
                if desc in desc.program.blocks:
                    desc.program.remove_blocks(desc.idx)
            elif isinstance(desc, VarDesc):
                if desc.block is not None and desc.block.vars.get(desc.name()) is desc:
                    desc.block.remove_var(desc.name())
            elif desc.block is not None:
                ops = desc.block.ops
                desc.block.remove_op(next(i for i in range(len(ops) - 1, -1, -1) if ops[i] is desc))
        super().undo()


#: The outermost layer call, None outside layers.
call: LayerCall | None = None


def layer(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a layer: its arguments are checked, its result knows its parameters, and an error leaves nothing.

    Args:
        function: appends operators and gives a variable, or a list or tuple of them.

    Returns:
        The function, wrapped. Layers called inside it take part in the outermost call. It takes ``main_program`` and
        ``startup_program`` too, as layers of version 0.11 did: the programs that it adds to.

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> @layer
        ... def broken():
        ...     block.create_var(name="x", shape=[1], dtype="float32")
        ...     raise ValueError("no.")
        >>> broken()
        Traceback (most recent call last):
        ValueError: no.
        >>> block.has_var("x")
        False

    Source: return values of layers, Fluid's Python API design.
    """

    signature = Signature(function)

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if "main_program" in kwargs or "startup_program" in kwargs:
            with _programs(kwargs.pop("main_program", None), kwargs.pop("startup_program", None)):
                return wrapped(*args, **kwargs)
        taken, named = signature.checked(args, kwargs)
        if call is not None:
            before = len(call.parameters)
            result = function(*taken, **named)
            _own(call, result, before)
            return result
        hint = None if hooks.name_hint is None else hooks.name_hint(sys._getframe(1))
        with all_or_nothing(hint) as this:
            result = function(*taken, **named)
        _own(this, result, 0)
        _call_results(this, result)
        return result

    wrapped.argument_kinds = signature  # type: ignore[attr-defined]
    return wrapped


def _programs(main: Any, startup: Any) -> AbstractContextManager[None]:
    """Sets the programs that a layer was given as the default ones."""
    from fluidnb.program import defaults  # which imports layers

    return defaults.program_guard(defaults.default_main_program() if main is None else main, startup)


@contextmanager
def all_or_nothing(hint: hooks.Hint | None = None) -> Iterator[LayerCall]:
    """Take out what was made inside a ``with`` when the body raises; inside a layer, the layer does.

    Args:
        hint: how the results want to be called.

    Yields:
        The outermost layer call.

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> with all_or_nothing():
        ...     x = block.create_var(name="x", shape=[1], dtype="float32")
        >>> block.has_var("x")
        True
    """
    global call
    if call is not None:
        yield call
        return
    call = this = LayerCall(hint)
    outer, names.watch = names.watch, this
    try:
        yield this
    except BaseException:
        this.undo()
        raise
    finally:
        call, names.watch = None, outer


def layer_name(layer_type: str) -> str:
    """The start of the names of what a layer makes.

    Args:
        layer_type: the layer, for example ``fc``.

    Returns:
        The prefix that the user's line suggests, else ``fc_0``, ``fc_1``, ….

    Example:
        >>> with names.guard():
        ...     layer_name("fc")
        'fc_0'
    """
    if call is None or call.hint is None:
        return names.generate(layer_type)
    return call.hint.prefix if call.hint.targets else names.generate(f"{call.hint.prefix}.{layer_type}")


def note_parameter(parameter: Parameter) -> None:
    """Count a parameter among those of the layer call that runs; no effect outside layers.

    A parameter has a twin in the startup program; the first one counts, which is that of the main program.

    Args:
        parameter: made by the call, or taken by its name.
    """
    if call is not None and not any(p.name == parameter.name for p in call.parameters):
        call.parameters.append(parameter)


def note_made(desc: BlockDesc | OpDesc | VarDesc) -> None:
    """Note that the layer call that runs made a description; no effect outside layers.

    Args:
        desc: it, in its place.
    """
    if call is not None:
        call.made.append(desc)
        if isinstance(desc, OpDesc) and desc.block is not None:
            call.starts.setdefault(desc.block, len(desc.block.ops) - 1)


def _made(this: LayerCall, result: object) -> list[Variable | None]:
    """The results in order; None for those that the call did not make."""
    from fluidnb.program.variable import Variable

    results: list[object] = list(result) if isinstance(result, list | tuple) else [result]
    return [v if isinstance(v, Variable) and v.name in this.generated else None for v in results]


def _own(this: LayerCall, result: object, before: int) -> None:
    """Record in the results which parameters their layer created."""
    for variable in _made(this, result):
        if variable is not None:
            variable.__dict__["_params"] = this.parameters[before:]
            variable.desc.saved = None


def _call_results(this: LayerCall, result: object) -> None:
    """Call the results as the user's line does."""
    if this.hint is not None:
        for variable, target in zip(_made(this, result), this.hint.targets, strict=False):
            if variable is not None and not variable.persistable:
                _rename(this, variable, target)


def _rename(this: LayerCall, variable: Variable, target: str) -> None:
    """Call a fresh variable ``h``, or the first of ``h_1``, ``h_2``, … that its block does not see yet.

    Only what the call appended can mention the variable, so only that is checked. A counter remembers how far the
    names are taken: ``for …: h = layers.fc(h, 10)`` must not look through all of them each time.
    """
    home = variable.desc.block
    assert home is not None
    while True:
        number = names.generator.count(f"called {target}")
        name = f"{target}_{number}" if number else target
        if not variable.block.has_var_recursive(name):
            break
    home.rename_var(variable.name, name, this.starts.get(home, 0))
