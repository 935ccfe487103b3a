"""Random numbers and dropout. Every draw comes from the program's own stream unless a seed says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes
from fluidnb.values.seeding import generator


@naming.layer
def uniform_random(
    shape: Sequence[int], dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Independent draws from the uniform distribution on [min, max), new ones at every run.

    Args:
        shape: all sizes known.
        dtype: a floating dtype.
        min: lower bound.
        max: upper bound.
        seed: another number than 0 gives the same draws at every run.

    Returns:
        The draws.

    Example:
        >>> fluid.layers.uniform_random([2, 3]).shape
        (2, 3)
    """
    attrs = {
        "shape": list(shape),
        "dtype": int(dtypes.var_type(dtype)),
        "min": float(min),
        "max": float(max),
        "seed": seed,
    }
    return one_op("uniform_random", {}, attrs, dtype=dtype)


@naming.layer
def gaussian_random(
    shape: Sequence[int], mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """Independent draws from a normal distribution, new ones at every run.

    Args:
        shape: all sizes known.
        mean: the mean.
        std: the standard deviation.
        seed: another number than 0 gives the same draws at every run.
        dtype: a floating dtype.

    Returns:
        The draws.

    Example:
        >>> fluid.layers.gaussian_random([2, 3]).shape
        (2, 3)
    """
    attrs = {
        "shape": list(shape),
        "dtype": int(dtypes.var_type(dtype)),
        "mean": float(mean),
        "std": float(std),
        "seed": seed,
    }
    return one_op("gaussian_random", {}, attrs, dtype=dtype)


@naming.layer
@takes(x="float")
def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Set each element to zero with a probability, in training; in test programs every element stays.

    Args:
        x: any shape, float.
        dropout_prob: probability of a zero, from 0 to 1.
        is_test: whether this is a test program; ``clone(for_test=True)`` sets it.
        seed: a number that gives the same mask at every run; None draws new ones.
        name: name of the layer.
        dropout_implementation: ``downgrade_in_infer`` scales by ``1 - dropout_prob`` in test,
            ``upscale_in_train`` by ``1 / (1 - dropout_prob)`` in training.

    Returns:
        Shape, dtype and LoD of ``x``.

    Raises:
        OpValueError: a probability or an implementation that does not exist.

    Example:
        >>> fluid.layers.dropout(fluid.layers.data("x", [3]), dropout_prob=0.5).shape
        (-1, 3)
    """
    helper = LayerHelper("dropout", name=name)
    out = helper.create_tmp_variable(x.dtype)
    mask = helper.create_tmp_variable("uint8", stop_gradient=True)
    attrs = {
        "dropout_prob": float(dropout_prob),
        "is_test": is_test,
        "fix_seed": bool(seed),
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    helper.append_op(type="dropout", inputs={"X": [x]}, outputs={"Out": [out], "Mask": [mask]}, attrs=attrs)
    return out


@naming.layer
@takes(x="any[batch, …]")
def random_crop(x: Variable, shape: Sequence[int], seed: int | Variable | None = None) -> Variable:
    """A part of each instance of a batch, each from another random place.

    Args:
        x: [batch, …].
        shape: shape of a part; as many of the last dimensions of ``x`` are cut, those before them are the batch.
        seed: a number from which the places follow, other ones in every run; or an int64 variable [1], which holds the
            next one after each run. None draws a number, which `fluid.seed` fixes.

    Returns:
        [batch, the shape]; no gradient passes.

    Raises:
        OpTypeError: ``seed`` is something else.
        RuleError: the shape is not that of a part.

    Example:
        >>> fluid.layers.random_crop(fluid.layers.data("image", [3, 256, 256]), shape=[3, 224, 224]).shape
        (-1, 3, 224, 224)

    Source: Fluid's layers.random_crop.
    """
    helper = LayerHelper("random_crop")
    attrs: dict[str, Any] = {"shape": list(shape)}
    if seed is None:
        seed = int(generator().integers(-65536, 65536))
    if isinstance(seed, int):
        attrs["startup_seed"] = seed
        seed, _ = helper.create_or_get_global_variable(
            naming.layer_name("random_crop_seed"), dtype="int64", shape=[1], persistable=True, stop_gradient=True
        )
        helper.set_variable_initializer(seed, Constant(attrs["startup_seed"], force_cpu=True))
    out = helper.create_tmp_variable(x.dtype, stop_gradient=True)
    outputs = {"Out": [out], "SeedOut": [seed]}
    helper.append_op(type="random_crop", inputs={"X": [x], "Seed": [seed]}, outputs=outputs, attrs=attrs)
    return out
