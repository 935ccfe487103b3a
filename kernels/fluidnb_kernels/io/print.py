"""print: a tensor on standard output whenever the operator runs."""

import sys
from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, OpDef, OpDesc, grad_names, op
from fluidnb.op.grad import grad_desc
from fluidnb.utils.escapes import visible


def _infer(c: Context) -> None:
    x = c["In"]
    if x is not None:
        c.set("Out", x.shape, x.dtype, c.lod("In"))


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """The gradient is printed too, as it passes."""
    (target,) = grad_names(desc, "In", no_grad) or ["@EMPTY@"]
    if target == "@EMPTY@":
        return []
    made = grad_desc("print", desc, {"In": [desc.outs["Out"][0] + "@GRAD"]}, {"Out": [target]})
    made.set_attr("is_forward", False)
    return [made]


def describe(x: Array, lod: Any, name: str, attrs: dict[str, Any]) -> str:
    """A tensor as the lines that the attributes select."""
    lines = []
    if attrs.get("print_tensor_name"):
        lines.append(f"Variable: {name}")
    if attrs.get("print_tensor_lod"):
        lines.append(f"  - lod: {[list(level) for level in lod]}")
    if attrs.get("print_tensor_shape"):
        lines.append(f"  - shape: {list(x.shape)}")
    if attrs.get("print_tensor_type"):
        lines.append(f"  - dtype: {x.dtype}")
    most = attrs.get("summarize", -1)
    shown = x.reshape(-1) if most < 0 else x.reshape(-1)[:most]
    with np.printoptions(threshold=sys.maxsize):
        lines.append(f"  - data: {shown}")
    return "\n".join(lines)


def show(x: Array | None, lod: Any, name: str, attrs: dict[str, Any], count: Array) -> None:
    """Print a tensor, or the message alone, unless it has been printed often enough."""
    if 0 < attrs.get("first_n", -1) <= count:
        return
    count += 1
    parts = [attrs["message"]] if attrs.get("message") else []
    if x is not None:
        parts.append(describe(x, lod, name, attrs))
    print(visible("\n".join(parts)), flush=True)  # a message from a file must not act on the terminal


#: How often each operator has printed, whoever walks it, and however often a loop binds it.
_counts: WeakKeyDictionary[OpDesc, Array] = WeakKeyDictionary()

_SHOWN = ("name", "type", "shape", "layout", "lod")


@op(
    "print",
    inputs={"In?": "any tensor; without one the message alone is printed"},
    outputs={"Out?": "the same"},
    attrs={
        "first_n": Attr("int", -1, "print it this many times at most; -1 always"),
        "message": Attr("string", "", "what is printed before it"),
        "summarize": Attr("int", -1, "how many elements are printed; -1 all"),
        **{f"print_tensor_{what}": Attr("bool", True, f"print its {what}") for what in _SHOWN},
        "print_phase": Attr("string", "BOTH", "print it forward, its gradient backward, or both",
                            enum=("FORWARD", "BACKWARD", "BOTH", "forward", "backward", "both")),
        "is_forward": Attr("bool", True, "whether it is in the forward pass"),
    },
    infer=_infer,
    grad=_grad,
    side_effect=True,
    host_only="copies values between the caller and the scope",
)  # fmt: skip
def print_tensor(b: Binder) -> None:
    """Out = In, which is printed. The gradient is a print too, so that it shows as it passes.

    Example:
        >>> from fluidnb.testing import run_op
        >>> _ = run_op("print", {"In": [[1, 2]]}, {"message": "here", "print_tensor_lod": False})
        here
        Variable: In
          - shape: [1, 2]
          - dtype: int64
          - data: [1 2]

    Source: Fluid's print_op.
    """
    x = b["In"]
    if b.attr("print_phase").upper() in ("BOTH", "FORWARD" if b.attr("is_forward") else "BACKWARD"):
        attrs = {name: b.attr(name) for name in b.definition.attrs}
        count = _counts.setdefault(b.op.desc, np.zeros((), np.int64))
        b.overwrites.append(count)
        b(show, x, b.lod("In"), b.name("In"), attrs, count)
    if x is not None and b.wants("Out") and b["Out"] is not x:
        b(np.copyto, b["Out"], x)
