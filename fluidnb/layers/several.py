"""The layer of one operator with several outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import Inputs, check_variable
from fluidnb.program import Variable


def several(
    op_type: str,
    inputs: Inputs,
    outputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    constant: tuple[str, ...] = (),
) -> list[Variable]:
    """Append one operator, with a variable for each of its outputs.

    Args:
        op_type: the operator's type.
        inputs: slot -> variable or list of variables.
        outputs: slot -> dtype.
        attrs: its attributes.
        name: name of the layer, from which the new variables' names are made.
        constant: slots of outputs at which gradients end.

    Returns:
        The outputs, in the order of ``outputs``.

    Raises:
        OpTypeError: an input is not a Variable.

    Example:
        >>> x = fluid.layers.data("x", [3])
        >>> [v.shape for v in several("argsort", {"X": x}, {"Out": "float32", "Indices": "int64"})]
        [(-1, 3), (-1, 3)]
    """
    helper = LayerHelper(op_type, name=name)
    lists = {s: v if isinstance(v, list) else [v] for s, v in inputs.items()}
    for slot, variables in lists.items():
        for v in variables:
            check_variable(v, slot, op_type)
    made = {slot: helper.create_tmp_variable(dtype, slot in constant) for slot, dtype in outputs.items()}
    helper.append_op(type=op_type, inputs=lists, outputs={s: [v] for s, v in made.items()}, attrs=attrs or {})
    return list(made.values())
