"""Errors of kernels turned into errors of the user's program."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError, Operand
from fluidnb.op import EMPTY, GRAD, get_op, has_op
from fluidnb.op.attr import REQUIRED
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from fluidnb.values.lod_text import draw_all
from fluidnb.values.tensor import array_of


def operands(op: LoweredOp, scope: Any) -> list[Operand]:
    """(slot, name, dtype, shape) of an operator's inputs as they are now."""
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


def batch(op: LoweredOp, scope: Any) -> list[str]:
    """The sequences of an operator's inputs, drawn."""
    rows = []
    for name in op.reads():
        variable = scope.find_var(name)
        value = None if variable is None else variable.value
        if type(value) is LoDTensor and value.lod_ and value.array is not None and value.array.ndim:
            rows.append((name, value.lod_, len(value.array)))
    return draw_all(rows)


def failed(error: Exception, op: LoweredOp, scope: Any) -> FluidError:
    """The `FluidError` for an error of a kernel or its binding, with the operator, its operands and the user's line."""
    if isinstance(error, FluidError):
        if error.iteration is not None:
            within(error, op, error.iteration)
        error.hint = other_name(op, scope) or error.hint
        error.batch = error.batch or batch(op, scope)
        return error.with_context(op=op.text(), slots=operands(op, scope), where=op.where())
    return EnforceNotMet(**_explained(error, op, scope), op=op.text(), slots=operands(op, scope), where=op.where())


def cause(error: Exception) -> BaseException | None:
    """The original error behind one of `failed`; a fluidnb error is returned itself, with its own cause."""
    return error.__cause__ if isinstance(error, FluidError) else error


def _explained(error: Exception, op: LoweredOp, scope: Any) -> dict[str, Any]:
    """A kernel's exception in the operator's terms, where no shape rule refused: gradients of odd shapes above all."""
    kind, reason = op.desc.optype, f"{type(error).__name__}: {error}"
    takes = _takes(op)
    if kind == "py_func":
        return {"summary": f"The function that py_func calls raised {reason}"}
    wrong = _wrong_attribute(op)
    if wrong is not None:
        return wrong
    if isinstance(error, AttributeError | TypeError):
        absent = [slot for slot in takes if slot not in op.inputs]
        empty = any(EMPTY in row for row in (*op.inputs.values(), *op.outputs.values()))
        met_none = _met_none(error)
        if met_none and (absent or empty or op.definition.is_grad):
            return {
                "summary": f"{kind} lacks an input or an output.", "expected": ", ".join(takes) or None,
                "received": f"{', '.join([*op.inputs, *op.outputs])} ({reason})", "hint": _contract(op, takes),
            }  # fmt: skip
        for slot, name in ((s, n) for s, names in op.inputs.items() for n in names if n != EMPTY):
            variable = scope.find_var(name)
            value = None if variable is None else variable.value
            if getattr(value, "array", value) is None and met_none:
                return {
                    "summary": f"Input {slot} of {kind} holds no memory: {name} has no value yet.",
                    "expected": "a value", "received": "nothing", "hint": _contract(op, takes),
                }  # fmt: skip
            if value is not None and not isinstance(value, LoDTensor):
                held = type(value).__name__
                return {
                    "summary": f"{kind} cannot work with what its inputs hold: {slot} is a {held}.",
                    "expected": "a tensor", "received": f"{name}, a {held} ({reason})", "hint": _contract(op, takes),
                }  # fmt: skip
    if isinstance(error, TypeError) and "Unsupported type <class 'numpy.ndarray'>" in reason:
        values = {n: getattr(scope.find_var(n), "value", None) for n in op.reads()}
        there = [n for n, v in values.items() if isinstance(getattr(v, "array", None), np.ndarray)]
        return {
            "summary": f"{kind} runs on a device, and its operands are in host memory.",
            "expected": "arrays of the device", "received": f"{', '.join(there) or 'an array'} of the host",
            "hint": "a value comes into a scope by get_tensor().set(array, place); runs move it to where they are.",
        }  # fmt: skip
    if isinstance(error, TypeError) and _DTYPES.search(reason):
        return {
            "summary": f"{kind} cannot work with operands of these dtypes.", "expected": "dtypes that go together",
            "received": reason, "hint": f"layers.cast converts a variable. {_contract(op, takes)}",
        }  # fmt: skip
    of_tensor = isinstance(error, AttributeError) and isinstance(error.obj, np.ndarray)
    if of_tensor or "truth value of an" in reason:
        return {
            "summary": f"{kind} cannot work with what its inputs hold: one of them is a tensor.",
            "expected": "an array, a rank table or rows", "received": reason, "hint": _contract(op, takes),
        }  # fmt: skip
    outside = _outside(op, scope) if isinstance(error, IndexError) else None
    if outside is not None:
        index, size = outside
        return {
            "summary": f"{kind} reads an element that does not exist.", "expected": f"an index from 0 to {size - 1}",
            "received": index, "hint": _contract(op, takes),
        }  # fmt: skip
    if isinstance(error, ValueError) and kind.removesuffix("_grad") in _POWERS and all(
        np.issubdtype(array.dtype, np.integer) for array in _arrays(op, scope, op.inputs)
    ):
        return {
            "summary": f"{kind} cannot compute negative powers of integers.", "expected": "exponents from 0 on",
            "received": "a negative one", "hint": "layers.cast converts a variable to floats, which have such powers.",
        }  # fmt: skip
    sized = isinstance(error, TypeError | ValueError) and _SIZES.search(reason)
    odd = op.definition.is_grad and isinstance(error, ZeroDivisionError | TypeError | ValueError)
    if sized or odd or isinstance(error, IndexError | StopIteration):
        return {
            "summary": f"The operands of {kind} do not fit together.", "expected": "shapes that go together",
            "received": reason, "hint": _contract(op, takes),
        }  # fmt: skip
    if isinstance(error, OverflowError) or (isinstance(error, ValueError) and _NUMBERS.search(reason)):
        return {
            "summary": f"The dtypes of {kind} do not hold a number that it is given.",
            "expected": "numbers that the dtypes hold",
            "received": reason, "hint": _contract(op, takes),
        }  # fmt: skip
    return {"summary": f"{kind} failed: {reason}"}


def _met_none(error: AttributeError | TypeError) -> bool:
    """Whether a kernel met None: as the object without an attribute, or as a value where a TypeError was raised."""
    if isinstance(error, AttributeError):
        return error.name is not None and error.obj is None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    values = [] if trace is None else list(trace.tb_frame.f_locals.values())
    operands = [part for value in values for part in (value if isinstance(value, tuple | list) else [value])]
    return any(part is None for part in operands)


def _arrays(op: LoweredOp, scope: Any, slots: Iterable[str]) -> list[np.ndarray[Any, Any]]:
    """The arrays in host memory of an operator's inputs in some slots."""
    variables = [scope.find_var(name) for slot in slots for name in op.inputs.get(slot, ())]
    arrays = [None if v is None else array_of(v.value) for v in variables]
    return [array for array in arrays if isinstance(array, np.ndarray)]


def _outside(op: LoweredOp, scope: Any) -> tuple[int, int] | None:
    """The first index in Index or Ids that is outside another input, and the size there; None without one."""
    axis = next((op.desc.attrs[name] for name in ("axis", "Axis", "dim") if name in op.desc.attrs), 0)
    for array in _arrays(op, scope, [slot for slot in op.inputs if slot not in _INDICES]):
        if isinstance(axis, int) and -array.ndim <= axis < array.ndim:
            size = array.shape[axis]
            for index in _arrays(op, scope, _INDICES):
                wrong = index[(index < -size) | (index >= size)]
                if wrong.size:
                    return int(wrong.flat[0]), size
    return None


#: How numpy speaks of dtypes that it cannot work with.
_DTYPES = re.compile(r"[Cc]annot cast|safely cast|not support|did not contain a loop")
#: How Python speaks of texts and values that are no numbers of a dtype.
_NUMBERS = re.compile(r"[Cc]ould not convert|[Cc]annot convert|invalid literal")
#: The slots of indices of rows or elements.
_INDICES = ("Index", "Ids")
#: Operators that compute powers of elements: of shapes that fit, numpy refuses negative exponents of integers alone.
_POWERS = ("pow", "elementwise_pow")
#: How numpy speaks of sizes that do not fit.
_SIZES = re.compile(
    r"broadcast|reshape|dimension|shape|axis|axes|out of bounds|aligned|array size|same length|zero-size|to unpack|"
    r"zip\(\)|match|unsized|empty|iterable|wrong size|negative|array of size"
)


def _wrong_attribute(op: LoweredOp) -> dict[str, Any] | None:
    """The first error in the attributes of an operator that was deserialized or changed."""
    owner, attrs = op.desc.optype.removesuffix("_grad"), op.desc.attrs
    if not has_op(owner):
        return None
    definition = get_op(owner)
    try:
        for name in [n for n in definition.attrs if n in attrs]:
            definition.attrs[name].convert(owner, name, attrs[name])
    except FluidError as e:
        return {"summary": e.summary, "expected": e.expected, "received": e.received, "hint": e.hint}
    for name, spec in definition.attrs.items():
        if spec.default is REQUIRED and name not in attrs:
            return {"summary": f"Attribute '{name}' is required!", "expected": f"{name}: {spec.kind} ({spec.doc})"}
    whole = {name: spec.default for name, spec in definition.attrs.items()} | dict(attrs)
    wrong = None if definition.check is None else definition.check(whole)
    return None if wrong is None else {"summary": wrong, "expected": "attributes that fit each other"}


def _takes(op: LoweredOp) -> dict[str, str]:
    """Input slot -> its documentation; of a gradient operator, the slots that the maker can give it."""
    definition = op.definition
    if not definition.is_grad:
        return {slot.name: slot.doc for slot in definition.inputs.values()}
    owner = op.desc.optype.removesuffix("_grad")
    if not has_op(owner):
        return {}
    forward = get_op(owner)
    outs = {slot.name + GRAD: f"the gradient of {slot.name}" for slot in forward.outputs.values()}
    return {slot.name: slot.doc for slot in (*forward.inputs.values(), *forward.outputs.values())} | outs


def _contract(op: LoweredOp, takes: dict[str, str]) -> str | None:
    """The documented inputs of an operator, as a hint."""
    if op.definition.is_grad:
        return "append_backward makes it; a gradient has the shape and the dtype of its variable."
    words = "; ".join(f"{slot}, {doc}" for slot, doc in takes.items())
    return f"{op.desc.optype} takes {words}." if words else None


def within(error: FluidError, op: LoweredOp, iteration: int) -> None:
    """Add the iteration of a loop, from 0, to an error, from the innermost outwards; a branch is not mentioned."""
    if not op.desc.optype.startswith("conditional_block"):
        error.loops.append(iteration_text(op, iteration))
    error.iteration = None


def iteration_text(op: LoweredOp, iteration: int) -> str:
    """An iteration of an operator that runs a block, in words."""
    return f"iteration {iteration} of {op.desc.optype} (op {op.index} in block {op.block})"


def interrupted(error: KeyboardInterrupt, op: LoweredOp, iteration: int | None) -> None:
    """Add the operator and the iterations of the loops around it to an interrupt; called from the innermost outwards.

    Args:
        op: the operator that comes next, or the one that runs the interrupted block.
        iteration: the iteration of that block; None for the operator that comes next.
    """
    if iteration is None:
        error.add_note(f"Interrupted before {op.text()}.")
    elif not op.desc.optype.startswith("conditional_block"):
        where = op.where()
        error.add_note(f"In {iteration_text(op, iteration)}" + (f", {where.short()}." if where is not None else "."))


def other_name(op: LoweredOp, scope: Any) -> str | None:
    """A hint for a parameter without a value, where one with another number in its name has a value; else None.

    Programs share parameters by name, and a network that is built twice gets new names the second time.
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
