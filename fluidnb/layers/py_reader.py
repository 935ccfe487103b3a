"""py_reader: a reader variable that a thread of Python fills while the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layers.io import data
from fluidnb.layers.readers import copy_reader, double_buffer, reader_methods
from fluidnb.program import Program, Variable, default_main_program, default_startup_program, program_guard, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType, var_type


@naming.layer
def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Variable:
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
        OpTypeError: shapes or dtypes are not lists.
        OpValueError: lists of different lengths, or a capacity below 1.

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

    Source: Fluid's layers.py_reader.
    """
    for what, value in (("shapes", shapes), ("dtypes", dtypes)):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise OpTypeError(
                f"{what} of py_reader is a list with an entry for each tensor.",
                expected='for example shapes=[(-1, 784), (-1, 1)], dtypes=["float32", "int64"]',
                received=f"{value!r} ({type(value).__name__})"[:200],
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

    Raises:
        OpTypeError: feed_list is no list of variables.

    Example:
        >>> x = fluid.layers.data("x", [784])
        >>> reader = fluid.layers.create_py_reader_by_data(8, [x])
        >>> fluid.layers.read_file(reader).shape
        (-1, 784)

    Source: Fluid's layers.create_py_reader_by_data.
    """
    if not feed_list:
        raise OpTypeError(
            "feed_list should be a list of Variable.", expected="data variables",
            received=f"{feed_list!r} ({type(feed_list).__name__})"[:200],
        )  # fmt: skip
    return reader_of(capacity, list(feed_list), name, use_double_buffer)


def reader_of(capacity: int, feeds: list[Variable], name: str | None, use_double_buffer: bool) -> Variable:
    """Creates the reader of `py_reader` for given variables.

    Args:
        capacity: see `py_reader`.
        feeds: variables that batches are like.
        name: see `py_reader`.
        use_double_buffer: see `py_reader`.

    Returns:
        The reader.
    """
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
    made = startup.create_var(name=reader_name, type=VarType.READER, persistable=True)
    shapes = [list(v.shape) for v in feeds]
    made.desc.set_shapes(shapes)
    made.desc.set_dtypes([var_type(v.dtype) for v in feeds])
    startup.append_op(
        type="create_py_reader",
        inputs={"blocking_queue": [queue_name]},
        outputs={"Out": [made]},
        attrs={
            "shape_concat": [size for shape in shapes for size in shape],
            "lod_levels": [v.lod_level or 0 for v in feeds],
            "ranks": [len(shape) for shape in shapes],
        },
    )
    reader = reader_methods(copy_reader(default_main_program().current_block(), made))
    if use_double_buffer:
        reader = double_buffer(reader, name=buffer_name)
    publish(queue_name, queue)
    vars(reader).update(queue.methods())
    return reader
