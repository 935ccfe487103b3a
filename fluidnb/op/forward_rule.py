"""Shape rule of a gradient operator: repeats the forward operator's rule to check operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.op.compile_context import Spec
from fluidnb.op.context import EMPTY, GRAD, Context, Lod, RuleError
from fluidnb.op.define import OpDef, forward_of
from fluidnb.op.rules import product
from fluidnb.proto.desc import OpDesc
from fluidnb.where import Where

if TYPE_CHECKING:
    from fluidnb.op.binder import Binder


class _Forward(Context):
    """A forward operator with the operands that its gradient operator has."""

    __slots__ = ("_found", "attrs", "binder", "definition", "inputs", "misfit", "outputs", "runtime")

    def __init__(self, definition: OpDef, binder: Binder) -> None:
        self.definition, self.binder, self.attrs, self.runtime = definition, binder, binder.attrs, True
        given = binder.inputs
        self.inputs = {s: given[s] for s in definition.inputs if s in given}
        self.outputs = {s: names for s in definition.outputs if (names := given.get(s) or given.get(s + GRAD))}
        self._found: dict[str, list[Spec]] = {}
        self.misfit = False  # whether an operand has another shape than the rule says

    def all(self, slot: str) -> list[Any]:
        return self.binder.all(slot) if slot in self.inputs else list(self._found.get(slot, ()))

    def lods(self, slot: str) -> list[Lod]:
        return self.binder.lods(slot) if slot in self.inputs else []

    def is_rows(self, slot: str) -> bool:
        return slot in self.inputs and self.binder.is_rows(slot)

    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> None:
        if not self.wants(slot, i):
            return
        spec = Spec(tuple(int(n) for n in shape), np.dtype(dtype))
        self._found.setdefault(slot, []).append(spec)
        for name in (slot, slot + GRAD):
            operands = self.binder.all(name) if name in self.binder.inputs else []
            if i < len(operands):
                self.misfit = True
                _alike(self.binder, name, operands[i], spec, f"what {self.definition.type} computes")
                self.misfit = False

    def text(self) -> str:
        return self.binder.text()

    def where(self) -> Where | None:
        return self.binder.where()


#: Forward operator -> its definition, and the input slots that its gradient operator reads too.
_slots: dict[str, tuple[OpDef, frozenset[str]]] = {}


def _carried(forward: OpDef) -> frozenset[str]:
    """The input slots of an operator that its gradient operator reads too, as its maker has it."""
    known = _slots.get(forward.type)
    if known is None or known[0] is not forward:
        whole = OpDesc(forward.type, {s: [s] for s in forward.inputs}, {s: [s] for s in forward.outputs})
        try:
            made = forward.grad(whole, forward, set()) if forward.grad else []
        except Exception:  # a maker that wants attributes
            made = []
        known = forward, frozenset(slot for desc in made for slot in desc.ins)
        _slots[forward.type] = known
    return known[1]


def _alike(binder: Binder, slot: str, value: Any, of: Any, whose: str) -> None:
    """Require that an operand has as many elements as another tensor, of the same size in bytes."""
    shape, wanted = getattr(value, "shape", None), getattr(of, "shape", None)
    if not isinstance(shape, tuple) or not isinstance(wanted, tuple):
        return  # no tensors
    if product(shape) != product(wanted) or np.dtype(value.dtype).itemsize != np.dtype(of.dtype).itemsize:
        binder.fail(
            f"Input({slot}) of {binder.definition.type} does not have the shape and dtype of {whose}.",
            expected=f"shape {list(wanted)}, {of.dtype}", received=f"shape {list(shape)}, {value.dtype}",
        )  # fmt: skip


def check_operands(binder: Binder) -> None:
    """Require that the operands of a gradient operator fit each other, as its forward operator's rule has it.

    Args:
        binder: of the gradient operator.

    Raises:
        RuleError: an operand breaks the rule, or a gradient has another size than what it is the gradient of.
    """
    forward = forward_of(binder.definition)
    if forward.control:
        return  # only what has a gradient is listed, so the lists do not match; the block's operators check theirs
    for slot, names in binder.inputs.items():
        if slot.endswith(GRAD) and slot.removesuffix(GRAD) in binder.inputs:
            of = binder.all(slot.removesuffix(GRAD))
            for i, (value, name) in enumerate(zip(binder.all(slot), names, strict=False)):
                if name != EMPTY and i < len(of):
                    _alike(binder, slot, value, of[i], slot.removesuffix(GRAD))
    if forward.infer is None or binder.definition.type != f"{forward.type}_grad":
        return
    if forward.guard is not None:
        return  # the rule reads values
    asked = _Forward(forward, binder)
    if any(not slot.dispensable and slot.name not in asked.inputs for slot in forward.inputs.values()):
        return  # the gradient needs less than the rule
    if any(slot.duplicable and slot.name not in asked.outputs for slot in forward.outputs.values()):
        return  # nor is it known how many there were
    if all(value is not None for slot in asked.inputs for value in asked.all(slot)):
        try:
            forward.infer(asked)
        except RuleError:  # it may miss an input that the gradient operator never has
            if asked.misfit or forward.inputs.keys() <= asked.inputs.keys() | _carried(forward):
                raise
