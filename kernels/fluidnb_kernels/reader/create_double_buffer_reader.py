"""create_double_buffer_reader: a reader that prepares batches ahead of the run."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, op
from fluidnb_kernels.reader.specs import emit_open, same_tensors


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
