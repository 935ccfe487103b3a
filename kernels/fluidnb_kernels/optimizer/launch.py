"""Steps of optimizers as launches: one pass over parameter, gradient and state."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fluidnb.errors import OpTypeError
from fluidnb.op import Array, Binder, kernel
from fluidnb.values import SelectedRows
from fluidnb_kernels.cuda import Function, Source, ctype, each, elements, vector, widths
from fluidnb_kernels.cuda.dtypes import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rows.device_rows import over_rows
from fluidnb_kernels.rows.values import densify, dtype_of, places_of, value_array

#: Steps that may be taken in the rows that have a gradient, leaving others alone.
_SPARSE = ("sgd", "adam", "ftrl")


def _kernels() -> Iterator[str]:
    steps = CUDA.defined("STEP", "PREPARED_STEP")
    for dtype in elements(FLOATS):
        t = ctype(dtype)
        for step in steps:
            for width in widths(dtype):
                yield f"update<f::{step}, {t}, {width}>"
                yield f"update_all<f::{step}, {t}, {width}>"
        for step in _SPARSE:
            yield f"update_rows<f::{step}, {t}>"
        yield from (f"dense_rows<{t}>", f"zero<{t}>")
        if dtype == wide_dtype(dtype):
            yield f"advance<{t}>"
            yield f"advance_all<{t}>"


CUDA = Source(__file__, "update.cu", _kernels)


def one_number(b: Binder, slot: str) -> Array:
    """An input of one element in the precision of the step; a workspace of undefined content where it is left out."""
    wide = wide_dtype(b["Param"].dtype)
    return of_dtype(b, b[slot], wide) if b.has(slot) else b.tmp((1,), wide)


def _shared(b: Binder, powers: Sequence[Array], numbers: Sequence[float]) -> tuple[list[Array], list[np.float64]]:
    """Arguments that all elements share: learning rate and two powers, and five numbers."""
    rate = one_number(b, "LearningRate")
    return [rate, *(powers or (rate, rate))], [np.float64(x) for x in (*numbers, *[0.0] * 5)[:5]]


def emit_update(
    b: Binder,
    step: str,
    states: Sequence[tuple[Array, Array]] = (),
    numbers: Sequence[float] = (),
    powers: Sequence[Array] = (),
) -> None:
    """Emit the step of every element; the powers are of one element, in the precision of the step."""
    dtype, out = b["Param"].dtype, b["ParamOut"]
    param, grad = b["Param"], of_dtype(b, gradient(b), dtype)
    before = [of_dtype(b, old, dtype) for old, _ in states]
    after = [writing_as(b, new, dtype) for _, new in states]
    shared, constants = _shared(b, powers, numbers)
    spare = 3 - len(states)
    read, written = [param, grad, *before, *[param] * spare], [out, *after, *[out] * spare]
    _between(b, step, read, written, shared, constants)
    for (_, new), array in zip(states, after, strict=True):
        written_as(b, new, array)


def update_kernel(
    type: str, *states: str, numbers: Callable[[Binder], Sequence[float]] = lambda b: (), step: str = ""
) -> None:
    """Register the CUDA kernel of an optimizer whose step is one launch; ``states`` are slots that it updates."""

    def update(b: Binder) -> None:
        """One launch over all elements."""
        emit_update(b, step or type, [(b[slot], b[slot + "Out"]) for slot in states], numbers(b))

    kernel(type, place="cuda", dtypes=FLOATS)(update)


def _between(
    b: Binder, step: str, read: list[Array], written: list[Array], shared: list[Array], numbers: list[np.float64]
) -> None:
    """Emit a step over arrays of one size and dtype, with the widest loads that they allow."""
    wide, out = vector(*read, *written), written[0]
    name = f"update<f::{step}, {ctype(out.dtype)}, {wide}>"
    each(b, CUDA, name, out.size, *read, *shared, *written, *numbers, per_thread=wide)


def copied(b: Binder, source: Array, out: Array) -> None:
    """Emit ``out = source``, unless they are one."""
    if out is not source:
        nothing = b.tmp((1,), wide_dtype(out.dtype))
        _between(b, "same", [source] * 5, [out] * 4, [nothing] * 3, [np.float64(0)] * 5)


def emit_decay(b: Binder, decay: float, ratio: float) -> None:
    """Emit ParamOut = Param · (1 - ratio · LearningRate · decay)."""
    if not decay:
        return copied(b, b["Param"], b["ParamOut"])
    shared, numbers = _shared(b, (), (0, 0, 0, -decay, ratio))
    return _between(b, "decay", [b["Param"]] * 5, [b["ParamOut"]] * 4, shared, numbers)


def beta_powers(b: Binder) -> tuple[Array, Array]:
    """Beta1Pow and Beta2Pow in the precision in which the parameter's step is computed."""
    return one_number(b, "Beta1Pow"), one_number(b, "Beta2Pow")


def advance(b: Binder, powers: tuple[Array, Array], betas: tuple[float, float]) -> tuple[Array, Array]:
    """Emit the powers for the next step, after all that reads those of this one."""
    slots, dtype = ("Beta1PowOut", "Beta2PowOut"), powers[0].dtype
    one, two = (writing_as(b, b[s], dtype) if b.wants(s) else b.tmp((1,), dtype) for s in slots)
    if any(map(b.wants, slots)):
        b(CUDA[f"advance<{ctype(dtype)}>"], (1,), (1,), 0, *powers, one, two, *map(np.float64, betas))
    for slot, array in zip(slots, (one, two), strict=True):
        if b.wants(slot):
            written_as(b, b[slot], array)
    return one, two


def emit_sparse_update(
    b: Binder, step: str, states: Sequence[Array] = (), numbers: Sequence[float] = (), powers: Sequence[Array] = ()
) -> None:
    """Emit a step in the rows that have a gradient; state, at most two arrays, changes in these rows alone."""
    out, grad = b["ParamOut"], b["Grad"]
    for other in (dtype_of(grad), *(s.dtype for s in states)):
        if other != out.dtype:
            raise OpTypeError(
                f"{b.definition.type} takes a sparse gradient and state of the parameter's dtype on a GPU.",
                expected=str(out.dtype), received=str(other),
            )  # fmt: skip
    shared, constants = _shared(b, powers, numbers)
    kept = [out, *states, *[out] * (2 - len(states))]
    b(over_rows, CUDA[f"update_rows<f::{step}, {ctype(out.dtype)}>"], grad, *shared, *kept, *constants)


def emit_held_update(b: Binder, step: str) -> None:
    """Emit a step without state in the rows of a parameter that is SelectedRows itself."""
    param, grad = b["Param"], b["Grad"]
    dtype = dtype_of(param)
    if dtype_of(grad) != dtype:
        raise OpTypeError(
            f"{b.definition.type} takes a gradient of the parameter's dtype on a GPU.",
            expected=str(dtype), received=str(dtype_of(grad)),
        )  # fmt: skip
    rate = of_dtype(b, b["LearningRate"], wide_dtype(dtype))
    b(update_held, CUDA[f"update_rows<f::{step}, {ctype(dtype)}>"], param, grad, rate)


def update_held(function: Function, param: SelectedRows, grad: SelectedRows, rate: Array) -> None:
    """Launch a step without state in the rows that a parameter holds."""
    values, placed = value_array(param), SelectedRows()
    placed.rows_, placed.value = places_of(param.rows_, grad.rows_), grad.value
    over_rows(function, placed, *[rate] * 3, *[values] * 3, *[np.float64(0)] * 5)


def gradient(b: Binder) -> Array:
    """The gradient as a tensor of the parameter's shape; rows that SelectedRows does not hold are zero."""
    grad = b["Grad"]
    if not isinstance(grad, SelectedRows):
        return grad
    if not b.on_cuda:
        whole = b.like(b["Param"])
        b(densify, grad, whole)
        return whole
    whole = b.tmp(b["Param"].shape, dtype_of(grad))
    name = ctype(whole.dtype)
    each(b, CUDA, f"zero<{name}>", whole.size, whole)
    b(over_rows, CUDA[f"dense_rows<{name}>"], grad, whole)
    return whole
