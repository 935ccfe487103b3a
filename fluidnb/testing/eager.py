"""Eager execution of one operator: binds its kernel, makes its calls, returns its outputs."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidnb.op import Binder, Clock, OpDef, OpDesc, check_desc, get_op
from fluidnb.op.binder import Call
from fluidnb.op.memory_policy import UnsharedMemory
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.replay.replay_memory import ordered
from fluidnb.runtime.scope import Scope
from fluidnb.testing.values import named, plain
from fluidnb.values import CPUPlace

Array = Any


class Fresh(UnsharedMemory):
    """A memory policy that allocates every array separately, filled with NaN or ones, to expose missing writes."""

    place, place_kind = CPUPlace(), "cpu"

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def fixed(self, name: str, outer: bool) -> bool:
        """No variable must keep its buffer."""
        return False

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A new array."""
        return ordered(_poisoned, shape, np.dtype(dtype), order)

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """A new array; there is one place."""
        return _poisoned(shape, np.dtype(dtype))

    def check(self) -> None:
        """See `fluidnb.op.memory_policy.Memory`: a single operator is never interrupted."""


def _poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array = np.empty(shape, dtype)
    if dtype.kind in "fc":
        array.fill(np.nan)
    else:
        array.reshape(-1).view(np.uint8).fill(1)
    return array


def run_op(
    type: str, inputs: Mapping[str, Any] | None = None, attrs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, int] | Iterable[str] | None = None, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Run one operator.

    Args:
        type: its type; gradient operators too.
        inputs: slot -> array, nested list, ``(array, lengths)``, LoDTensor, LoDTensorArray, or a list of arrays.
        attrs: attribute -> value; defaults are filled in.
        outputs: slots wanted, or slot -> how many variables; by default every output slot of the operator once. A
            gradient operator needs them.
        seed: the seed of its random numbers; 0 draws one.

    Returns:
        slot -> ndarray, or LoDTensor when it has sequences, or another value; a list where several were wanted.

    Example:
        >>> run_op("elementwise_add", {"X": [[1.0], [2.0]], "Y": [10.0]})["Out"]
        array([[11.],
               [12.]])
    """
    definition = get_op(type)
    slots = named(inputs or {})
    wanted = _wanted(definition, outputs)
    desc = OpDesc(
        type,
        {slot: [name for name, _ in row] for slot, row in slots.items()},
        {slot: [f"{slot}@out{i}" for i in range(n)] for slot, n in wanted.items()},
        dict(attrs or {}),
    )
    check_desc(definition, desc)
    scope = Scope()
    for row in slots.values():
        for name, value in row:
            scope.var(name).value = value
    run_desc(desc, scope, Clock(seed))
    out = {slot: [plain(scope.var(name).value) for name in names] for slot, names in desc.outs.items() if names}
    return {slot: values if wanted[slot] > 1 else values[0] for slot, values in out.items()}


def _wanted(definition: OpDef, outputs: Mapping[str, int] | Iterable[str] | None) -> dict[str, int]:
    if isinstance(outputs, Mapping):
        return dict(outputs)
    return dict.fromkeys(definition.outputs if outputs is None else outputs, 1)


def run_desc(desc: OpDesc, scope: Scope, clock: Clock) -> None:
    """Bind an operator over a scope and make its calls."""
    with np.errstate(all="ignore"):
        for function, args, kw in bind_desc(desc, scope, clock):
            function(*args, **kw)


def bind_desc(desc: OpDesc, scope: Scope, clock: Clock) -> list[Call]:
    """Bind an operator over a scope."""
    return Binder(LoweredOp(desc, 0, 0), Fresh(clock), scope).bind()
