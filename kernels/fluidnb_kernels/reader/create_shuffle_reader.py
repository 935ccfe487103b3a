"""create_shuffle_reader: the batches of a reader in random order."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, op
from fluidnb.values import seeding
from fluidnb.values.reader import Batch, Check, EOFException, Reader
from fluidnb_kernels.reader.specs import emit_open, same_tensors


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
