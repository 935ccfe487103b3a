"""fold_shapes: arithmetic on shapes becomes attributes, where the sizes of the feeds decide it.

Exported models read a batch size by ``shape`` and ``slice``, and give it to ``reshape2`` or ``fill_constant`` as a
variable. With known feeds these numbers are constants; operators that nothing else reads can then be pruned.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.op import get_op, has_op, infer_compile
from fluidnb.program.program import Program
from fluidnb.program.shapes import FeedShapes, with_shapes
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import np_dtype

Array = np.ndarray[Any, Any]
#: Elements of a tensor that is followed: shapes are short.
_MOST = 64

#: Operator -> slots with numbers, each with the attribute that holds them when there is no variable. The slots of one
#: attribute stand in the order in which the operator looks at them.
_NUMBERS: dict[str, tuple[tuple[str, str], ...]] = {
    "fill_constant": (("ShapeTensor", "shape"), ("ShapeTensorList", "shape")),
    "reshape2": (("ShapeTensor", "shape"), ("Shape", "shape")),
    "expand_v2": (("Shape", "shape"), ("expand_shapes_tensor", "shape")),
    "tile": (("RepeatTimes", "repeat_times"), ("repeat_times_tensor", "repeat_times")),
}


@checked
def fold_shapes(program: Program, feed_shapes: FeedShapes) -> Program:
    """A clone of a program in which numbers that follow from the sizes of the feeds are attributes.

    Args:
        program: the program; it does not change.
        feed_shapes: name of a data variable -> its sizes, batch included.

    Returns:
        The clone. Its variables have the shapes that the feeds lead to; operators that are no longer read stay.

    Example:
        >>> x = fluid.layers.data("x", [3, 4]); n = fluid.layers.slice(fluid.layers.shape(x), [0], [0], [1])
        >>> block = fluid.default_main_program().global_block()
        >>> out, xshape = (block.create_var(name=name, dtype="float32") for name in ("out", "xshape"))
        >>> whole = fluid.layers.fill_constant([1], "int32", 12)
        >>> op = block.append_op("reshape2", {"X": x, "ShapeTensor": [n, whole]}, {"Out": out, "XShape": xshape},
        ...                      {"shape": [-1, -1]})
        >>> folded = fold_shapes(fluid.default_main_program(), {"x": (5, 3, 4)})
        >>> folded.global_block().ops[-1].attr("shape"), folded.global_block().var("out").shape
        ([5, 12], (5, 12))
    """
    copy = with_shapes(program, feed_shapes)
    block = copy.desc.blocks[0]
    values: dict[str, Array] = {}
    written: dict[str, int] = {}
    for each in copy.desc.blocks:
        for op in each.ops:
            for name in op.output_arg_names():
                written[name] = written.get(name, 0) + 1
    for op in block.ops:
        changed = _with_attributes(op, values)
        if changed or (values and has_op(op.optype) and not get_op(op.optype).is_grad):
            infer_compile(get_op(op.optype), op, block)  # again, since what it reads may have got sizes
        value = _value(op, block, values)
        if value is not None and written[_result(op)] == 1 and value.size <= _MOST:
            values[_result(op)] = value
    return copy


def _with_attributes(op: OpDesc, values: Mapping[str, Array]) -> bool:
    """Replace the variables with numbers of an operator by its attribute; whether that was possible."""
    for slot, attr in _NUMBERS.get(op.optype, ()):
        names = op.ins.get(slot, [])
        if not names:
            continue
        if not all(name in values for name in names):
            return False
        numbers = [int(n) for name in names for n in values[name].reshape(-1)]
        for other, same in _NUMBERS[op.optype]:
            if same == attr:
                op.set_input(other, [])
        op.set_attr(attr, numbers)
        return True
    return False


def _value(op: OpDesc, block: BlockDesc, values: Mapping[str, Array]) -> Array | None:
    """The value of an operator's result, where the sizes of the feeds decide it."""
    if op.optype == "shape":
        var = block.find_var_recursive(op.ins["Input"][0])
        sizes = None if var is None else var.shape()
        return None if sizes is None or min(sizes, default=0) < 0 else np.array(sizes, "int32")
    if op.optype == "fill_constant":
        if any(op.ins.values()) or np.dtype(np_dtype(op.attrs["dtype"])).kind not in "iu":
            return None
        text = op.attrs.get("str_value") or op.attrs.get("value", 0)
        return np.full(op.attrs["shape"], int(float(text)), np_dtype(op.attrs["dtype"]))
    formula = _FORMULAS.get(op.optype)
    names = [n for slot in ("Input", "X", "Y") for n in op.ins.get(slot, [])]
    if formula is None or not names or not all(n in values for n in op.input_arg_names()):
        return None
    out = block.find_var_recursive(_result(op))
    value = formula(op, [values[n] for n in names])
    if out is None or min(out.shape(), default=0) < 0 or value.size != np.prod(out.shape(), dtype=int):
        return None
    return value.reshape(out.shape()).astype(np_dtype(out.dtype()))


def _result(op: OpDesc) -> str:
    """The variable of an operator's result; ``stack`` calls the slot Y."""
    return (op.outs.get("Out") or op.outs["Y"])[0]


def _slice(op: OpDesc, given: Sequence[Array]) -> Array:
    where = [slice(None)] * given[0].ndim
    for axis, start, end in zip(op.attrs["axes"], op.attrs["starts"], op.attrs["ends"], strict=True):
        where[axis] = slice(start, end)
    return given[0][tuple(where)]


def _scale(op: OpDesc, given: Sequence[Array]) -> Array:
    type = given[0].dtype.type  # the operator takes both in the dtype of X
    scale, bias = type(op.attrs.get("scale", 1.0)), type(op.attrs.get("bias", 0.0))
    if op.attrs.get("bias_after_scale", True):
        return np.asarray(given[0] * scale + bias)
    return np.asarray((given[0] + bias) * scale)


#: Operators on shapes: from the values of Input, X and Y to that of Out, which then gets its shape and dtype.
_FORMULAS: dict[str, Callable[[OpDesc, Sequence[Array]], Array]] = {
    "assign": lambda op, given: given[0],
    "cast": lambda op, given: given[0],
    "concat": lambda op, given: np.concatenate(given, op.attrs.get("axis", 0)),
    "elementwise_add": lambda op, given: given[0] + given[1],
    "elementwise_floordiv": lambda op, given: given[0] // given[1],
    "elementwise_mul": lambda op, given: given[0] * given[1],
    "elementwise_sub": lambda op, given: given[0] - given[1],
    "reduce_prod": lambda op, given: np.prod(given[0], keepdims=True),
    "reshape": lambda op, given: given[0],
    "reshape2": lambda op, given: given[0],
    "scale": _scale,
    "slice": _slice,
    "squeeze": lambda op, given: given[0],
    "squeeze2": lambda op, given: given[0],
    "stack": lambda op, given: np.stack(given, op.attrs.get("axis", 0)),
    "unsqueeze": lambda op, given: given[0],
    "unsqueeze2": lambda op, given: given[0],
}
