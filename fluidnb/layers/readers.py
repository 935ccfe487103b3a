"""Readers inside programs, decorated ones among them, and py_reader, which Python fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.io import data
from fluidnb.op import takes
from fluidnb.program import Block, Program, Variable, hooks, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.program.defaults import default_main_program, default_startup_program, program_guard
from fluidnb.values.dtypes import VarType, var_type

__all__ = [
    "batch", "create_py_reader_by_data", "double_buffer", "py_reader", "random_data_generator", "read_file", "shuffle",
]  # fmt: skip


def check_reader_variable(reader: Variable, layer: str) -> None:
    """Refuse what is no reader variable."""
    if reader.type != VarType.READER:
        raise OpTypeError(
            f"{layer} takes a reader variable.", expected="what layers.py_reader gives", received=typed(reader),
            hint="a Python reader goes into reader.decorate_paddle_reader(...).",
        )  # fmt: skip


def copy_reader(block: Block, source: Variable) -> Variable:
    """Declare in a block the reader that another program opens."""
    copy = block.create_var(name=source.name, type=VarType.READER, persistable=True, stop_gradient=True)
    copy.desc.set_shapes(source.desc.shapes())
    copy.desc.set_dtypes(source.desc.dtypes())
    copy.desc.set_lod_levels(source.desc.lod_levels())
    return copy


def reader_methods(reader: Variable) -> Variable:
    """Give a reader variable its ``reset()``."""
    name = reader.name

    def reset() -> None:
        """End the pass: batches that were not read are dropped."""
        variable = None if hooks.global_scope is None else hooks.global_scope().find_var(name)
        if variable is not None and variable.value is not None:
            variable.get_reader().reset()

    vars(reader)["reset"] = reset
    reader.persistable = reader.stop_gradient = True
    return reader


@naming.layer
@takes(reader="reader")
def double_buffer(reader: Variable, place: Any = None, name: str | None = None) -> Variable:
    """Decorates a reader so that batches are prepared ahead of the run.

    Args:
        place: where batches shall be; default where they are read.
        name: name of the new reader.

    Returns:
        The new reader.

    Example:
        >>> reader = fluid.layers.py_reader(8, shapes=[(-1, 2)], dtypes=["float32"], use_double_buffer=False)
        >>> fluid.layers.double_buffer(reader, name="ahead").name
        'ahead'
    """
    attrs = {} if place is None else {"place": str(place).upper()}
    return _decorated("create_double_buffer_reader", "double_buffer", reader, attrs, name)


@naming.layer
@takes(reader="reader")
def shuffle(reader: Variable, buffer_size: int) -> Variable:
    """Decorates a reader so that its batches come in random order.

    Args:
        buffer_size: how many batches are collected and shuffled at a time.

    Returns:
        The new reader.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[4, 2]], lod_levels=[0])
        >>> fluid.layers.read_file(fluid.layers.shuffle(reader, 10)).shape
        (4, 2)
    """
    return _decorated("create_shuffle_reader", "shuffle", reader, {"buffer_size": buffer_size})


@naming.layer
@takes(reader="reader")
def batch(reader: Variable, batch_size: int) -> Variable:
    """Decorates a reader of instances so that several make a batch.

    Args:
        batch_size: how many instances are put together along their first axis.

    Returns:
        The new reader.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[1, 2]], lod_levels=[0])
        >>> fluid.layers.batch(reader, 8).type.name
        'READER'
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

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[8, 3], [8, 1]], lod_levels=[0, 0])
        >>> image, label = fluid.layers.read_file(reader)
        >>> exe = fluid.Executor(); _ = exe.run(fluid.default_startup_program())
        >>> exe.run(fetch_list=[image])[0].shape
        (8, 3)
    """
    startup = default_startup_program().current_block()
    name = unique_name.generate("random_data_generator")
    reader = startup.create_var(name=name, type=VarType.READER, persistable=True)
    startup.append_op(
        type="create_random_data_generator", outputs={"Out": [reader]},
        attrs={
            "low": low, "high": high, "shape_concat": [size for shape in shapes for size in shape],
            "lod_levels": list(lod_levels), "ranks": [len(shape) for shape in shapes],
        },
    )  # fmt: skip
    return reader_methods(copy_reader(default_main_program().current_block(), reader))


def _decorated(type: str, layer: str, reader: Variable, attrs: dict[str, Any], name: str | None = None) -> Variable:
    check_reader_variable(reader, layer)
    block = default_main_program().current_block()
    created = block.create_var(name=name or unique_name.generate(type), type=VarType.READER, persistable=True)
    block.append_op(type=type, inputs={"UnderlyingReader": [reader]}, outputs={"Out": [created]}, attrs=attrs)
    methods = {k: v for k, v in vars(reader).items() if k in _METHODS}
    vars(reader_methods(created)).update(methods)
    return created


#: What a decorated reader does as the reader under it.
_METHODS = (
    "decorate_batch_generator", "decorate_paddle_reader", "decorate_sample_list_generator",
    "decorate_tensor_provider", "queue", "reset", "start",
)  # fmt: skip


@naming.layer
@takes(reader="reader")
def read_file(reader: Variable) -> Any:
    """Reads the next batch of a reader.

    Returns:
        A variable for each tensor of the batch: a list, or the variable itself where there is one.

    Example:
        >>> reader = fluid.layers.py_reader(8, shapes=[(-1, 784), (-1, 1)], dtypes=["float32", "int64"])
        >>> image, label = fluid.layers.read_file(reader)
        >>> image.shape, label.dtype.name
        ((-1, 784), 'INT64')
    """
    check_reader_variable(reader, "read_file")
    helper = LayerHelper("read_file")
    outs = [helper.create_tmp_variable("float32", stop_gradient=True) for _ in reader.desc.shapes()]
    helper.append_op(type="read", inputs={"Reader": [reader]}, outputs={"Out": outs})
    return outs[0] if len(outs) == 1 else outs


@naming.layer
def py_reader(
    capacity: int, shapes: Sequence[Sequence[int]], dtypes: Sequence[Any], lod_levels: Sequence[int] | None = None,
    name: str | None = None, use_double_buffer: bool = True,
) -> Variable:  # fmt: skip
    """Creates a reader variable that a Python reader fills in a thread.

    ``reader.decorate_paddle_reader(r)`` takes lists of samples, ``reader.decorate_tensor_provider(r)`` takes whole
    batches; ``start()`` begins a pass, whose end raises ``fluid.core.EOFException`` in the run, ``reset()`` ends it.
    An exception of the Python reader is raised by the run that would have read the batch.

    Args:
        capacity: batches to keep ready.
        shapes: the shape of each tensor with its batch axis, -1 for a size that the run decides.
        dtypes: the dtype of each tensor.
        lod_levels: the LoD level of each tensor; default 0.
        name: start of the names of the reader and its queue; two readers need two names.
        use_double_buffer: whether `double_buffer` decorates the reader.

    Returns:
        The reader, for `read_file`.

    Raises:
        OpValueError: lists of different lengths.

    Example:
        >>> reader = fluid.layers.py_reader(8, shapes=[(-1, 2), (-1, 1)], dtypes=["float32", "int64"])
        >>> x, label = fluid.layers.read_file(reader)
        >>> reader.decorate_paddle_reader(fluid.batch(lambda: iter([([1.0, 2.0], 0), ([3.0, 4.0], 1)]), 2))
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> reader.start()
        >>> exe.run(fetch_list=[label])[0].ravel()
        array([0, 1])
        >>> reader.reset()
    """
    for what, value in (("shapes", shapes), ("dtypes", dtypes)):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise OpTypeError(
                f"{what} of py_reader is a list with an entry for each tensor.",
                expected='for example shapes=[(-1, 784), (-1, 1)], dtypes=["float32", "int64"]', received=typed(value),
            )  # fmt: skip
    levels = [0] * len(shapes) if lod_levels is None else list(lod_levels)
    if not len(shapes) == len(dtypes) == len(levels):
        raise OpValueError(
            "shapes, dtypes and lod_levels of py_reader have an entry for each tensor.",
            expected="lists of one length", received=f"{len(shapes)}, {len(dtypes)} and {len(levels)} entries",
        )  # fmt: skip
    with program_guard(Program(), Program()), unique_name.guard():  # what batches are converted to and compared with
        feeds = [
            data(f"tensor_{i}", list(shape), append_batch_size=False, dtype=dtype, lod_level=level)
            for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels, strict=True))
        ]
    return reader_of(capacity, feeds, name, use_double_buffer)


@naming.layer
def create_py_reader_by_data(
    capacity: int, feed_list: Sequence[Variable], name: str | None = None, use_double_buffer: bool = True
) -> Variable:
    """Creates a reader variable that gives batches for data variables.

    Args:
        capacity: see `py_reader`.
        feed_list: data variables, whose shapes, dtypes and LoD levels the batches have.
        name: see `py_reader`.
        use_double_buffer: see `py_reader`.

    Returns:
        The reader; `read_file` reads it into variables like those of ``feed_list``.

    Example:
        >>> x = fluid.layers.data("x", [784])
        >>> reader = fluid.layers.create_py_reader_by_data(8, [x])
        >>> fluid.layers.read_file(reader).shape
        (-1, 784)
    """
    if not feed_list:
        raise OpTypeError(
            "feed_list should be a list of Variable.", expected="data variables", received=typed(feed_list)
        )
    return reader_of(capacity, list(feed_list), name, use_double_buffer)


def reader_of(capacity: int, feeds: list[Variable], name: str | None, use_double_buffer: bool) -> Variable:
    """Creates the reader of `py_reader` for given variables."""
    if name is None:
        queue_name, reader_name, buffer_name = (
            unique_name.generate(kind) for kind in ("lod_tensor_blocking_queue", "create_py_reader", "double_buffer")
        )
    else:
        queue_name, reader_name, buffer_name = (f"{name}_{kind}" for kind in ("queue", "reader", "double_buffer"))
    from fluidnb.data.batch_queue import BatchQueue, publish  # late: who builds without a reader needs no runtime

    queue = BatchQueue(capacity, reader_name, feeds)
    startup = default_startup_program().current_block()
    startup.create_var(name=queue_name, type=VarType.RAW, persistable=True)
    created = startup.create_var(name=reader_name, type=VarType.READER, persistable=True)
    shapes = [list(v.shape) for v in feeds]
    created.desc.set_shapes(shapes)
    created.desc.set_dtypes([var_type(v.dtype) for v in feeds])
    startup.append_op(
        type="create_py_reader",
        inputs={"blocking_queue": [queue_name]},
        outputs={"Out": [created]},
        attrs={
            "shape_concat": [size for shape in shapes for size in shape],
            "lod_levels": [v.lod_level or 0 for v in feeds],
            "ranks": [len(shape) for shape in shapes],
        },
    )
    reader = reader_methods(copy_reader(default_main_program().current_block(), created))
    if use_double_buffer:
        reader = double_buffer(reader, name=buffer_name)
    publish(queue_name, queue)
    vars(reader).update(queue.methods())
    return reader
