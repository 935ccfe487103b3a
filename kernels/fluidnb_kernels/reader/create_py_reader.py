"""create_py_reader: a reader over a queue that a Python thread fills."""

from __future__ import annotations

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Binder, op
from fluidnb.values.reader import Reader
from fluidnb_kernels.reader.specs import TENSORS, check_tensors, declare_tensors, emit_open


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
