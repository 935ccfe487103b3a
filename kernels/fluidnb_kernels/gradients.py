"""Maker of gradients that are another forward operator."""

from collections.abc import Collection, Mapping

from fluidnb.op import EMPTY, OpDef, OpDesc, second_grad
from fluidnb.op.grad import GradMaker


def gradient_by(
    type: str, reads: Mapping[str, str], arriving: Mapping[str, str], gives: Mapping[str, str]
) -> GradMaker:
    """Maker of an operator as for `second_grad`, or of none where no input needs a gradient."""
    made = second_grad(type, reads, arriving, gives)

    def maker(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
        descs = made(desc, definition, no_grad)
        return [d for d in descs if any(n != EMPTY for names in d.outs.values() for n in names)]

    return maker
