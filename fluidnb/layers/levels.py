"""The layer that cuts rows into other sequences."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["lod_reset"]


@naming.layer
def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """The same rows cut into other sequences.

    Args:
        x: rows.
        y: a variable whose LoD is taken; one without LoD has the offsets as its values, int32.
        target_lod: offsets from 0 to the number of rows, where there is no ``y``.

    Returns:
        Shape of ``x``, with the new LoD.

    Raises:
        OpTypeError: ``x`` or ``y`` is not a Variable.
        RuleError: neither ``y`` nor ``target_lod`` is given.

    Example:
        >>> y = fluid.layers.lod_reset(fluid.layers.data("x", [3]), target_lod=[0, 4, 6])
        >>> y.lod_level
        1
    """
    inputs = {"X": x} if y is None else {"X": x, "Y": y}
    return one_op("lod_reset", inputs, {} if target_lod is None else {"target_lod": target_lod})
