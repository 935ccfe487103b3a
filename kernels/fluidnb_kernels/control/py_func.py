"""py_func: a Python function in the place of an operator."""

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import EMPTY, GRAD, Array, Attr, Binder, OpDef, OpDesc, grad_names, op
from fluidnb.op.callables import callable_of
from fluidnb.op.grad import grad_desc
from fluidnb.values.tensor import LoDTensor

#: What was returned for an output, with its LoD; None where nobody wants it.
Result = tuple[Array, Any] | None


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """Another py_func, which calls the function for the gradient; without one there is no gradient."""
    backward = desc.attrs.get("backward_callable_id", -1)
    if backward < 0:
        return []
    outs, skipped = desc.outs.get("Out", []), set(desc.attrs.get("backward_skip_vars", ()))
    reads = [n for n in (*desc.ins.get("X", []), *outs) if n not in skipped] + [n + GRAD for n in outs]
    made = grad_desc("py_func", desc, {"X": reads}, {"Out": grad_names(desc, "X", no_grad)})
    for attr, value in (("forward_callable_id", backward), ("backward_callable_id", -1), ("backward_skip_vars", [])):
        made.set_attr(attr, value)
    return [made]


def call(b: Binder) -> list[Result]:
    """Call the function with copies of the inputs."""
    given = []
    for x, lod in zip(b.all("X"), b.lods("X"), strict=True):
        copy = LoDTensor(np.array(x))
        copy.set_lod([list(level) for level in lod])
        given.append(copy)
    returned = callable_of(b.attr("forward_callable_id"))(*given)
    results = list(returned) if isinstance(returned, list | tuple) else [returned]
    names = b.outputs.get("Out", [])
    if not names and len(results) == 1 and results[0] is None:
        results = []
    if len(results) != len(names):
        raise EnforceNotMet(
            "The function of py_func must return a value for each output.",
            expected=f"{len(names)}: {', '.join(names) or 'nothing'}", received=f"{len(results)} values",
        )  # fmt: skip
    return [_checked(b, *pair) for pair in zip(names, results, strict=True)]


def _checked(b: Binder, name: str, result: Any) -> Result:
    """The value that was returned for an output, as an array."""
    if name == EMPTY:
        return None
    forward = None
    if GRAD in name:
        forward = b.scope.cell(name.partition(GRAD)[0])[0].value.array
        if result is None:  # a variable that the outputs do not depend on
            result = np.zeros_like(forward)
    if result is None:
        raise EnforceNotMet(f"The function of py_func returned None for {name}.", expected="an array or a LoDTensor")
    array = np.array(result)
    if forward is not None and array.shape != forward.shape:
        raise EnforceNotMet(
            f"The function for the gradient of py_func returned another shape for {name}.",
            expected=list(forward.shape), received=list(array.shape),
            hint="a gradient has the shape of its variable.",
        )  # fmt: skip
    return array, result.lod_ if isinstance(result, LoDTensor) else ()


class Kept:
    """The results of a function, from the guard that called it to the calls that write them."""

    __slots__ = ("memory", "results")

    def __init__(self) -> None:
        self.memory: Any = None  # of the executor with the guard; others, or one without, call the function themselves
        self.results: list[Result] = []


def deliver(kept: Kept, *outs: Array | None) -> None:
    """Write what the function returned where it is wanted, and forget it."""
    for result, out in zip(kept.results, outs, strict=True):
        if result is not None and out is not None:
            np.copyto(out, result[0])
    kept.memory, kept.results = None, []


#: By operator, for all executors.
_kept: WeakKeyDictionary[OpDesc, Kept] = WeakKeyDictionary()


def _guard(b: Binder) -> Any:
    """The function is called here, once in every run: what it returns says which shapes follow."""
    kept = _kept.setdefault(b.op.desc, Kept())
    kept.memory, kept.results = b.memory, call(b)
    return tuple(r and (r[0].shape, str(r[0].dtype), tuple(map(tuple, r[1]))) for r in kept.results)


@op(
    "py_func",
    inputs={"X*?": "what the function is called with"},
    outputs={"Out*?": "what it returns"},
    attrs={
        "forward_callable_id": Attr("int", 0, "number of the function"),
        "backward_callable_id": Attr("int", -1, "number of the function for the gradient; -1 for none"),
        "backward_skip_vars": Attr("strings", [], "variables in X and Out that it is not called with"),
    },
    grad=_grad,
    guard=_guard,
    side_effect=True,
    host_only="calls a Python function of the user",
    data_shape=True,
)
def py_func(b: Binder) -> None:
    """Out = function(X): a Python function is called with LoDTensors and returns arrays or LoDTensors.

    The gradient is such an operator too: its function is called with X, Out and the gradients of Out, and returns the
    gradients of X; None for one means zeros.

    Example:
        >>> from fluidnb.op.callables import callable_id
        >>> from fluidnb.testing import run_op
        >>> double = callable_id(lambda x: 2 * np.array(x))
        >>> run_op("py_func", {"X": [np.array([1.0, 2.0])]}, {"forward_callable_id": double}, outputs={"Out": 1})["Out"]
        array([2., 4.])

    Source: Fluid's py_func_op.
    """
    kept = _kept.setdefault(b.op.desc, Kept())
    if kept.memory is not b.memory:
        kept.results = call(b)
    outs = [r and b.set("Out", r[0].shape, r[0].dtype, r[1], i) for i, r in enumerate(kept.results)]
    b(deliver, kept, *outs)
