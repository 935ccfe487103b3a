"""save, save_combine, load and load_combine: variables to files and back."""

from typing import IO, Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.files.atomic_write import atomic_write
from fluidnb.op import Attr, Binder, op
from fluidnb.values import SelectedRows, dtypes
from fluidnb.values.tensor_file import NUMPY, headers, read_data, write_record, write_rows
from fluidnb_kernels.rows.values import dtype_of, fill, rows_output


def check_path(value: str) -> str | None:
    """Checks the name of a file: None, or the fault as a sentence."""
    if "\0" in value:
        return "file_path has a null byte, which no name of a file can have."
    return None if value else "file_path is empty; it should be the name of a file."


ATTRS = {
    "file_path": Attr("string", doc="the file", check=check_path),
    "overwrite": Attr("bool", True, "replace a file that is there"),
    "save_as_fp16": Attr("bool", False, "write floats as float16"),
}


def _write(file: IO[bytes], path: str, value: Any, lod: Any, half: bool) -> None:
    if isinstance(value, SelectedRows):
        return write_rows(file, value)
    if half and value.dtype.kind == "f":
        value = value.astype(np.float16)
    if path.endswith(NUMPY):
        if lod:
            raise EnforceNotMet(
                f"{path} cannot hold sequences.", expected="a tensor without LoD", received=f"LoD {lod}",
                hint="another ending than .npy writes Paddle's format.",
            )  # fmt: skip
        return np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    return write_record(file, value, lod)


def save_file(path: str, overwrite: bool, half: bool, lods: tuple[Any, ...], *values: Any) -> None:
    """Write values one after another into a file that appears when it is whole."""
    size = sum(np.asarray(v.get_tensor()).nbytes if isinstance(v, SelectedRows) else v.nbytes for v in values)
    with atomic_write(path, overwrite=overwrite, parents=True, size=size) as file:
        for value, lod in zip(values, lods, strict=True):
            _write(file, path, value, lod, half)


def _save_emit(b: Binder) -> None:
    options = b.attr("file_path"), b.attr("overwrite"), b.attr("save_as_fp16")
    b.require(
        len(b.inputs["X"]) == 1 or not options[0].endswith(NUMPY), f"{options[0]} cannot hold several tensors.",
        expected="one tensor", received=f"{len(b.inputs['X'])}",
        hint="another ending than .npy writes Paddle's format.",
    )  # fmt: skip
    b(save_file, *options, tuple(b.lods("X")), *b.all("X"))


@op(
    "save", inputs={"X: any | rows": "a tensor or SelectedRows"}, attrs=ATTRS, side_effect=True,
    host_only="reads or writes files",
)  # fmt: skip
def save(b: Binder) -> None:
    """Write X into the file ``file_path``, in Paddle's format; as ``.npy`` in numpy's.

    Example:
        >>> import tempfile
        >>> from fluidnb.testing import run_op
        >>> path = tempfile.mkdtemp() + "/w"
        >>> _ = run_op("save", {"X": [1.0, 2.0]}, {"file_path": path})
        >>> run_op("load", attrs={"file_path": path})["Out"]
        array([1., 2.])

    Source: Fluid's save_op.
    """
    _save_emit(b)


@op("save_combine", inputs={"X*": "tensors"}, attrs=ATTRS, side_effect=True, host_only="reads or writes files")
def save_combine(b: Binder) -> None:
    """Write several tensors into one file, one after another, without their names.

    Example:
        >>> import tempfile
        >>> from fluidnb.testing import run_op
        >>> path = tempfile.mkdtemp() + "/all"
        >>> _ = run_op("save_combine", {"X": [np.array([1.0]), np.array([2])]}, {"file_path": path})
        >>> run_op("load_combine", attrs={"file_path": path}, outputs={"Out": 2})["Out"]
        [array([1.]), array([2])]

    Source: Fluid's save_combine_op.
    """
    _save_emit(b)


def load_file(path: str, *outs: Any) -> None:
    """Read the tensors of a file."""
    if path.endswith(NUMPY):
        return np.copyto(outs[0], np.load(path, allow_pickle=False), casting="unsafe")
    found = headers(path, tuple(isinstance(out, SelectedRows) for out in outs))
    with open(path, "rb") as file:
        for header, out in zip(found, outs, strict=True):
            data = read_data(file, header, path)
            if isinstance(out, SelectedRows):
                out.height_ = header.height
                fill(out, np.array(header.rows, np.int64), data.astype(dtype_of(out)))
            else:
                np.copyto(out, data, casting="unsafe")


def _kinds(b: Binder) -> tuple[bool, ...]:
    """For each Out, whether it is SelectedRows."""
    return tuple(rows_output(b, "Out", i) is not None for i in range(len(b.outputs["Out"])))


def _guard(b: Binder) -> Any:
    """The shapes, dtypes and LoDs in the file; None where it cannot be read (the kernel then says why)."""
    try:
        found = headers(b.attr("file_path"), _kinds(b))
    except EnforceNotMet:
        return None
    return tuple((h.dtype, h.shape, h.lod) for h in found)


def _load_emit(b: Binder) -> None:
    path, outs = b.attr("file_path"), list[Any]()
    for i, header in enumerate(headers(path, _kinds(b))):
        dtype = dtypes.np_dtype(header.dtype)
        if b.attr("load_as_fp16") and dtype.kind == "f":
            dtype = np.dtype(np.float16)
        rows = rows_output(b, "Out", i)
        if rows is None:
            outs.append(b.set("Out", header.shape, dtype, header.lod, i))
            continue
        rows.height_ = header.height  # now too, for who reads its shape and dtype
        fill(rows, np.array(header.rows, np.int64), np.empty(header.shape, dtype))
        outs.append(b.put("Out", rows, i))
    b(load_file, path, *outs)


_ATTRS = {
    "file_path": Attr("string", doc="the file", check=check_path),
    "load_as_fp16": Attr("bool", False, "floats become float16"),
}


@op("load", outputs={"Out": "what the file holds"}, attrs=_ATTRS, guard=_guard, host_only="reads or writes files")
def load(b: Binder) -> None:
    """Out = what the file ``file_path`` holds, a tensor with its LoD or SelectedRows; as ``.npy`` numpy's format.

    Example:
        >>> import tempfile
        >>> from fluidnb.testing import run_op
        >>> path = tempfile.mkdtemp() + "/w.npy"
        >>> np.save(path, np.array([3, 4]))
        >>> run_op("load", attrs={"file_path": path})["Out"]
        array([3, 4])

    Source: Fluid's load_op.
    """
    _load_emit(b)


@op(
    "load_combine",
    outputs={"Out*": "the tensors in the file, in the order in which they were saved"},
    attrs={**_ATTRS, "model_from_memory": Attr("bool", False, "not done: the file is read from disk", enum=(False,))},
    guard=_guard,
    host_only="reads or writes files",
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
    _load_emit(b)
