"""Readers inside programs: reading them, and decorating one with another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import takes
from fluidnb.program import Block, Variable, default_main_program, default_startup_program, hooks, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType


def check_reader_variable(reader: Any, layer: str) -> None:
    """Refuse what is no reader variable.

    Args:
        reader: what was given.
        layer: to which layer.

    Raises:
        OpTypeError: it is something else.
    """
    if not isinstance(reader, Variable) or reader.type != VarType.READER:
        raise OpTypeError(
            f"{layer} takes a reader variable.", expected="what layers.py_reader gives",
            received=f"{reader!r} ({type(reader).__name__})"[:200],
            hint="a Python reader goes into reader.decorate_paddle_reader(...).",
        )  # fmt: skip


def copy_reader(block: Block, source: Variable) -> Variable:
    """Declare in a block the reader that another program opens.

    Args:
        block: the block.
        source: the reader's variable.

    Returns:
        The variable.
    """
    made = block.create_var(name=source.name, type=VarType.READER, persistable=True, stop_gradient=True)
    made.desc.set_shapes(source.desc.shapes())
    made.desc.set_dtypes(source.desc.dtypes())
    made.desc.set_lod_levels(source.desc.lod_levels())
    return made


def reader_methods(reader: Variable) -> Variable:
    """Give a reader variable its ``reset()``.

    Args:
        reader: the variable.

    Returns:
        The same.
    """
    name = reader.name

    def reset() -> None:
        """End the pass: batches that were not read are dropped."""
        held = None if hooks.global_scope is None else hooks.global_scope().find_var(name)
        if held is not None and held.value is not None:
            held.get_reader().reset()

    vars(reader)["reset"] = reset
    reader.persistable = reader.stop_gradient = True
    return reader


@naming.layer
@takes(reader="reader")
def double_buffer(reader: Variable, place: Any = None, name: str | None = None) -> Variable:
    """Decorates a reader so that batches are prepared ahead of the run.

    Args:
        reader: a reader variable.
        place: where batches shall be; default where they are read.
        name: name of the new reader.

    Returns:
        The new reader.

    Raises:
        OpTypeError: not a reader.

    Example:
        >>> reader = fluid.layers.py_reader(8, shapes=[(-1, 2)], dtypes=["float32"], use_double_buffer=False)
        >>> fluid.layers.double_buffer(reader, name="ahead").name
        'ahead'

    Source: Fluid's layers.double_buffer.
    """
    attrs = {} if place is None else {"place": str(place).upper()}
    return _decorated("create_double_buffer_reader", "double_buffer", reader, attrs, name)


@naming.layer
@takes(reader="reader")
def shuffle(reader: Variable, buffer_size: int) -> Variable:
    """Decorates a reader so that its batches come in random order.

    Args:
        reader: a reader variable.
        buffer_size: how many batches are collected and shuffled at a time.

    Returns:
        The new reader.

    Raises:
        OpTypeError: not a reader.
        OpValueError: a size below 1.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[4, 2]], lod_levels=[0])
        >>> fluid.layers.read_file(fluid.layers.shuffle(reader, 10)).shape
        (4, 2)

    Source: Fluid's layers.shuffle.
    """
    return _decorated("create_shuffle_reader", "shuffle", reader, {"buffer_size": buffer_size})


@naming.layer
@takes(reader="reader")
def batch(reader: Variable, batch_size: int) -> Variable:
    """Decorates a reader of instances so that several make a batch.

    Args:
        reader: a reader variable.
        batch_size: how many instances are put together along their first axis.

    Returns:
        The new reader.

    Raises:
        OpTypeError: not a reader.
        OpValueError: a size below 1.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[1, 2]], lod_levels=[0])
        >>> fluid.layers.batch(reader, 8).type.name
        'READER'

    Source: Fluid's layers.batch.
    """
    return _decorated("create_batch_reader", "batch", reader, {"batch_size": batch_size})


@naming.layer
def random_data_generator(
    low: float, high: float, shapes: Sequence[Sequence[int]], lod_levels: Sequence[int], for_parallel: bool = True
) -> Variable:
    """Creates a reader of uniform random numbers without end, to try a network without data.

    Args:
        low: lower bound.
        high: upper bound.
        shapes: the shape of each tensor.
        lod_levels: the LoD level of each tensor.
        for_parallel: ignored (compatibility).

    Returns:
        The reader, of float32 tensors.

    Raises:
        OpValueError: ``low`` above ``high``, or lists of different lengths.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[8, 3], [8, 1]], lod_levels=[0, 0])
        >>> image, label = fluid.layers.read_file(reader)
        >>> exe = fluid.Executor(); _ = exe.run(fluid.default_startup_program())
        >>> exe.run(fetch_list=[image])[0].shape
        (8, 3)

    Source: Fluid's layers.random_data_generator.
    """
    startup = default_startup_program().current_block()
    made = startup.create_var(
        name=unique_name.generate("random_data_generator"), type=VarType.READER, persistable=True
    )  # fmt: skip
    startup.append_op(
        type="create_random_data_generator",
        outputs={"Out": [made]},
        attrs={
            "low": low,
            "high": high,
            "shape_concat": [size for shape in shapes for size in shape],
            "lod_levels": list(lod_levels),
            "ranks": [len(shape) for shape in shapes],
        },
    )
    return reader_methods(copy_reader(default_main_program().current_block(), made))


def _decorated(type: str, layer: str, reader: Variable, attrs: dict[str, Any], name: str | None = None) -> Variable:
    check_reader_variable(reader, layer)
    block = default_main_program().current_block()
    made = block.create_var(name=name or unique_name.generate(type), type=VarType.READER, persistable=True)
    block.append_op(type=type, inputs={"UnderlyingReader": [reader]}, outputs={"Out": [made]}, attrs=attrs)
    methods = {k: v for k, v in vars(reader).items() if k in _METHODS}
    vars(reader_methods(made)).update(methods)
    return made


#: What a decorated reader does as the reader under it.
_METHODS = (
    "decorate_batch_generator", "decorate_paddle_reader", "decorate_sample_list_generator",
    "decorate_tensor_provider", "queue", "reset", "start",
)  # fmt: skip


@naming.layer
@takes(reader="reader")
def read_file(reader: Variable) -> Any:
    """Reads the next batch of a reader.

    Args:
        reader: a reader variable.

    Returns:
        A variable for each tensor of the batch: a list, or the variable itself where there is one.

    Raises:
        OpTypeError: not a reader.

    Example:
        >>> reader = fluid.layers.py_reader(8, shapes=[(-1, 784), (-1, 1)], dtypes=["float32", "int64"])
        >>> image, label = fluid.layers.read_file(reader)
        >>> image.shape, label.dtype.name
        ((-1, 784), 'INT64')

    Source: Fluid's layers.read_file.
    """
    check_reader_variable(reader, "read_file")
    helper = LayerHelper("read_file")
    outs = [helper.create_tmp_variable("float32", stop_gradient=True) for _ in reader.desc.shapes()]
    helper.append_op(type="read", inputs={"Reader": [reader]}, outputs={"Out": outs})
    return outs[0] if len(outs) == 1 else outs
