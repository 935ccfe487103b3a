"""save and save_combine: variables into files."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.files.atomic_write import atomic_write
from fluidnb.op import Attr, Binder, op
from fluidnb.values import SelectedRows
from fluidnb_kernels.io.tensor_file import NUMPY, write_record, write_rows


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


def _emit(b: Binder) -> None:
    options = b.attr("file_path"), b.attr("overwrite"), b.attr("save_as_fp16")
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
    _emit(b)


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
    _emit(b)
