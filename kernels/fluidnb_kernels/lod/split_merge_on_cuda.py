"""split_lod_tensor and merge_lod_tensor on a GPU."""

from __future__ import annotations

from typing import Any

from fluidnb.op import Binder, kernel, product
from fluidnb_kernels.compare.on_cuda import CUDA
from fluidnb_kernels.cuda import vector
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.lod.split_merge import merge, split
from fluidnb_kernels.sequence import maps
from fluidnb_kernels.tensor import picks

Array = Any


def _places(b: Binder, mask: Array, wanted: bool, count: int) -> Array:
    """The rows that a mask marks, ``count`` of them; the mask alone says which, since the guard sees only how many."""
    if not wanted:
        opposite = b.tmp(mask.shape, bool)
        width = vector(mask, opposite)
        each(b, CUDA, f"logical_not<{width}>", mask.size, mask, opposite, per_thread=width)
        mask = opposite
    return picks.places(b, mask, count)


def _take_marked(b: Binder, x: Array, mask: Array, wanted: bool, out: Array) -> None:
    picks.take(b, x, _places(b, mask, wanted, len(out)), out, (1, len(x), product(x.shape[1:])))


def _put_marked(b: Binder, x: Array, mask: Array, wanted: bool, out: Array) -> None:
    maps.place(b, x, _places(b, mask, wanted, len(x)), out)


def _put(b: Binder, x: Array, rows: Array, out: Array) -> None:
    maps.place(b, x, maps.on_device(b, rows), out)


@kernel("split_lod_tensor", place="cuda")
def split_lod_tensor_on_cuda(b: Binder) -> None:
    """Rows by a map; without sequences by the places that the mask marks."""
    split(b, maps.gather, _take_marked)


for _type in ("merge_lod_tensor", "merge_lod_tensor_infer"):

    @kernel(_type, place="cuda")
    def _merge_on_cuda(b: Binder) -> None:
        merge(b, _put, _put_marked)
