"""The CUDA kernels of losses."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context, grad_op, kernel, op
from fluidnb.op.c_code import Constant, c_code, functions_of
from fluidnb_kernels.arithmetic import formula
from fluidnb_kernels.c_expressions import rows_of
from fluidnb_kernels.cuda import Source, ctype, each, of_dtype, typed
from fluidnb_kernels.cuda.axis_reduction import fold_types
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import alike

#: The pointer where there is no array.
NOTHING = np.uintp(0)


def _kernels() -> Iterator[str]:
    names = [f"f::{name}" for name in TERMS.defined("TERMS")]
    folds = [f"f::{name}" for name in TERMS.defined("FOLD", "FOLD_TWO")]
    yield from typed(
        ("terms", names, FLOATS), ("fold", folds, [*fold_types(FLOATS)]),
        ("sigmoid_loss sigmoid_loss_grad kldiv_loss_grad label_smooth", FLOATS),
    )()  # fmt: skip


#: Losses of each element. A line ``TERMS(NAME, one, two)`` of the file is the function of the operator NAME.
TERMS = Source(__file__, "elementwise_losses.cu", _kernels)
#: Losses of rows.
LINES = Source(__file__, "row_losses.cu", typed(
    ("cross_entropy cross_entropy_grad soft_grad bpr_loss bpr_loss_grad", FLOATS),
    ("smooth_l1_loss smooth_l1_loss_grad nll_loss nll_total nll_loss_grad", FLOATS),
    ("fold", [f"f::{name}" for name in ("soft_part", "soft", "total", "minus")], [*fold_types(FLOATS)]),
))  # fmt: skip


def terms(b: Binder, name: str, operands: list[Array], one: Array, two: Array = NOTHING, *numbers: float) -> None:
    """Emit a loss of each element of up to four arrays of one size; those after the first are cast to its dtype."""
    x = operands[0]
    rest = [of_dtype(b, y, x.dtype) for y in operands[1:]]
    a, c = (*map(np.float64, numbers), *[np.float64(0)] * 2)[:2]
    each(b, TERMS, f"terms<f::{name}, {ctype(x.dtype)}>", x.size, *[x, *rest, x, x, x][:4], one, two, a, c)


def wanted(b: Binder, slot: str) -> Array:
    """An output, or NOTHING where it has no consumer."""
    return b[slot] if b.wants(slot) else NOTHING


#: The numbers that a function of `terms` gets.
Numbers = Callable[[Any], Sequence[float]]


def launch(type: str, operands: str, results: str, numbers: Numbers = lambda b: (), name: str = "") -> None:
    """Register the CUDA kernel of a loss of each element: one launch of `terms` from slots to one or two slots."""

    @kernel(type, place="cuda", dtypes=FLOATS)
    def on_cuda(b: Binder) -> None:
        one, *two = (wanted(b, slot) for slot in results.split())
        terms(b, name or type, [b[slot] for slot in operands.split()], one, *(two or [NOTHING]), *numbers(b))


def pointwise(
    type: str, operands: str, results: str, numbers: Numbers = lambda b: (), name: str = "", **declared: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a formula of slots becomes a loss of each element, or a gradient, which declares no inputs."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        emit = formula(operands, results)(function)
        if "inputs" in declared:
            op(type, infer=alike(operands, results), dtypes=FLOATS, **declared)(emit)
        else:
            grad_op(type, **declared)(emit)
        launch(type, operands, results, numbers, name)
        _define_in_c(type, operands, numbers, name)
        return function

    return register


def _define_in_c(type: str, operands: str, numbers: Numbers, name: str) -> None:
    """Register C code of a loss of each element, where the file has a function for its slots."""
    file = Path(__file__).with_name("elementwise_losses.c")
    if type not in functions_of(file):
        return

    @c_code(type, file=file.name)
    def constants(c: Context) -> dict[str, Constant]:
        first, second = rows_of(file.with_suffix(".cu"), "TERMS")[name or type]
        a, b = (*map(float, numbers(c)), 0.0, 0.0)[:2]
        return {"COUNT": c[operands.split()[0]].size, "FIRST": first, "SECOND": second, "a": a, "b": b}
