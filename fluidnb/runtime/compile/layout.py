"""Batch-last memory layout of variables, the fastest one for convolution and pooling.

Shapes stay as they are: the memory order of an array is its strides. A kernel that depends on it checks the array.
Feeds are converted when they are copied in, fetches when they are copied out; persistable variables, and those that
several blocks see, are never converted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.op.select import library_of
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values.dtypes import dtype_name

if TYPE_CHECKING:
    from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram

Order = tuple[int, ...]
#: Smaller batches stay in C order: a run of so few elements is no run.
SMALLEST = 4

#: Operators that gain from the order -> the slots of their images.
_SOURCES = {
    "conv2d": ("Input", "Output"),
    "depthwise_conv2d": ("Input", "Output"),
    "conv3d": ("Input", "Output"),
    "conv2d_transpose": ("Input", "Output"),
    "depthwise_conv2d_transpose": ("Input", "Output"),
    "conv3d_transpose": ("Input", "Output"),
    "pool2d": ("X", "Out"),
    "pool3d": ("X", "Out"),
}

#: Operators whose images should agree in order, beside those that may work in place.
_THROUGH = {"batch_norm", "concat", "dropout", "group_norm", "split"}


def batch_innermost(lowered: LoweredProgram) -> dict[str, Order]:
    """Name -> axes, outermost first in memory, of images and of what is computed from them element by element."""
    ops = [op for block in lowered.blocks for op in block.ops]
    if not any(op.desc.optype in _SOURCES for op in ops):
        return {}
    ranks = _ranks(lowered)
    fixed = lowered.persistable | lowered.captured
    beside: dict[str, set[str]] = defaultdict(set)
    rank_of: dict[str, int] = {}
    for op in ops:
        names = {n for n in (*op.reads(), *op.writes()) if n not in fixed}
        if _passes_on(op):
            first, *others = names or [""]
            for name in others:
                beside[first].add(name)
                beside[name].add(first)
        for name in names:
            base, mark, _ = name.partition("@GRAD")
            if mark and base not in fixed:
                beside[base].add(name)
                beside[name].add(base)
        for name in _images(op):
            if name not in fixed and ranks.get(name):
                rank_of[name] = ranks[name]
    waiting = list(rank_of)
    while waiting:
        name = waiting.pop()
        for other in beside[name]:
            if other not in rank_of and ranks.get(other, 0) in (0, rank_of[name]):
                rank_of[other] = rank_of[name]
                waiting.append(other)
    last = has_onednn(lowered)
    return {name: (0, *range(2, rank), 1) if last else (*range(1, rank), 0) for name, rank in rank_of.items()}


def order_of(layout: dict[str, Order], name: str | None, shape: tuple[int, ...]) -> Order | None:
    """The memory order of a variable's array: axes from outermost to innermost, or None for C order."""
    order = layout.get(name) if layout and name is not None else None
    if order is None or len(order) != len(shape) or (order[-1] == 0 and shape[0] < SMALLEST):
        return None
    return order


def has_order(array: np.ndarray[Any, Any], order: Order | None) -> bool:
    """Whether an array has a memory order (None: C order), without gaps."""
    return bool((array if order is None else array.transpose(order)).flags.c_contiguous)


def _ranks(lowered: LoweredProgram) -> dict[str, int]:
    """The rank of every tensor; -1 for other variables."""
    return {
        name: len(var.shape()) if var.type() == VarType.LOD_TENSOR else -1
        for block in lowered.desc.blocks
        for name, var in block.vars.items()
    }


def has_onednn(lowered: LoweredProgram) -> bool:
    """Whether a convolution of the program will be computed by oneDNN."""
    return any(_is_by_onednn(op, lowered) for block in lowered.blocks for op in block.ops)


def _is_by_onednn(op: LoweredOp, lowered: LoweredProgram) -> bool:
    """Whether a convolution will be computed by oneDNN, which wants the channels innermost."""
    if "Filter" not in op.inputs or op.desc.optype not in _SOURCES:
        return False
    var = lowered.desc.blocks[op.block].find_var_recursive(op.inputs["Filter"][0])
    dtype = "float32" if var is None else dtype_name(var.dtype())
    return library_of(op.definition, dtype, op.desc.attrs) == "MKLDNN"


def _passes_on(op: LoweredOp) -> bool:
    kind = op.desc.optype
    return op.definition.inplace or kind.removesuffix("_grad") in _THROUGH


def _images(op: LoweredOp) -> Iterator[str]:
    """The images of an operator that gains from the order, and their gradients."""
    slots = _SOURCES.get(op.desc.optype.removesuffix("_grad"), ())
    layout = op.desc.attrs.get("data_format", "NCHW")
    if layout in ("NHWC", "NDHWC"):
        return
    for slot in slots:
        for side in (op.inputs, op.outputs):
            yield from (n for n in (*side.get(slot, ()), *side.get(slot + "@GRAD", ())) if n != "@EMPTY@")
