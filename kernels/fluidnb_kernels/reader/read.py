"""read: the next batch of a reader."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.compile_context import CompileContext
from fluidnb.op.memory_policy import Memory
from fluidnb.values import dtypes
from fluidnb.values.reader import Batch, Reader


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
