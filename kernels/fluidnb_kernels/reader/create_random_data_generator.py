"""create_random_data_generator: a reader of random numbers, to try a network without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, op
from fluidnb.values import seeding
from fluidnb.values.reader import Batch, Check, Reader
from fluidnb_kernels.reader.specs import TENSORS, check_tensors, declare_tensors, emit_open, shapes_of


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
