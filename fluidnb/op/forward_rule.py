"""Shape rule of a gradient operator: repeats the forward operator's rule to check operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.op.compile_context import Spec
from fluidnb.op.context import EMPTY, GRAD, Context, Lod, RuleError
from fluidnb.op.define import OpDef, forward_of, get_op, has_op
from fluidnb.op.grad import SecondGrad
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import kernel_packages

if TYPE_CHECKING:
    from fluidnb.op.binder import Binder


class _Forward(Context):
    """A forward operator with the operands that a gradient operator has; ``X@GRAD`` stands for an X that it lacks."""

    __slots__ = ("_operands", "_specs", "attrs", "binder", "definition", "inputs", "misfit", "outputs", "runtime")

    def __init__(self, definition: OpDef, binder: Binder, operands: dict[str, list[str]]) -> None:
        self.definition, self.binder, self.attrs, self.runtime = definition, binder, binder.attrs, True
        self._operands = operands
        names_of = {slot: binder.inputs[slots[0]] for slot, slots in operands.items()}
        self.inputs = {s: names for s in definition.inputs if (names := names_of.get(s) or names_of.get(s + GRAD))}
        self.outputs = {s: names for s in definition.outputs if (names := names_of.get(s) or names_of.get(s + GRAD))}
        self._specs: dict[str, list[Spec]] = {}
        self.misfit = False  # whether an operand has another shape than by the rule

    def _slot(self, slot: str) -> str:
        """The gradient operator's slot."""
        return (self._operands.get(slot) or self._operands[slot + GRAD])[0]

    def all(self, slot: str) -> list[Any]:
        return self.binder.all(self._slot(slot)) if slot in self.inputs else list(self._specs.get(slot, ()))

    def lods(self, slot: str) -> list[Lod]:
        return self.binder.lods(self._slot(slot)) if slot in self.inputs else []

    def is_rows(self, slot: str) -> bool:
        return slot in self.inputs and self.binder.is_rows(self._slot(slot))

    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> None:
        if not self.wants(slot, i):
            return
        spec = Spec(tuple(int(n) for n in shape), np.dtype(dtype))
        self._specs.setdefault(slot, []).append(spec)
        for name in (*self._operands.get(slot, ()), *self._operands.get(slot + GRAD, ())):
            operands = self.binder.all(name)
            if i < len(operands):
                self.misfit = True
                _alike(self.binder, name, operands[i], spec, f"what {self.definition.type} computes")
                self.misfit = False

    def text(self) -> str:
        return self.binder.text()

    def where(self) -> SourceLocation | None:
        return self.binder.where()


def _operands(binder: Binder) -> tuple[OpDef | None, dict[str, list[str]]]:
    """The forward operator, and its gradient operator's slots -> the operator's own slots with values of such shapes.

    They are the same slots for its gradient operator, and those that `second_grad` names for the gradient of that one.
    For others the forward operator is None.
    """
    type = binder.definition.type
    first = type.removesuffix("_grad").removesuffix("_grad").removesuffix("_double") + "_grad"
    made = get_op(first).grad if first != type and has_op(first) else None
    if not isinstance(made, SecondGrad) or made.type != type:
        forward = forward_of(binder.definition)
        return forward if type == f"{forward.type}_grad" else None, {slot: [slot] for slot in binder.inputs}
    found: dict[str, list[str]] = {}
    for slot, source in (*made.reads.items(), *made.arriving.items()):
        if slot in binder.inputs:
            found.setdefault(source, []).append(slot)
    return forward_of(get_op(first)), found


#: Forward operators whose shape may be that of an input which their gradient operators do not have. An operator that
#: somebody else has written may be one too.
_LIKE_ANOTHER = {"expand_as_v2"}


def _alike(binder: Binder, slot: str, value: Any, of: Any, whose: str) -> None:
    """Requires that an operand has the sizes of another tensor, except for a 1 at the end, and elements as long."""
    shape, wanted = getattr(value, "shape", None), getattr(of, "shape", None)
    if not isinstance(shape, tuple) or not isinstance(wanted, tuple) or -1 in wanted:
        return  # no tensors, or the rule needs an input that the gradient operator does not have
    fits = shape == wanted or _stripped(shape) == _stripped(wanted)
    if not fits or np.dtype(value.dtype).itemsize != np.dtype(of.dtype).itemsize:
        binder.fail(
            f"Input({slot}) of {binder.definition.type} does not have the shape and dtype of {whose}.",
            expected=f"shape {list(wanted)}, {of.dtype}", received=f"shape {list(shape)}, {value.dtype}",
        )  # fmt: skip


def _stripped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without sizes of 1 at its end: some versions of Paddle give losses [n], others [n, 1]."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def check_operands(binder: Binder) -> None:
    """Requires that the operands of a gradient operator fit each other by its forward operator's rule."""
    forward, operands = _operands(binder)
    if forward is not None and forward.control:
        return  # only what has a gradient is listed, so the lists do not match; the block's operators check theirs
    for slot, slots in operands.items():
        alike = [*slots, *(operands.get(slot.removesuffix(GRAD), ()) if slot.endswith(GRAD) else ())]
        of = binder.all(alike[-1])
        for other in alike[:-1]:
            for i, (value, name) in enumerate(zip(binder.all(other), binder.inputs[other], strict=False)):
                if name != EMPTY and i < len(of):
                    _alike(binder, other, value, of[i], alike[-1])
    if forward is None or forward.infer is None:
        return
    if forward.guard is not None and binder.definition.guard is None:
        return  # the rule reads values, which are not there yet
    context = _Forward(forward, binder, operands)
    if any(not slot.dispensable and slot.name not in context.inputs for slot in forward.inputs.values()):
        return  # the gradient needs less than the rule
    if any(slot.duplicable and slot.name not in context.outputs for slot in forward.outputs.values()):
        return  # nor is it known how many there were
    if all(value is not None for slot in context.inputs for value in context.all(slot)):
        try:
            forward.infer(context)
        except RuleError:
            complete = context.inputs.keys() == forward.inputs.keys()
            others = forward.type in _LIKE_ANOTHER or not kernel_packages.is_own(forward.module)
            if context.misfit or complete or not others:
                raise
