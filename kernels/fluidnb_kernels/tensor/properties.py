"""shape, size, is_empty and their like: what is so about a tensor."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, ctype, each, elements, vector, widths
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.tensor.strided_copy import fill


def _kernels() -> Iterator[str]:
    for dtype in elements(FLOATS):
        for wide in widths(dtype):
            yield from (f"tested<f::{name}, {ctype(dtype)}, {wide}>" for name in ("isnan", "isinf", "isfinite"))
            yield from (f"met<f::{name}, {ctype(dtype)}, {wide}>" for name in ("isnan", "isinf", "odd"))


CUDA = Source(__file__, "properties.cu", _kernels)


@op(
    "shape",
    inputs={"Input": "any shape"},
    outputs={"Out": "int32 [rank]: its sizes"},
    infer=lambda c: c.set("Out", (c["Input"].ndim,), np.int32),
    cuda=True,
)
def shape(b: Binder) -> None:
    """Out = the sizes of Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("shape", {"Input": [[1.0, 2.0]]})["Out"]
        array([1, 2], dtype=int32)

    Source: Fluid's shape_op.
    """
    verbs.write(b, b["Out"], np.array(b["Input"].shape, np.int32))


@op(
    "size",
    inputs={"Input": "any shape"},
    outputs={"Out": "int64 [1]: how many elements it has"},
    infer=lambda c: c.set("Out", (1,), np.int64),
    cuda=True,
)
def size(b: Binder) -> None:
    """Out = the number of elements of Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("size", {"Input": [[1.0, 2.0]]})["Out"]
        array([2])

    Source: Paddle's size_op.
    """
    verbs.fill(b, b["Out"], b["Input"].size)


@op(
    "is_empty",
    inputs={"X": "any shape"},
    outputs={"Out": "bool [1]: whether it has no elements"},
    infer=lambda c: c.set("Out", (1,), bool),
    cuda=True,
)
def is_empty(b: Binder) -> None:
    """Out = whether X has no elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("is_empty", {"X": [1.0]})["Out"]
        array([False])

    Source: Fluid's is_empty_op.
    """
    verbs.fill(b, b["Out"], b["X"].size == 0)


def _define(type: str, ufunc: np.ufunc, join: np.ufunc | None, formula: str, result: str) -> None:
    """One test of numbers: joined over all elements, or element by element where ``join`` is None."""

    @op(
        type,
        inputs={"X": "any shape"},
        outputs={"Out": f"bool: {formula}"},
        cost="X",
        cuda=True,
        infer=lambda c: c.set("Out", *((c["X"].shape, bool, c.lod("X")) if join is None else ((1,), bool))),
        doc=f"""Out = {formula}.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [1.0, np.inf]}})["Out"]
        array([{result}])

    Source: {"Paddle" if join is None else "Fluid"}'s {"isfinite_v2_op" if join is None else "isfinite_op"}.
    """,
    )
    def test(b: Binder) -> None:
        if b.on_cuda:
            _emit_on_cuda(b, ufunc.__name__, join is None, bool(ufunc(0)))
        elif join is None:
            b(ufunc, b["X"], out=b["Out"])
        else:
            b(join.reduce, apply(b, ufunc, b["X"]), None, None, b["Out"].reshape(()))


def _emit_on_cuda(b: Binder, name: str, each_one: bool, of_whole: bool) -> None:
    """Emit the test of this name; ``of_whole`` is its result for whole numbers."""
    x, out = b["X"], b["Out"]
    if x.dtype.name not in FLOATS or not each_one:
        fill(b, out, of_whole)
    if x.dtype.name in FLOATS:
        wide = vector(x, out) if each_one else vector(x)
        types = f"{ctype(x.dtype)}, {wide}>"
        if each_one:
            each(b, CUDA, f"tested<f::{name}, {types}", x.size, x, out, per_thread=wide)
        else:
            sought = "odd" if of_whole else name
            each(b, CUDA, f"met<f::{sought}, {types}", x.size, x, out, np.bool_(not of_whole), per_thread=wide)


_define("isfinite", np.isfinite, np.logical_and, "whether all elements of X are finite", "False")
_define("isinf", np.isinf, np.logical_or, "whether an element of X is infinite", " True")
_define("isnan", np.isnan, np.logical_or, "whether an element of X is not a number", "False")
_define("isfinite_v2", np.isfinite, None, "whether X is finite, element by element", " True, False")
_define("isinf_v2", np.isinf, None, "whether X is infinite, element by element", "False,  True")
_define("isnan_v2", np.isnan, None, "whether X is not a number, element by element", "False, False")


@c_code("shape", "size", function="property")
def _property_in_c(c: Context) -> dict[str, Constant]:
    x = c["Input"]
    numbers = list(x.shape) if c.definition.type == "shape" else [x.size]
    return {"COUNT": len(numbers), "NUMBERS": numbers}
