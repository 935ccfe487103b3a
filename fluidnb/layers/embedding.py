"""Embeddings: a learned row for each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["embedding"]


@naming.layer
@takes(input="lookup_table.Ids")
def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttrLike = None,
    dtype: Any = "float32",
) -> Variable:
    """Embedding lookup: rows of a learned table by index.

    Args:
        input: int64 […, 1]: the numbers, with or without sequences.
        size: [rows of the table, width].
        is_sparse: whether the gradient holds the rows that were looked up alone; quicker where the table is tall.
        is_distributed: ignored (compatibility with parameter servers).
        padding_idx: index whose embedding is zero and not trained, from the end when negative. Fluid trains this row
            with ``is_sparse=True``, because its sparse gradient keeps the values there; here both gradients are zero.
        param_attr: description of the table; one name for several layers makes them share it.
        dtype: dtype of the table.

    Returns:
        […, width], with the LoD of the input.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: the size is no pair of positive numbers, or ``padding_idx`` is outside the table.

    Example:
        >>> word = fluid.layers.data("word", [1], dtype="int64", lod_level=1)
        >>> y = fluid.layers.embedding(word, size=[1000, 32], is_sparse=True)
        >>> y.shape, y.lod_level, y.param.shape
        ((-1, 32), 1, (1000, 32))

    Source: Fluid's layers.embedding.
    """
    if len(size) != 2 or any(int(n) <= 0 for n in size):
        raise OpValueError(
            "size of embedding must be two positive numbers.",
            expected="[rows of the table, width]",
            received=list(size),
        )
    rows = int(size[0])
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise OpValueError(
            "padding_idx of embedding is outside the table.",
            expected=f"{-rows} to {rows - 1}", received=padding_idx,
        )  # fmt: skip
    helper = LayerHelper("embedding", param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr or False, [rows, int(size[1])], dtype)
    out = helper.create_tmp_variable(dtype)
    attrs = {
        "is_sparse": bool(is_sparse),
        "is_distributed": bool(is_distributed),
        "remote_prefetch": bool(is_sparse and is_distributed),
        "padding_idx": -1 if padding_idx is None else padding_idx % rows,
    }
    helper.append_op(type="lookup_table", inputs={"W": [table], "Ids": [input]}, outputs={"Out": [out]}, attrs=attrs)
    return out
