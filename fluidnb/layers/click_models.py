"""Layers of models that foresee clicks: counts of what was shown and clicked, and normalisation by what was seen."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["continuous_value_model", "data_norm", "hash"]


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

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: the shapes do not fit.

    Example:
        >>> x, counts = fluid.layers.data("x", [11], lod_level=1), fluid.layers.data("counts", [2])
        >>> fluid.layers.continuous_value_model(x, counts, use_cvm=False).shape
        (-1, 9)

    Source: Fluid's layers.continuous_value_model.
    """
    return one_op("cvm", {"X": input, "CVM": cvm}, {"use_cvm": use_cvm}, slot="Y")


@naming.layer
@takes(data_layout=("NCHW", "NHWC"))
def data_norm(
    input: Variable,
    act: Any = None,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = False,
) -> Variable:
    """Columns normalised by sums over all that has been seen: ``(input - sum / size) · sqrt(size / squares)``.

    Args:
        input: [batch, columns].
        act: activation.
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

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: another layout.

    Example:
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     y = fluid.layers.data_norm(fluid.layers.data("x", [6]), name="seen")
        ...     names = sorted(p.name for p in fluid.default_main_program().global_block().all_parameters())
        >>> y.shape, names
        ((-1, 6), ['seen.batch_size', 'seen.batch_square_sum', 'seen.batch_sum'])

    Source: Fluid's layers.data_norm.
    """
    if data_layout not in ("NCHW", "NHWC"):
        raise OpValueError(
            f"data_norm has no layout {data_layout!r}.", expected='"NCHW" or "NHWC"', received=repr(data_layout)
        )
    helper = LayerHelper("data_norm", input=input, act=act, name=name)
    given = param_attr if isinstance(param_attr, dict) else {}
    if len(input.shape) < 2:
        raise OpValueError(
            "The input of data_norm must be rows.", expected="2 dimensions or more", received=list(input.shape)
        )
    columns = input.shape[1 if data_layout == "NCHW" else -1]
    slots = {"BatchSize": ("batch_size", "batch_size", 1e4), "BatchSum": ("batch_sum", "batch_sum", 0.0),
             "BatchSquareSum": ("batch_square_sum", "batch_square", 1e4)}  # fmt: skip
    sums = {}
    for slot, (suffix, key, default) in slots.items():
        attr = ParamAttr(name=f"{helper.name}.{suffix}", initializer=Constant(given.get(key, default)))
        sums[slot] = [helper.create_parameter(attr, [columns], input.dtype)]
    means, scales = (helper.create_tmp_variable(input.dtype, True) for _ in range(2))
    out = input if in_place else helper.create_tmp_variable(input.dtype)
    helper.append_op(
        type="data_norm",
        inputs={"X": [input], **sums},
        outputs={"Y": [out], "Means": [means], "Scales": [scales]},
        attrs={"epsilon": epsilon},
    )
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

    Raises:
        OpTypeError: input is not a Variable.
        RuleError: it is no matrix.

    Example:
        >>> words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.hash(fluid.layers.sequence_enumerate(words, 2), 1000, num_hash=4).shape
        (-1, 4, 1)

    Source: Fluid's layers.hash (XXH64).
    """
    return one_op("hash", {"X": input}, {"num_hash": num_hash, "mod_by": hash_size}, name=name)
