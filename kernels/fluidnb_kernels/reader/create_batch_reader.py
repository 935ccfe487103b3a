"""create_batch_reader: several instances of a reader put together."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, Binder, op
from fluidnb.values.reader import Batch, Check, EOFException, Reader, Tensor
from fluidnb_kernels.reader.specs import emit_open, same_tensors


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
