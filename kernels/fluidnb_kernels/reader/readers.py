"""The operators that open readers, decorate them, and read."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.compile_context import CompileContext
from fluidnb.op.memory_policy import Memory
from fluidnb.values import Variable, dtypes, seeding
from fluidnb.values.reader import Batch, Check, EOFException, Reader, Tensor

#: Attributes of operators that open a reader.
TENSORS = {
    "shape_concat": Attr("ints", doc="the sizes of all tensors, one after another"),
    "ranks": Attr("ints", doc="how many of these sizes each tensor has"),
    "lod_levels": Attr("ints", [], "the LoD level of each tensor"),
    "use_data_config": Attr("bool", True, "whether the attributes declare the tensors"),
}


def shapes_of(attrs: Mapping[str, Any]) -> list[list[int]]:
    """The shapes that ``shape_concat`` and ``ranks`` of the attributes declare.

    Example:
        >>> shapes_of({"shape_concat": [-1, 3, 4, -1, 1], "ranks": [3, 2]})
        [[-1, 3, 4], [-1, 1]]
    """
    sizes = iter(attrs["shape_concat"])
    return [[next(sizes) for _ in range(rank)] for rank in attrs["ranks"]]


def check_tensors(attrs: Mapping[str, Any]) -> str | None:
    """Checks `TENSORS`: None, or the fault as a sentence."""
    ranks, levels = attrs["ranks"], attrs["lod_levels"]
    if any(rank < 0 for rank in ranks):
        return f"ranks are numbers of sizes, and one is {min(ranks)}."
    if sum(ranks) != len(attrs["shape_concat"]):
        return f"shape_concat has {len(attrs['shape_concat'])} sizes, and ranks take {sum(ranks)}."
    if levels and len(levels) != len(ranks):
        return f"lod_levels has {len(levels)} entries for {len(ranks)} tensors."
    return None


def declare_tensors(c: Context) -> None:
    """The shape rule of operators that open a reader."""
    if isinstance(c, CompileContext) and c.attr("use_data_config"):
        shapes = shapes_of({name: c.attr(name) for name in ("shape_concat", "ranks")})
        levels = c.attr("lod_levels") or [0] * len(shapes)
        c.set_reader("Out", [(shape, None, level) for shape, level in zip(shapes, levels, strict=True)])


def same_tensors(c: Context) -> None:
    """The shape rule of operators that decorate a reader."""
    if isinstance(c, CompileContext):
        c.set_reader("Out", c.reader("UnderlyingReader"))


def emit_open(b: Binder, slot: str | None, make: Callable[[Any, str], Reader]) -> None:
    """Emit the call that lets the output hold a reader over a slot's value, and do it now for the next operators."""
    out = b.scope.cell(b.outputs["Out"][0])[0]
    under = None if slot is None else b.scope.cell(b.inputs[slot][0])[0]
    open_reader(out, under, make)
    b(open_reader, out, under, make)


def open_reader(out: Variable, under: Variable | None, make: Callable[[Any, str], Reader]) -> None:
    """Let a variable hold a reader, unless it holds one over the same value already."""
    over = None if under is None else under.value
    held = out.value
    if not isinstance(held, Reader) or (held is not over and held.over is not over):
        out.value = make(over, out.name)


@op(
    "create_py_reader",
    inputs={"blocking_queue": "the queue of batches, which layers.py_reader puts into the global scope"},
    outputs={"Out": "the reader"},
    attrs=TENSORS,
    check=check_tensors,
    infer=declare_tensors,
    unset=("blocking_queue",),
    side_effect=True,
    host_only="takes batches that Python makes",
)
def create_py_reader(b: Binder) -> None:
    """Out = a reader that takes its batches from a queue; a reader over the same queue stays as it is.

    Example:
        >>> reader = fluid.layers.py_reader(4, shapes=[(-1, 2)], dtypes=["float32"])
        >>> [op.type for op in fluid.default_startup_program().global_block().ops]
        ['create_py_reader']

    Source: Fluid's create_py_reader_op.
    """
    if b["blocking_queue"] is None:
        raise EnforceNotMet(
            f"The scope has no queue {b.name('blocking_queue')} that this reader could take batches from.",
            expected="the scope that was the global one when layers.py_reader was called, or one inside it",
            received="another scope, or a program that another process built",
            hint="run the startup program in the scope in which the reader was built.",
        )  # fmt: skip
    emit_open(b, "blocking_queue", lambda queue, name: Reader(queue, name, queue))


class Uniform:
    """Gives float32 tensors with uniform elements, without end."""

    def __init__(self, low: float, high: float, shapes: list[list[int]]) -> None:
        self._low, self._high, self._shapes = low, high, [[abs(size) for size in shape] for shape in shapes]

    def pull(self, check: Check) -> Batch:
        """See `fluidnb.values.reader.Source`."""
        draw = seeding.generator().uniform
        return tuple((draw(self._low, self._high, shape).astype(np.float32), ()) for shape in self._shapes)

    def reset(self) -> None:
        """See `fluidnb.values.reader.Source`: there is no end."""


def _check(attrs: Mapping[str, Any]) -> str | None:
    low, high = attrs["low"], attrs["high"]
    if not low <= high:
        return f"low is {low}, which is more than high, {high}."
    return check_tensors(attrs)


@op(
    "create_random_data_generator",
    outputs={"Out": "the reader"},
    attrs={"low": Attr("float", doc="lower bound"), "high": Attr("float", doc="upper bound"), **TENSORS},
    check=_check,
    infer=declare_tensors,
    side_effect=True,
    host_only="takes batches that Python makes",
)
def create_random_data_generator(b: Binder) -> None:
    """Out = an endless reader of uniform random numbers in [low, high); `fluid.seed` fixes them.

    Example:
        >>> x = fluid.layers.read_file(fluid.layers.random_data_generator(2.0, 2.0, shapes=[[1, 2]], lod_levels=[0]))
        >>> exe = fluid.Executor(); _ = exe.run(fluid.default_startup_program())
        >>> exe.run(fetch_list=[x])[0]
        array([[2., 2.]], dtype=float32)

    Source: Fluid's create_random_data_generator_op.
    """
    low, high = b.attr("low"), b.attr("high")
    shapes = shapes_of({name: b.attr(name) for name in ("shape_concat", "ranks")})
    emit_open(b, None, lambda _, name: Reader(Uniform(low, high, shapes), name))


class Batched:
    """Puts instances together along their first axis, with their sequences."""

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader, self._size = reader, size
        self._instances: list[Batch] = []

    def pull(self, check: Check) -> Batch | None:
        """See `fluidnb.values.reader.Source`."""
        while len(self._instances) < self._size:
            try:
                self._instances.append(self._reader.read(check))
            except EOFException:
                break
        instances, self._instances = self._instances, []
        if not instances:
            return None
        return tuple(_together([instance[i] for instance in instances]) for i in range(len(instances[0])))

    def reset(self) -> None:
        """See `fluidnb.values.reader.Source`."""
        self._instances = []
        self._reader.reset()


def _together(tensors: list[Tensor]) -> Tensor:
    shapes = {(array.shape[1:], array.dtype, len(lod)) for array, lod in tensors}
    if len(shapes) > 1 or not tensors[0][0].ndim:
        found = ", ".join(sorted(f"{array.dtype}{list(array.shape)}" for array, _ in tensors)[:4])
        raise EnforceNotMet(
            "The instances of a batch differ in more than their first axis.",
            expected="one dtype, and one shape behind the first axis", received=found,
        )  # fmt: skip
    lod: list[list[int]] = [[0] for _ in tensors[0][1]]
    for _, levels in tensors:
        for offsets, more in zip(lod, levels, strict=True):
            offsets += [offsets[-1] + end for end in more[1:]]
    return np.concatenate([array for array, _ in tensors]), tuple(map(tuple, lod))


@op(
    "create_batch_reader",
    inputs={"UnderlyingReader: reader": "the reader of instances"},
    outputs={"Out": "a reader of batches"},
    attrs={
        "batch_size": Attr("int", doc="how many instances make a batch", gt=0),
        "discard_leftover": Attr("bool", False, "the last batch may have fewer", enum=(False,)),
    },
    infer=same_tensors,
    side_effect=True,
    host_only="takes batches that Python makes",
)
def create_batch_reader(b: Binder) -> None:
    """Out = UnderlyingReader, ``batch_size`` instances at a time, concatenated along the first axis.

    Example:
        >>> reader = fluid.layers.random_data_generator(0.0, 1.0, shapes=[[1, 2]], lod_levels=[0])
        >>> x = fluid.layers.read_file(fluid.layers.batch(reader, 3))
        >>> exe = fluid.Executor(); _ = exe.run(fluid.default_startup_program())
        >>> exe.run(fetch_list=[x])[0].shape
        (3, 2)

    Source: Fluid's create_batch_reader_op.
    """
    size = b.attr("batch_size")
    emit_open(b, "UnderlyingReader", lambda reader, name: Reader(Batched(reader, size), name, reader))


class Shuffled:
    """Collects batches and gives them in random order."""

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader, self._size = reader, size
        self._collected: list[Batch] = []
        self._full = False

    def pull(self, check: Check) -> Batch | None:
        """See `fluidnb.values.reader.Source`."""
        while not self._full and len(self._collected) < self._size:
            try:
                self._collected.append(self._reader.read(check))
            except EOFException:
                break
        if not self._full:
            seeding.generator().shuffle(self._collected)
            self._full = True
        if not self._collected:
            self._full = False
            return None
        batch = self._collected.pop()
        self._full = bool(self._collected)
        return batch

    def reset(self) -> None:
        """See `fluidnb.values.reader.Source`."""
        self._collected, self._full = [], False
        self._reader.reset()


@op(
    "create_shuffle_reader",
    inputs={"UnderlyingReader: reader": "the reader"},
    outputs={"Out": "a reader of the same batches in another order"},
    attrs={"buffer_size": Attr("int", doc="how many batches are collected and shuffled at a time", gt=0)},
    infer=same_tensors,
    side_effect=True,
    host_only="takes batches that Python makes",
)
def create_shuffle_reader(b: Binder) -> None:
    """Out = UnderlyingReader, shuffled ``buffer_size`` batches at a time; `fluid.seed` fixes the order.

    Example:
        >>> reader = fluid.layers.py_reader(4, shapes=[(-1, 2)], dtypes=["float32"])
        >>> fluid.layers.shuffle(reader, 100).name
        'create_shuffle_reader_0'

    Source: Fluid's create_shuffle_reader_op.
    """
    size = b.attr("buffer_size")
    emit_open(b, "UnderlyingReader", lambda reader, name: Reader(Shuffled(reader, size), name, reader))


@op(
    "create_double_buffer_reader",
    inputs={"UnderlyingReader: reader": "the reader"},
    outputs={"Out": "the same"},
    attrs={"place": Attr("string", "AUTO", "ignored (compatibility): batches move to the place that reads them")},
    infer=same_tensors,
    side_effect=True,
    host_only="takes batches that Python makes",
)
def create_double_buffer_reader(b: Binder) -> None:
    """Out = UnderlyingReader: the thread that fills a reader's queue prepares batches ahead already.

    Example:
        >>> reader = fluid.layers.py_reader(4, shapes=[(-1, 2)], dtypes=["float32"], use_double_buffer=False)
        >>> fluid.layers.double_buffer(reader).name
        'create_double_buffer_reader_0'

    Source: Fluid's create_double_buffer_reader_op.
    """
    emit_open(b, "UnderlyingReader", lambda reader, name: reader)


def _reader(b: Binder) -> Reader | None:
    """The reader that the variable holds in this run: a startup program may have put another one there."""
    held = b.scope.cell(b.inputs["Reader"][0])[0].value if b.has("Reader") else None
    return held if isinstance(held, Reader) else None


def _signature(b: Binder) -> Any:
    """Specialization key: the reader, and shapes, dtypes and LoDs of its next batch."""
    reader = _reader(b)
    if reader is None:
        return None
    return id(reader), tuple((array.shape, array.dtype, lod) for array, lod in reader.peek(b.memory.check))


def _declare(c: Context) -> None:
    if not isinstance(c, CompileContext) or not c.attr("infer_out"):
        return
    tensors, names = c.reader("Reader"), c.outputs["Out"]
    c.require(
        len(tensors) == len(names), "read gives each tensor of its reader an output.",
        expected=f"{len(tensors)} outputs", received=f"{len(names)}", hint="layers.read_file(reader) makes them.",
    )  # fmt: skip
    for i, (shape, dtype, level) in enumerate(tensors):
        c.set("Out", shape, dtypes.np_dtype(dtype), (None,) * level, i)


def take(reader: Reader, memory: Memory, *outs: Array) -> None:
    """Take a reader's next batch; None stands for outputs without a consumer."""
    batch: Batch = reader.read(memory.check)
    for (array, _), out in zip(batch, outs, strict=True):
        if out is None:
            continue
        if array.shape != out.shape:
            raise EnforceNotMet(
                f"Two threads read {reader.name} at the same time.", expected=f"a batch of shape {out.shape}",
                received=f"one of shape {array.shape}", hint="read a reader in one thread, or make one for each.",
            )  # fmt: skip
        np.copyto(out, array)


@op(
    "read",
    inputs={"Reader: reader": "the reader"},
    outputs={"Out*": "the tensors of its next batch"},
    attrs={
        "throw_eof_exp": Attr("bool", True, "the end of the pass raises", enum=(True,)),
        "infer_out": Attr("bool", True, "whether the outputs are declared as the reader says"),
    },
    infer=_declare,
    guard=_signature,
    side_effect=True,
    host_only="takes batches that Python makes",
    data_shape=True,
)
def read(b: Binder) -> None:
    """Out = the tensors of the reader's next batch, with their LoD.

    Raises:
        EOFException: the pass is over.

    Example:
        >>> reader = fluid.layers.py_reader(2, shapes=[(-1, 1)], dtypes=["float32"])
        >>> x = fluid.layers.read_file(reader)
        >>> reader.decorate_tensor_provider(lambda: iter([[np.ones((2, 1), "float32")]]))
        >>> exe = fluid.Executor(); _ = exe.run(fluid.default_startup_program())
        >>> reader.start(); exe.run(fetch_list=[x])[0].ravel()
        array([1., 1.], dtype=float32)
        >>> exe.run(fetch_list=[x])
        Traceback (most recent call last):
        fluidnb.values.reader.EOFException: There is no next data.
          ...
        >>> reader.reset()

    Source: Fluid's read_op.
    """
    reader = _reader(b)
    if reader is None:
        held = type(b.scope.cell(b.inputs["Reader"][0])[0].value).__name__
        raise EnforceNotMet(
            f"Input Reader of read is no reader: {b.name('Reader')} holds a {held}.", expected="a reader",
            received=held, hint="layers.py_reader makes one; run the startup program first.",
        )  # fmt: skip
    batch = reader.peek(b.memory.check)
    if len(batch) != len(b.outputs["Out"]):
        raise EnforceNotMet(
            f"{reader.name} gave another number of tensors than the program reads.",
            expected=f"{len(b.outputs['Out'])}: {', '.join(b.outputs['Out'])}", received=f"{len(batch)}",
            hint="the Python reader yields a list with an array for each.",
        )  # fmt: skip
    outs = [b.set("Out", array.shape, array.dtype, lod, i) for i, (array, lod) in enumerate(batch)]
    b.overwrites.append(reader.position)
    b(take, reader, b.memory, *outs)
