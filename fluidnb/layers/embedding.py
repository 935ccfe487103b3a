"""Embeddings of words, and layers of models that foresee clicks."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op, several
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["continuous_value_model", "data_norm", "embedding", "hash"]


@naming.layer
@takes(input="lookup_table.Ids")
def embedding(
    input: Variable, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
    padding_idx: int | None = None, param_attr: ParamAttrLike = None, dtype: Any = "float32",
) -> Variable:  # fmt: skip
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

    Example:
        >>> word = fluid.layers.data("word", [1], dtype="int64", lod_level=1)
        >>> y = fluid.layers.embedding(word, size=[1000, 32], is_sparse=True)
        >>> y.shape, y.lod_level, y.param.shape
        ((-1, 32), 1, (1000, 32))
    """
    if len(size) != 2 or any(int(n) <= 0 for n in size):
        raise OpValueError(
            "size of embedding must be two positive numbers.", expected="[rows of the table, width]",
            received=list(size),
        )  # fmt: skip
    rows = int(size[0])
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise OpValueError(
            "padding_idx of embedding is outside the table.", expected=f"{-rows} to {rows - 1}", received=padding_idx
        )
    helper = LayerHelper("embedding", param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr or False, [rows, int(size[1])], dtype)
    attrs = {
        "is_sparse": bool(is_sparse),
        "is_distributed": bool(is_distributed),
        "remote_prefetch": bool(is_sparse and is_distributed),
        "padding_idx": -1 if padding_idx is None else padding_idx % rows,
    }
    return several("lookup_table", {"W": table, "Ids": input}, {"Out": dtype}, attrs, helper=helper)[0]


@naming.layer
@takes(input="cvm.X", cvm="cvm.CVM")
def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Embeddings whose first two columns, counts of shows and clicks, become logarithms or go.

    Args:
        input: embeddings [rows, columns], a sequence for each example; the first two columns are counts.
        cvm: the counts [examples, 2], which the gradient of the first two columns is.
        use_cvm: whether the counts stay, as ``log(shown + 1)`` and ``log(clicked + 1) - log(shown + 1)``.

    Returns:
        [rows, columns], or two columns less.

    Example:
        >>> x, counts = fluid.layers.data("x", [11], lod_level=1), fluid.layers.data("counts", [2])
        >>> fluid.layers.continuous_value_model(x, counts, use_cvm=False).shape
        (-1, 9)
    """
    return one_op("cvm", {"X": input, "CVM": cvm}, {"use_cvm": use_cvm}, slot="Y")


@naming.layer
@takes(data_layout=("NCHW", "NHWC"))
def data_norm(
    input: Variable, act: Any = None, epsilon: float = 1e-05, param_attr: Any = None, data_layout: str = "NCHW",
    in_place: bool = False, name: str | None = None, moving_mean_name: str | None = None,
    moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = False,
) -> Variable:  # fmt: skip
    """Columns normalised by sums over all that has been seen: ``(input - sum / size) · sqrt(size / squares)``.

    Args:
        input: [batch, columns].
        epsilon: what each row adds to the squares.
        param_attr: a dict of initial values ``batch_size``, ``batch_sum`` and ``batch_square``; 1e4, 0 and 1e4 else.
        data_layout: ``"NCHW"`` or ``"NHWC"``; both mean the columns.
        in_place: whether the result is written over the input.
        name: name of the layer; its parameters are ``name.batch_size``, ``.batch_sum`` and ``.batch_square_sum``.
        moving_mean_name: not used, as in Fluid.
        moving_variance_name: not used, as in Fluid.
        do_model_average_for_mean_and_var: not used, as in Fluid.

    Returns:
        A variable of the input's shape.

    Example:
        >>> y = fluid.layers.data_norm(fluid.layers.data("x", [6]), name="seen")
        >>> names = sorted(p.name for p in fluid.default_main_program().global_block().all_parameters())
        >>> y.shape, names
        ((-1, 6), ['seen.batch_size', 'seen.batch_square_sum', 'seen.batch_sum'])
    """
    if data_layout not in ("NCHW", "NHWC"):
        raise OpValueError(
            f"data_norm has no layout {data_layout!r}.", expected='"NCHW" or "NHWC"', received=repr(data_layout)
        )
    helper = LayerHelper("data_norm", input=input, act=act, name=name)
    initial = param_attr if isinstance(param_attr, dict) else {}
    if len(input.shape) < 2:
        raise OpValueError(
            "The input of data_norm must be rows.", expected="2 dimensions or more", received=list(input.shape)
        )
    columns = input.shape[1 if data_layout == "NCHW" else -1]
    slots = {"BatchSize": ("batch_size", "batch_size", 1e4), "BatchSum": ("batch_sum", "batch_sum", 0.0),
             "BatchSquareSum": ("batch_square_sum", "batch_square", 1e4)}  # fmt: skip
    sums = {}
    for slot, (suffix, key, default) in slots.items():
        attr = ParamAttr(name=f"{helper.name}.{suffix}", initializer=Constant(initial.get(key, default)))
        sums[slot] = [helper.create_parameter(attr, [columns], input.dtype)]
    means, scales = (helper.create_tmp_variable(input.dtype, True) for _ in range(2))
    out = input if in_place else helper.create_tmp_variable(input.dtype)
    helper.append_op(
        type="data_norm", inputs={"X": [input], **sums}, outputs={"Y": [out], "Means": [means], "Scales": [scales]},
        attrs={"epsilon": epsilon},
    )  # fmt: skip
    return helper.append_activation(out)


@naming.layer
def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """Hashes rows of ids to numbers below a bound, as ids of embeddings that are smaller than a vocabulary.

    Args:
        input: int32 or int64 [n, length], for example n-grams of `sequence_enumerate`.
        hash_size: above all results.
        num_hash: how many numbers for each row.
        name: start of the name of the result.

    Returns:
        [n, num_hash, 1] of the dtype and with the LoD of ``input``.

    Example:
        >>> words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.hash(fluid.layers.sequence_enumerate(words, 2), 1000, num_hash=4).shape
        (-1, 4, 1)
    """
    return one_op("hash", {"X": input}, {"num_hash": num_hash, "mod_by": hash_size}, name=name)
