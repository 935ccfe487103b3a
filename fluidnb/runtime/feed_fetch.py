"""Feeds and fetches of a run, checked against the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, NotFound, Operand, OpTypeError, OpValueError, near, typed
from fluidnb.memory import flags
from fluidnb.op import GRAD
from fluidnb.proto.desc import ProgramDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declared
from fluidnb.values.copies import is_on_device, on_host
from fluidnb.values.lod import check, checked_lengths, convert
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor

#: An array, of the host or of a device, and the LoD of its rows.
Fed = tuple[np.ndarray[Any, Any], tuple[tuple[int, ...], ...]]


def variables(desc: ProgramDesc) -> dict[str, VarDesc]:
    """Every variable of a program by name; one of block 0 hides others of the same name."""
    return {name: var for block in reversed(desc.blocks) for name, var in block.vars.items()}


def operand(slot: str, var: VarDesc) -> Operand:
    """A variable for a message."""
    if var.type() not in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY):
        return slot, var.name(), None, None
    return slot, var.name(), dtypes.dtype_name(var.dtype()), var.shape()


def fed(name: str, value: Any, desc: ProgramDesc) -> Fed:
    """One fed value as an array (converted where no value changes) and its LoD, checked against the variable.

    Args:
        value: ndarray, array of a device, LoDTensor, (ndarray, lengths of sequences), number or nested list.
    """
    var = desc.blocks[0].vars.get(name)
    if var is None:
        known = [n for n, v in desc.blocks[0].vars.items() if not v.persistable()]
        read = {n for op in desc.blocks[0].ops if op.optype == "feed" for n in op.output_arg_names()}  # a saved model's
        data = [n for n, v in desc.blocks[0].vars.items() if v.is_data() or n in read]
        hint = f"feed the names given to layers.data: {', '.join(data)}."
        if not data:
            hint = "this program reads no data: leave feed out, or run the one that does: exe.run(program, feed=...)."
        raise NotFound(
            f'The program has no variable "{name}" to feed.',
            expected=", ".join(data) or "no feed", received=name, hint=near(name, data) or near(name, known) or hint,
        )  # fmt: skip
    return as_fed(value, var)


def takes_rows(name: str, value: Any, desc: ProgramDesc) -> bool:
    """Whether a fed value is SelectedRows for a variable of that type."""
    var = desc.blocks[0].vars.get(name)
    if not isinstance(value, SelectedRows) or var is None or var.type() != VarType.SELECTED_ROWS:
        return False
    array, dims = value.value.array, tuple(var.shape())[1:]
    want = dtypes.np_dtype(var.dtype())
    fits = array is not None and array.dtype == want and array.ndim == len(dims) + 1
    if array is None or not fits or any(d not in (-1, s) for d, s in zip(dims, array.shape[1:], strict=True)):
        raise OpValueError(
            f'The SelectedRows fed for "{name}" do not fit.', slots=[operand("fed", var)],
            expected=f"{want} rows of shape {list(dims)}",
            received="no memory" if array is None else f"{array.dtype} rows of shape {list(array.shape[1:])}",
            hint="fill them first: rows.get_tensor().set(array, fluid.CPUPlace()).",
        )  # fmt: skip
    return True


def as_fed(value: Any, var: VarDesc) -> Fed:
    """A value for a variable as an array and its LoD, checked against the declaration."""
    name = var.name()
    lod: tuple[tuple[int, ...], ...] = ()
    if isinstance(value, LoDTensor):
        if value.array is None:
            raise EnforceNotMet(
                f'The tensor fed for "{name}" holds no memory.', slots=[operand("data", var)],
                expected="a tensor with a value", received="an empty LoDTensor",
                hint="fill it first: tensor.set(array, fluid.CPUPlace()).",
            )  # fmt: skip
        value, lod = value.array, value.lod_
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray):
        value, lod = value[0], checked_lengths(convert(value[1]), None, name)
    if is_on_device(value) and not value.flags.c_contiguous:
        raise OpValueError(
            f'The device array that was fed for "{name}" is not C-contiguous.',
            slots=[operand("data", var)], expected="a C-contiguous array", received=f"shape {value.shape} with gaps",
            hint="feed array.copy(); with cupy, cupy.ascontiguousarray(array).",
        )  # fmt: skip
    if isinstance(value, np.ndarray) or is_on_device(value):
        array = value
    else:
        array = _from_python(name, value, var)
    if flags.values["strict_feeds"] and var.has_checked_sizes() and var.type() == VarType.LOD_TENSOR:
        array = _checked(name, array, var)
    if declared.binding and lod and (not array.ndim or lod[-1][-1] != len(array)):
        check(lod, len(array) if array.ndim else 0, name)
    return array, lod


def _from_python(name: str, value: Any, var: VarDesc) -> np.ndarray[Any, Any]:
    if isinstance(value, list | tuple) and any(isinstance(v, np.ndarray) for v in value):
        raise OpTypeError(
            f'A list of arrays was fed for "{name}". A batch is one array; sequences go into a LoDTensor.',
            slots=[operand("data", var)],
            expected="ndarray or LoDTensor", received=f"{type(value).__name__} of {len(value)} arrays",
            hint="np.stack(...) for rows of one size, fluid.create_lod_tensor(...) for sequences.",
        )  # fmt: skip
    want = dtypes.np_dtype(var.dtype())
    try:
        plain = np.asarray(value)
        if plain.dtype.kind in "OSUMm":
            raise TypeError("not numbers")
        # Floats for whole numbers stay floats, so that they are refused: fractions must not be cut off unseen.
        return plain if plain.size and plain.dtype.kind == "f" and want.kind in "iub" else np.asarray(value, want)
    except (TypeError, ValueError, OverflowError):
        raise OpTypeError(
            f'What was fed for "{name}" cannot be made an array.', slots=[operand("data", var)],
            expected="ndarray, LoDTensor, number or nested list of numbers", received=typed(value),
            hint="nested lists must be of equal lengths; sequences go into fluid.create_lod_tensor."
            if isinstance(value, list | tuple)
            else f"feed numbers: np.array(..., {str(want)!r}).",
        ) from None  # fmt: skip


def _checked(name: str, array: np.ndarray[Any, Any], var: VarDesc) -> np.ndarray[Any, Any]:
    dims, shape = tuple(var.shape()), array.shape
    if len(dims) != len(shape) or any(d >= 0 and d != s for d, s in zip(dims, shape, strict=True)):
        raise OpValueError(
            f"The fed Variable '{name}' should have dimensions = {len(dims)}, shape = {dims}, "
            f"but received fed shape {list(shape)}.",
            slots=[operand("data", var)], expected=f"shape {dims}, -1 for any size", received=f"shape {shape}",
            hint=_shape_hint(name, dims, shape),
        )  # fmt: skip
    want = dtypes.np_dtype(var.dtype())
    if array.dtype != want:
        if not np.can_cast(array.dtype, want, "safe"):
            raise OpValueError(
                f"The fed Variable '{name}' should have dtype {want}, but received {array.dtype}.",
                slots=[operand("data", var)], expected=str(want), received=str(array.dtype),
                hint=f'array.astype("{want}") converts it.',
            )  # fmt: skip
        array = on_host(array).astype(want)
    return array


def _shape_hint(name: str, dims: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """A hint that reconciles a fed shape with the declared one."""

    def fits(sizes: tuple[int, ...]) -> bool:
        return len(sizes) == len(shape) and all(d in (-1, n) for d, n in zip(sizes, shape, strict=True))

    if dims[-1:] == (1,) and fits(dims[:-1]):
        return f"feed {name}.reshape({', '.join(map(str, (-1, *shape[1:], 1)))})."
    if dims[:1] == (-1,) and len(dims) > 2 and fits(dims[1:]):
        return (
            f'declare layers.data("{name}", shape={list(dims[2:])}), to which the batch size is added in front; '
            f"or feed a batch of one with {name}[None]."
        )
    if fits(dims[1:]):
        return f"feed {name}[None], a batch of one row."
    return (
        f'declare the sizes of a row that is fed: layers.data("{name}", shape={list(shape[1:])}); '
        "the batch size is added in front unless append_batch_size=False."
        if len(shape) > 1
        else f"feed one array with {len(dims)} axes, {list(dims)}."
    )


def fetch_names(fetch_list: Any, desc: ProgramDesc) -> list[str]:
    """The names of what is fetched, checked against the program."""
    if isinstance(fetch_list, str) or hasattr(fetch_list, "desc") or not isinstance(fetch_list, Iterable):
        fetch_list = [fetch_list]
    elif not getattr(fetch_list, "ndim", True):  # an array without dimensions passes for an Iterable
        fetch_list = [fetch_list]
    names = []
    for i, specialization in enumerate(fetch_list):
        name = specialization if isinstance(specialization, str) else getattr(specialization, "name", None)
        if not isinstance(name, str):
            raise OpTypeError(
                f"Wrong type for fetch_list[{i}]: {type(specialization).__name__}.",
                expected="a Variable or the name of one", received=repr(specialization),
                hint="for example fetch_list=[loss], or fetch_list=[loss.name].",
            )  # fmt: skip
        names.append(name)
    for name in names:
        if name in desc.blocks[0].vars:
            continue
        known = variables(desc)
        if name not in known:
            hint = near(name, known) or "fetch the Variable itself, without quotes, or its .name."
            if name.endswith(GRAD) and name.removesuffix(GRAD) in known:
                hint = "append the gradients first: optimizer.minimize(loss) or fluid.append_backward(loss)."
            raise NotFound(
                f'The program has no variable "{name}" to fetch.',
                expected="a variable of the program", received=name, hint=hint,
            )  # fmt: skip
        inside = [b.idx for b in desc.blocks if name in b.vars]
        raise NotFound(
            f'"{name}" lives inside block {inside[0]}, whose values are gone when the run ends.',
            slots=[operand("fetched", known[name])], expected="a variable of block 0", received=name,
            hint="write it to an outer variable or array, or run with keep_scopes=True and inspect the scopes.",
        )  # fmt: skip
    return names


def check_feed(feed: Any) -> Mapping[str, Any]:
    """The feed, which must be a dict of names."""
    if not isinstance(feed, Mapping):
        raise OpTypeError(
            f"feed requires dict as its Parameter. But you passed in {type(feed).__name__}.",
            expected='{"x": array, ...}', received=" ".join(repr(feed).split())[:80],
            hint="DataFeeder(feed_list, place).feed(batch) makes one from a list of samples.",
        )  # fmt: skip
    for key in feed:
        if not isinstance(key, str):
            raise OpTypeError(
                f"A key of feed is {type(key).__name__}.", expected="names of variables", received=repr(key),
                hint="feed by name: {x.name: array}.",
            )  # fmt: skip
    return feed
