"""Parameters of an opened model are mapped or read once: little memory, and files that stay as they are."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.values.tensor_file import headers, read_tensors, write_record

#: Opens a model, runs it, and prints the largest memory of the process beside the result.
OPENS = r"""
import re, sys
import numpy as np
import fluidnb as fluid
model = fluid.open(sys.argv[1])
out = model.run(np.ones((1, 1000), "float32"))[0]
status = open("/proc/self/status").read()  # ru_maxrss may be that of the process which started this one
print(float(out.mean()), re.search(r"VmHWM:\s+(\d+)", status)[1])
"""


def written(path: Path, *arrays: np.ndarray) -> str:
    """A file of tensors by order."""
    with path.open("wb") as file:
        for array in arrays:
            write_record(file, array)
    return str(path)


def test_aligned_tensors_are_mapped_and_the_others_read(tmp_path: Path) -> None:
    arrays = [np.arange(n, dtype=kind) for n in (1, 5, 300, 7) for kind in ("float32", "int64", "uint8", "float32")]
    path = written(tmp_path / "all", *arrays)
    found = read_tensors(path, len(arrays))
    starts = [header.start for header in headers(path, (False,) * len(arrays))]
    for array, (value, lod), start in zip(arrays, found, starts, strict=True):
        np.testing.assert_array_equal(value, array)
        assert lod == () and value.dtype == array.dtype and value.flags.aligned and value.flags.writeable
        assert value.flags.owndata == (start % array.itemsize != 0)
    assert len({start % 4 for start in starts}) > 1, "both cases are there"


def test_a_mapped_tensor_that_changes_leaves_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "all", np.zeros(8, "uint8"))
    before = Path(path).read_bytes()
    ((value, _),) = read_tensors(path, 1)
    value[:] = 3
    assert Path(path).read_bytes() == before and read_tensors(path, 1)[0][0].sum() == 0


def test_a_file_with_other_tensors(tmp_path: Path) -> None:
    path = written(tmp_path / "all", np.zeros(8, "float32"))
    with pytest.raises(EnforceNotMet, match="is no tensor file, or it is cut off"):
        read_tensors(path, 2)
    with pytest.raises(EnforceNotMet, match="does not hold 0 tensors"):
        read_tensors(path, 0)
    with pytest.raises(EnforceNotMet, match="Cannot open file"):
        read_tensors(str(tmp_path / "none"), 1)


def test_what_training_changes_is_not_in_the_files(tmp_path: Path) -> None:
    x = fluid.layers.data("x", [3])
    out = fluid.layers.fc(x, 2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "m"), ["x"], [out], exe, None, "__model__", "__params__")
    before = (tmp_path / "m" / "__params__").read_bytes()
    model = fluid.open(str(tmp_path / "m"))
    for v in model.parameters:
        np.asarray(model.scope.find_var(v.name).get_tensor())[...] = 1
    assert model.run(np.ones((1, 3), "float32"))[0].tolist() == [[4, 4]]
    assert (tmp_path / "m" / "__params__").read_bytes() == before
    model.save(str(tmp_path / "m"), "programdesc")
    assert fluid.open(str(tmp_path / "m")).run(np.ones((1, 3), "float32"))[0].tolist() == [[4, 4]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("kind", ["combined", "pdparams 4", "pdparams 2"])
def test_200_mb_of_parameters_take_little_more_than_that(kind: str, tmp_path: Path) -> None:
    x = fluid.layers.data("x", [1000])
    for size in (10_000, 1000, 10_000, 1000, 10_000):
        x = fluid.layers.fc(x, size)
    name = "__model__" if kind == "combined" else "m.pdmodel"
    fluid.io.save_inference_model(str(tmp_path), ["x"], [x], fluid.Executor(), None, name, program_only=True)
    parameters = sorted(fluid.default_main_program().all_parameters(), key=lambda v: v.name)
    arrays = {v.name: np.full(v.shape, 1e-4, "float32") for v in parameters}
    if kind == "combined":
        written(tmp_path / "__params__", *arrays.values())
    else:
        (tmp_path / "m.pdparams").write_bytes(pickle.dumps(arrays, int(kind[-1])))  # as paddle.save does
    size = sum(array.nbytes for array in arrays.values())
    done = subprocess.run([sys.executable, "-c", OPENS, str(tmp_path)], check=True, capture_output=True, text=True)
    mean, peak = done.stdout.split()
    assert size > 200e6 and float(mean) > 0
    assert int(peak) * 1024 <= 1.3 * size


def record(desc: bytes, levels: bytes = struct.pack("<Q", 0), data: bytes = b"") -> bytes:
    """The bytes of a tensor with a given header."""
    return struct.pack("<I", 0) + levels + struct.pack("<Ii", 0, len(desc)) + desc + data


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    return bytes(number >> shift & 0x7F | 0x80 for shift in range(0, 63, 7)) + bytes([number >> 63])


@pytest.mark.parametrize(
    "content",
    [
        record(b"\x08\x05\x10\x01", struct.pack("<QQ", 1, 4) + b"\0" * 4, b"\0" * 4),
        record(b"\x08\x05\x10\x00\x10" + varint(2**63)),
        record(b"\x08\x05\x10\x00" + (b"\x10" + varint(2**62)) * 2),
        record(b"\x08\x05" + b"\x10\x01" * 70, data=b"\0" * 4),
        record(b"\x08" + b"\xff" * 20000 + b"\x01"),
    ],
    ids=["level", "size", "bytes", "axes", "dtype"],
)
def test_a_damaged_header(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(EnforceNotMet, match="is not a valid tensor file"):
        read_tensors(str(tmp_path / "w"), 1)


@pytest.mark.parametrize("combined", [True, False])
def test_an_invalid_lod_leaves_every_parameter(tmp_path: Path, combined: bool) -> None:
    layers = fluid.layers
    x = layers.data("x", [3])
    y = layers.fc(x, 2, param_attr="w1", bias_attr="b")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, params_filename="all" if combined else None)
    for path, lods in [("all", ((), ((0, 9),)))] if combined else [("b", ((),)), ("w1", (((0, 9),),))]:
        with (tmp_path / path).open("wb") as file:
            for lod, name in zip(lods, ("b", "w1") if combined else (path,), strict=True):
                write_record(file, np.full((3, 2) if name == "w1" else (2,), 7, "float32"), lod)
    filename = "all" if combined else None
    for load in (
        lambda: fluid.io.load_params(exe, str(tmp_path), filename=filename),
        lambda: fluid.io.load_inference_model(str(tmp_path), exe, params_filename=filename),
    ):
        with pytest.raises(FluidError, match="LoD of w1 is invalid"):
            load()
        assert not np.array(fluid.global_scope().find_var("b").get_tensor()).any()
