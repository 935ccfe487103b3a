"""Errors of kernels turned into errors of the user's program."""

from __future__ import annotations

import re
from typing import Any

from fluidnb.errors import EnforceNotMet, FluidError, Operand
from fluidnb.op import EMPTY
from fluidnb.runtime.plan import PlanOp


def operands(op: PlanOp, scope: Any) -> list[Operand]:
    """An operator's inputs with the dtypes and shapes they have now.

    Args:
        op: the operator.
        scope: where its variables are.

    Returns:
        (slot, name, dtype, shape) of each.
    """
    rows: list[Operand] = []
    for slot, names in op.inputs.items():
        for name in names:
            if name == EMPTY:
                continue
            variable = scope.find_var(name)
            value = None if variable is None else variable.value
            array = getattr(value, "array", value)
            shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
            known = shape if isinstance(shape, tuple) else None
            rows.append((slot, name, None if dtype is None else str(dtype), known))
    return rows


def failed(error: Exception, op: PlanOp, scope: Any) -> FluidError:
    """The error to raise when an operator's kernel, or its binding, raised.

    Args:
        error: what was raised.
        op: the operator.
        scope: where its variables are.

    Returns:
        A `FluidError` that names the operator, its operands and the user's line.
    """
    if isinstance(error, FluidError):
        if error.iteration is not None:
            within(error, op, error.iteration)
        error.hint = other_name(op, scope) or error.hint
        return error.with_context(op=op.text(), slots=operands(op, scope), where=op.where())
    return EnforceNotMet(
        f"{op.desc.optype} failed: {type(error).__name__}: {error}",
        op=op.text(),
        slots=operands(op, scope),
        where=op.where(),
    )


def within(error: FluidError, op: PlanOp, iteration: int) -> None:
    """Let an error say that it happened inside a loop; called from the innermost outwards.

    Args:
        error: the error.
        op: the operator that runs the block; a branch runs it once, so it is not mentioned.
        iteration: which iteration it was, from 0.
    """
    kind = op.desc.optype
    if not kind.startswith("conditional_block"):
        error.loops.append(f"iteration {iteration} of {kind} (op {op.index} in block {op.block})")
    error.iteration = None


def other_name(op: PlanOp, scope: Any) -> str | None:
    """A hint for a parameter without a value whose twin, but for the number in its name, has one.

    Programs share parameters by name, and a network that is built twice gets new names the second time.

    Args:
        op: the operator that wants the parameter.
        scope: where its variables are.

    Returns:
        The hint, or None where that is not the trouble.
    """
    outermost = scope.outermost()
    for name in op.reads():
        desc = None if op.desc.block is None else op.desc.block.find_var_recursive(name)
        match = re.fullmatch(r"(.+)_\d+(\..+)", name)
        if desc is None or match is None or not desc.persistable() or _shape(scope.find_var(name)) is not None:
            continue
        alike = re.compile(rf"{re.escape(match[1])}_\d+{re.escape(match[2])}")
        for other, variable in outermost.vars.items():
            if alike.fullmatch(other) and _shape(variable) == tuple(desc.shape()):
                return (
                    f"programs share parameters by name, and {other} of the same shape has a value: clone the program "
                    "that has it, clone(for_test=True), or build this one under unique_name.guard()."
                )
    return None


def _shape(variable: Any) -> tuple[int, ...] | None:
    """The shape of a variable's tensor; None when it has none."""
    array = getattr(None if variable is None else variable.value, "array", None)
    return None if array is None else tuple(array.shape)
