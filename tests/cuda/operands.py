"""Operators run both ways on operands given by slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from tests.cuda.twins import OnDevice, run_twins


def numbers(*shape: int, seed: int = 1, low: float = -1.0, high: float = 1.0) -> np.ndarray[Any, Any]:
    """Numbers from a range."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def twins(
    type: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | Mapping[str, str] = (),
) -> Scope:
    """Run an operator with numpy and on the emulator, and compare.

    Args:
        type: the operator.
        inputs: slot -> array, or another value; its variable is called as the slot. A list has one for each variable.
        attrs: attribute -> value.
        outputs: slots, or slot -> variable.

    Returns:
        The scope after numpy's run.
    """
    desc, scope = _given(type, inputs, attrs, outputs)
    run_twins(desc, scope)
    return scope


def in_place(type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Mapping[str, str]) -> Scope:
    """Run an operator on the emulator with outputs in the memory of inputs.

    Args:
        type: the operator.
        inputs: as in `twins`.
        attrs: attribute -> value.
        outputs: slot -> variable, which is an input's.

    Returns:
        The scope.
    """
    desc, scope = _given(type, inputs, attrs, outputs)
    before = {name: scope.find_var(name).value.array for name in outputs.values()}
    _run(desc, scope, _InPlace(Clock(1)))
    assert all(scope.find_var(name).value.array is array for name, array in before.items())
    return scope


def emulated(type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
    """Run an operator on the emulator alone.

    Args:
        type: the operator.
        inputs: as in `twins`.
        attrs: attribute -> value.
        outputs: slots.

    Returns:
        Slot -> array.
    """
    desc, scope = _given(type, inputs, attrs, outputs)
    _run(desc, scope, OnDevice(Clock(1)))
    return {slot: scope.find_var(f"{slot}@out").value.array for slot in outputs}


def _run(desc: OpDesc, scope: Scope, memory: OnDevice) -> None:
    for function, args, kw in Binder(LoweredOp(desc, 0, 0), memory, scope).bind():
        function(*args, **kw)


class _InPlace(OnDevice):
    def is_shared(self, array: Any) -> bool:
        return False


def _given(
    type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any] | None, outputs: Sequence[str] | Mapping[str, str]
) -> tuple[OpDesc, Scope]:
    wanted = dict(outputs) if isinstance(outputs, Mapping) else {slot: f"{slot}@out" for slot in outputs}
    given = {
        slot: [f"{slot}{i}" for i in range(len(v))] if isinstance(v, list) else [slot] for slot, v in inputs.items()
    }
    desc = OpDesc(type, given, {slot: [name] for slot, name in wanted.items()}, dict(attrs or {}))
    check_desc(get_op(type), desc)
    scope = Scope()
    for slot, names in given.items():
        for name, value in zip(names, inputs[slot] if isinstance(inputs[slot], list) else [inputs[slot]], strict=True):
            scope.var(name).value = LoDTensor(value.copy()) if isinstance(value, np.ndarray) else value
    return desc, scope
