"""Layers of input and output: data layers, files, printing, Python functions."""

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op, several
from fluidnb.op.callables import callable_id
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType

__all__ = ["Print", "data", "load", "py_func"]


@naming.layer
def data(
    name: str, shape: Sequence[int | None], append_batch_size: bool = True, dtype: Any = "float32", lod_level: int = 0,
    type: int = VarType.LOD_TENSOR, stop_gradient: bool = True,
) -> Variable:  # fmt: skip
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
        OpValueError: a size is below -1.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> y = fluid.layers.data("y", [2, 3], append_batch_size=False)
        >>> x.shape, y.shape
        ((-1, 13), (2, 3))
    """
    sizes = [-1 if s is None else s for s in shape]
    if any(s < -1 for s in sizes):
        raise OpValueError(
            f'A size of layers.data("{name}") is negative.',
            expected="sizes from 0 on; -1 or None for one that a feed gives", received=list(shape),
            hint=f"write shape={[max(s, -1) for s in sizes]}.", argument="shape",
        )  # fmt: skip
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
    several("load", {}, {"Out": out}, {"file_path": file_path, "load_as_fp16": load_as_fp16})


@naming.layer
def Print(
    input: Variable, first_n: int = -1, message: str | None = None, summarize: int = -1, print_tensor_name: bool = True,
    print_tensor_type: bool = True, print_tensor_shape: bool = True, print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:  # fmt: skip
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

    Example:
        >>> x = fluid.layers.Print(fluid.layers.data("x", [3]), message="x is")
        >>> x.op.type
        'print'
    """
    attrs = {
        "first_n": first_n, "message": message or "", "summarize": summarize, "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type, "print_tensor_shape": print_tensor_shape,
        "print_tensor_lod": print_tensor_lod, "print_phase": print_phase.upper(),
    }  # fmt: skip
    return one_op("print", {"In": input}, attrs)


Variables = Variable | Sequence[Variable] | None


@naming.layer
def py_func(
    func: Callable[..., Any], x: Variables, out: Variables, backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Variables = None,
) -> Variables:  # fmt: skip
    """Call a Python function in every run, in the place of an operator.

    Args:
        func: is called with a LoDTensor for each of ``x`` and returns an array or a LoDTensor for each of ``out``.
        x: a Variable, a list of them, or None.
        out: what it returns goes into these; they are made beforehand, with shape and dtype. None for nothing.
        backward_func: is called with ``x``, ``out`` and the gradients of ``out``, and returns a gradient for each of
            ``x``; None for one means zeros. Without it no gradient passes.
        skip_vars_in_backward_input: variables among ``x`` and ``out`` that it is not called with.

    Returns:
        ``out``.

    Raises:
        OpValueError: an output without a shape.
        NotFound: a variable to skip is neither in ``x`` nor in ``out``.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> y = fluid.default_main_program().current_block().create_var(name="y", shape=[-1, 2], dtype="float32")
        >>> y = fluid.layers.py_func(lambda t: np.array(t) ** 3, x, y)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([[1, 2]], "float32")}, fetch_list=[y])[0]
        array([[1., 8.]], dtype=float32)
    """
    sources, targets, skipped = (_listed(v) for v in (x, out, skip_vars_in_backward_input))
    for v in targets:
        if not v.shape:
            raise OpValueError(
                "Output shapes of py_func must be given.", expected="a shape, -1 for unknown sizes",
                received=f"{v.name} without a shape", hint="create_var(name=..., shape=[...], dtype=...) makes one.",
            )  # fmt: skip
    known = [v.name for v in (*sources, *targets)]
    for v in skipped:
        if v.name not in known:
            raise NotFound(
                f"{v.name} is skipped, but py_func has no such variable.", expected=f"one of {', '.join(known)}",
                received=v.name, hint=near(v.name, known),
            )  # fmt: skip
    LayerHelper("py_func").append_op(
        type="py_func", inputs={"X": sources}, outputs={"Out": targets},
        attrs={
            "forward_callable_id": callable_id(func),
            "backward_callable_id": -1 if backward_func is None else callable_id(backward_func),
            "backward_skip_vars": [v.name for v in skipped],
        },
    )  # fmt: skip
    return out


def _listed(value: Variables) -> list[Variable]:
    return [] if value is None else [value] if isinstance(value, Variable) else list(value)
