"""load and load_combine: files into variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, Binder, op
from fluidnb.values import dtypes
from fluidnb_kernels.io.tensor_file import NUMPY, Header, read_data, read_header

Array = Any


def headers(path: str, count: int) -> list[Header]:
    """What a file says of the tensors in it.

    Args:
        path: the file.
        count: how many tensors it must have.

    Returns:
        A header for each.

    Raises:
        EnforceNotMet: it cannot be read, is no such file, or holds another number of tensors.
    """
    try:
        if path.endswith(NUMPY):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            return [Header(dtypes.dtype_name(array.dtype), array.shape, (), -1)]
        with open(path, "rb") as file:
            found = []
            for _ in range(count):
                found.append(read_header(file, path))
                file.seek(found[-1].size, 1)
            at, end = file.tell(), file.seek(0, 2)
    except OSError as e:
        raise EnforceNotMet(
            f"Cannot open file {path} for load op.", expected="a file that can be read", received=e.strerror,
            hint="save it first, or correct the path.",
        ) from None  # fmt: skip
    if at != end:
        raise EnforceNotMet(
            f"{path} does not hold {'one tensor' if count == 1 else f'{count} tensors'}.",
            expected=f"{at} bytes", received=f"{end} bytes",
            hint="a file of several variables is read by load_combine, in the order in which they were saved.",
        )  # fmt: skip
    return found


def load_file(path: str, count: int, *outs: Array) -> None:
    """Read the tensors of a file.

    Args:
        path: the file.
        count: how many tensors it holds.
        outs: an array for each, written.

    Raises:
        EnforceNotMet: it cannot be read.
    """
    if path.endswith(NUMPY):
        return np.copyto(outs[0], np.load(path, allow_pickle=False), casting="unsafe")
    found = headers(path, count)
    with open(path, "rb") as file:
        for header, out in zip(found, outs, strict=True):
            np.copyto(out, read_data(file, header, path), casting="unsafe")
    return None


def _guard(b: Binder) -> Any:
    """The shapes, dtypes and LoDs in the file; None where it cannot be read (the kernel then says why)."""
    try:
        found = headers(b.attr("file_path"), len(b.outputs["Out"]))
    except EnforceNotMet:
        return None
    return tuple((h.dtype, h.shape, h.lod) for h in found)


def _emit(b: Binder) -> None:
    path, count = b.attr("file_path"), len(b.outputs["Out"])
    outs = []
    for i, header in enumerate(headers(path, count)):
        dtype = dtypes.np_dtype(header.dtype)
        if b.attr("load_as_fp16") and dtype.kind == "f":
            dtype = np.dtype(np.float16)
        outs.append(b.set("Out", header.shape, dtype, header.lod, i))
    b(load_file, path, count, *outs)


_ATTRS = {"file_path": Attr("string", doc="the file"), "load_as_fp16": Attr("bool", False, "floats become float16")}


@op("load", outputs={"Out": "what the file holds"}, attrs=_ATTRS, guard=_guard, host_only=True)
def load(b: Binder) -> None:
    """Out = the tensor in the file ``file_path``, with its LoD; Paddle's format, or numpy's for ``.npy``.

    Example:
        >>> import tempfile
        >>> from fluidnb.testing import run_op
        >>> path = tempfile.mkdtemp() + "/w.npy"
        >>> np.save(path, np.array([3, 4]))
        >>> run_op("load", attrs={"file_path": path})["Out"]
        array([3, 4])

    Source: Fluid's load_op.
    """
    _emit(b)


@op(
    "load_combine",
    outputs={"Out*": "the tensors in the file, in the order in which they were saved"},
    attrs={**_ATTRS, "model_from_memory": Attr("bool", False, "not done: the file is read from disk", enum=(False,))},
    guard=_guard,
    host_only=True,
)
def load_combine(b: Binder) -> None:
    """Out = the tensors of a file that save_combine wrote.

    Example:
        >>> import tempfile
        >>> from fluidnb.testing import run_op
        >>> path = tempfile.mkdtemp() + "/all"
        >>> _ = run_op("save_combine", {"X": [np.array([1.0]), np.array([2])]}, {"file_path": path})
        >>> run_op("load_combine", attrs={"file_path": path}, outputs={"Out": 2})["Out"]
        [array([1.]), array([2])]

    Source: Fluid's load_combine_op.
    """
    _emit(b)
