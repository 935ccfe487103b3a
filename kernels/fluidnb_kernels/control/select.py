"""select_input, select_output: one of several ways, by a number."""

import math

from fluidnb.op import Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.gradients import gradient_by

_MASK = {"Mask": "int32 of one element: which, from 0"}


def _check_mask(c: Context) -> None:
    mask = c["Mask"]
    c.require(
        mask.size in (1, -1) and mask.dtype.kind in "biu", f"The mask of {c.definition.type} should be one number.",
        expected="int32 of shape [1]", received=f"{mask.dtype} of shape {list(mask.shape)}",
    )  # fmt: skip


def _which(b: Binder) -> int | None:
    """The guard: which way it goes."""
    mask = b["Mask"]
    return None if mask is None or mask.size != 1 else int(on_host(mask).item())


def _chosen(b: Binder, slot: str, ways: int) -> int:
    which = int(on_host(b["Mask"]).item())
    b.require(
        0 <= which < ways, f"The mask of {b.definition.type} names no {slot}.",
        expected=f"0 to {ways - 1}", received=which,
    )  # fmt: skip
    return which


def _take(b: Binder) -> None:
    """Emit select_input."""
    i = _chosen(b, "X", len(b.all("X")))
    x = b.all("X")[i]
    b.require(x is not None, f"{b.name('X', i)}, which select_input chooses, has no value.", expected="a value")
    out = b.set("Out", x.shape, x.dtype, b.lod("X", i))
    if out is not None:
        verbs.copy(b, out, x)


def _give(b: Binder) -> None:
    """Emit select_output."""
    x, i = b["X"], _chosen(b, "Out", len(b.outputs["Out"]))
    out = b.set("Out", x.shape, x.dtype, b.lod("X"), i)
    if out is not None:
        verbs.copy(b, out, x)


def _input_infer(c: Context) -> None:
    _check_mask(c)
    if not c.runtime:
        x = c["X"]
        same = all(v.shape == x.shape for v in c.all("X"))
        c.set("Out", x.shape if same else [-1] * x.ndim, x.dtype, c.lod("X"))


@op(
    "select_input",
    inputs={"X*": "tensors; those that are not chosen may hold nothing", **_MASK},
    outputs={"Out": "the one that is chosen"},
    infer=_input_infer,
    grad=gradient_by("select_output", {"Mask": "Mask"}, {"X": "Out"}, {"Out": "X"}),
    guard=_which,
    unset=("X",),
    dtype_slot="X",
    cuda=True,
)
def select_input(b: Binder) -> None:
    """Out = X[Mask], with its LoD. The gradient goes to that X alone, the others get none.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("select_input", {"X": [np.array([1.0]), np.array([2.0])], "Mask": [1]})["Out"]
        array([2.])

    Source: Paddle's select_input_op.
    """
    _take(b)


@c_code("select_input")
def _select_in_c(c: Context) -> dict[str, Constant]:
    c.require(
        all(x.shape == c["Out"].shape for x in c.all("X")), "The C code of select_input takes tensors of one shape.",
        expected=list(c["Out"].shape), received=[list(x.shape) for x in c.all("X")],
    )  # fmt: skip
    return {"COUNT": math.prod(c["Out"].shape), "WAYS": len(c.inputs["X"])}


def _output_infer(c: Context) -> None:
    _check_mask(c)
    if not c.runtime:
        x = c["X"]
        for i in range(len(c.outputs["Out"])):
            c.set("Out", x.shape, x.dtype, c.lod("X"), i)


@op(
    "select_output",
    inputs={"X": "a tensor", **_MASK},
    outputs={"Out*": "variables, of which the one that is chosen gets X"},
    infer=_output_infer,
    grad=gradient_by("select_input", {"Mask": "Mask"}, {"X": "Out"}, {"Out": "X"}),
    guard=_which,
    dtype_slot="X",
    cuda=True,
)
def select_output(b: Binder) -> None:
    """Out[Mask] = X, with its LoD; the others stay without a value.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("select_output", {"X": [1.0], "Mask": [1]}, outputs={"Out": 2})["Out"][1]
        array([1.])

    Source: Paddle's select_output_op.
    """
    _give(b)
