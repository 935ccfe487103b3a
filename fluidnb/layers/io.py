"""Layers of input and output: data layers, files, printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType


@naming.layer
def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Any = "float32",
    lod_level: int = 0,
    type: int = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """A variable that a run must feed.

    Args:
        name: its name, the key in ``feed``.
        shape: sizes; -1 or None for one that is only known when it is fed.
        append_batch_size: put a batch axis -1 in front, unless ``shape`` has an unknown size already.
        dtype: dtype of the data.
        lod_level: levels of sequences: 0 for none, 1 for a sequence in each row of the batch, …
        type: what the variable holds.
        stop_gradient: whether gradients end here.

    Returns:
        The variable.

    Raises:
        OpTypeError: the shape is not a list of sizes.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> y = fluid.layers.data("y", [2, 3], append_batch_size=False)
        >>> x.shape, y.shape
        ((-1, 13), (2, 3))
    """
    sizes = [-1 if s is None else s for s in shape]
    if append_batch_size and all(s >= 0 for s in sizes):
        sizes = [-1, *sizes]
    return LayerHelper("data", name=name).create_global_variable(
        name=name, shape=sizes, dtype=dtype, type=type, lod_level=lod_level, stop_gradient=stop_gradient, is_data=True
    )


@checked
def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Read a variable from a file when the program runs.

    Args:
        out: the variable to fill.
        file_path: a file that `save` wrote, or a ``.npy`` file.
        load_as_fp16: whether float32 values become float16.

    Example:
        >>> w = fluid.layers.create_tensor("float32", name="w")
        >>> fluid.layers.load(w, "w.npy")
        >>> w.op.type
        'load'
    """
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op(type="load", outputs={"Out": [out]}, attrs=attrs)


@naming.layer
def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = -1,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Print a variable whenever the program comes by, and hand it on.

    Args:
        input: the variable.
        first_n: how many times at most; -1 for every time.
        message: text in front.
        summarize: how many elements at most; -1 for all.
        print_tensor_name: whether to print the name.
        print_tensor_type: whether to print the dtype.
        print_tensor_shape: whether to print the shape.
        print_tensor_lod: whether to print the LoD.
        print_phase: ``forward`` prints the value, ``backward`` its gradient, ``both`` both.

    Returns:
        A copy of ``input``; what uses it instead of ``input`` lets the gradient be printed too.

    Raises:
        OpValueError: a phase that does not exist.

    Example:
        >>> x = fluid.layers.Print(fluid.layers.data("x", [3]), message="x is")
        >>> x.op.type
        'print'
    """
    helper = LayerHelper("print")
    out = helper.create_tmp_variable(input.dtype)
    attrs = {
        "first_n": first_n,
        "message": message or "",
        "summarize": summarize,
        "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type,
        "print_tensor_shape": print_tensor_shape,
        "print_tensor_lod": print_tensor_lod,
        "print_phase": print_phase.upper(),
    }
    helper.append_op(type="print", inputs={"In": [input]}, outputs={"Out": [out]}, attrs=attrs)
    return out
