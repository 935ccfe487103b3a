"""Saving, loading, printing, feeding and fetching."""

import os

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, LoDTensorArray, SelectedRows

X = np.arange(6, dtype="float32").reshape(3, 2)


class TestSave(OpTest):
    op_type = "save"

    def test_output(self, tmp_path):
        """The bytes of a [13, 5] float32 parameter, as Paddle writes them."""
        w = np.arange(65, dtype="float32").reshape(13, 5)
        run_op("save", {"X": w}, {"file_path": str(tmp_path / "w")})
        head = bytes.fromhex("00000000 0000000000000000 00000000 06000000 0805100d1005")
        assert (tmp_path / "w").read_bytes() == head + w.tobytes()


class TestLoad(OpTest):
    op_type = "load"

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
    @pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
    def test_output(self, tmp_path, dtype, shape):
        x, path = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype), str(tmp_path / "x")
        run_op("save", {"X": x}, {"file_path": path})
        got = run_op("load", attrs={"file_path": path})["Out"]
        assert got.dtype == x.dtype and got.shape == x.shape and np.array_equal(got, x)


class TestSaveCombine(OpTest):
    op_type = "save_combine"

    def test_output(self, tmp_path):
        """One file is the files of its variables, one after another."""
        path = str(tmp_path / "all")
        run_op("save_combine", {"X": [X, X[0].copy()]}, {"file_path": path})
        for name, x in (("a", X), ("b", X[0])):
            run_op("save", {"X": x}, {"file_path": str(tmp_path / name)})
        assert (tmp_path / "all").read_bytes() == (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes()


class TestLoadCombine(OpTest):
    op_type = "load_combine"

    def test_output(self, tmp_path):
        path = str(tmp_path / "all")
        run_op("save_combine", {"X": [X, np.array([7])]}, {"file_path": path})
        a, b = run_op("load_combine", attrs={"file_path": path}, outputs={"Out": 2})["Out"]
        assert np.array_equal(a, X) and b.tolist() == [7] and b.dtype == "int64"


class TestFeed(OpTest):
    op_type = "feed"

    def test_output(self):
        held = LoDTensorArray([X, X[0].copy()])
        assert np.array_equal(run_op("feed", {"X": held}, {"col": 1})["Out"], X[0])


class TestFetch(OpTest):
    op_type = "fetch"

    def test_output(self):
        got = run_op("fetch", {"X": X}, {"col": 1})["Out"]
        assert len(got) == 2 and np.array_equal(got[1].array, X)


class TestPrint(OpTest):
    op_type, inputs, outputs = "print", {"In": X}, {"Out": X}
    attrs = {"message": "look", "summarize": 3}

    def test_output(self, capsys):
        self.check_output()
        first = capsys.readouterr().out
        assert first.startswith(
            "look\nVariable: In\n  - lod: []\n  - shape: [3, 2]\n  - dtype: float32\n  - data: [0. 1. 2.]\n"
        )

    def test_grad(self, capsys):
        self.check_grad("In")
        assert "Variable: Out@out@GRAD" in capsys.readouterr().out


# ---- files


def test_sequences_are_kept(tmp_path):
    tensor = LoDTensor(X, ((0, 1, 2), (0, 2, 3)))
    path = str(tmp_path / "deep" / "er" / "x")
    run_op("save", {"X": tensor}, {"file_path": path})
    got = run_op("load", attrs={"file_path": path})["Out"]
    assert got.lod_ == tensor.lod_ and np.array_equal(got, X)


def test_selected_rows_have_a_record_of_their_own(tmp_path):
    rows = SelectedRows([4, 0], 10)
    rows.get_tensor().set(X[:2])
    run_op("save", {"X": rows}, {"file_path": str(tmp_path / "r")})
    head = bytes.fromhex("00000000 0200000000000000 0400000000000000 0000000000000000 0a00000000000000")
    assert (tmp_path / "r").read_bytes() == head + bytes.fromhex("00000000 06000000 080510021002") + X[:2].tobytes()


def test_the_files_of_numpy(tmp_path):
    path = str(tmp_path / "w.npy")
    run_op("save", {"X": X}, {"file_path": path})
    assert np.array_equal(np.load(path), X)
    assert np.array_equal(run_op("load", attrs={"file_path": path})["Out"], X)
    with pytest.raises(EnforceNotMet, match="cannot hold sequences"):
        run_op("save", {"X": (X, [[1, 2]])}, {"file_path": path})
    assert np.array_equal(np.load(path), X)


def test_half_precision(tmp_path):
    path = str(tmp_path / "w")
    run_op("save", {"X": X}, {"file_path": path, "save_as_fp16": True})
    assert run_op("load", attrs={"file_path": path})["Out"].dtype == "float16"
    run_op("save", {"X": X}, {"file_path": path})
    assert run_op("load", attrs={"file_path": path, "load_as_fp16": True})["Out"].dtype == "float16"


def test_a_file_that_must_stay(tmp_path):
    path = str(tmp_path / "w")
    run_op("save", {"X": X}, {"file_path": path})
    before = (tmp_path / "w").read_bytes()
    with pytest.raises(EnforceNotMet, match="exists!, cannot save to it when overwrite=false"):
        run_op("save", {"X": X + 1}, {"file_path": path, "overwrite": False})
    assert (tmp_path / "w").read_bytes() == before


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = str(tmp_path / "w")
    run_op("save", {"X": X}, {"file_path": path})
    before = (tmp_path / "w").read_bytes()

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EnforceNotMet, match="Cannot write(.|\n)*No space left"):
        run_op("save", {"X": X + 1}, {"file_path": path})
    assert (tmp_path / "w").read_bytes() == before and os.listdir(tmp_path) == ["w"]


def test_files_that_cannot_be_read(tmp_path):
    def load(name):
        return run_op("load", attrs={"file_path": str(tmp_path / name)})

    with pytest.raises(EnforceNotMet, match="Cannot open file .*missing for load op"):
        load("missing")
    run_op("save", {"X": X}, {"file_path": str(tmp_path / "w")})
    whole = (tmp_path / "w").read_bytes()
    for cut in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:cut])
        with pytest.raises(EnforceNotMet):
            load("cut")
    (tmp_path / "two").write_bytes(whole + whole)
    with pytest.raises(EnforceNotMet, match="does not hold one tensor") as e:
        load("two")
    assert "load_combine" in e.value.hint
    (tmp_path / "junk").write_bytes(b"not a tensor at all, only words")
    with pytest.raises(EnforceNotMet, match="is no tensor file"):
        load("junk")


def test_a_program_that_saves_and_loads_what_changes(tmp_path):
    """load looks at the file whenever it runs: another shape is another binding."""
    path = str(tmp_path / "w")
    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name=name, shape=[-1, 2], dtype="float32")
    block.append_op(type="save", inputs={"X": "x"}, attrs={"file_path": path})
    block.append_op(type="load", outputs={"Out": "y"}, attrs={"file_path": path})
    exe, scope = Executor(), Scope()
    for rows in (3, 1, 3, 2):
        for keep in (False, True):
            y = exe.run(program, feed={"x": X[:rows] + rows}, fetch_list=["y"], scope=scope, keep_scopes=keep)[0]
            assert np.array_equal(y, X[:rows] + rows)


# ---- printing


def test_printing_a_few_times_only(capsys):
    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name=name, shape=[2], dtype="float32")
    block.append_op(
        type="print", inputs={"In": "x"}, outputs={"Out": "y"},
        attrs={"first_n": 2, "print_tensor_lod": False, "print_tensor_shape": False, "print_tensor_type": False},
    )  # fmt: skip
    exe, scope = Executor(), Scope()
    for _ in range(4):
        exe.run(program, feed={"x": X[0]}, fetch_list=["y"], scope=scope)
    assert capsys.readouterr().out == "Variable: x\n  - data: [0. 1.]\n" * 2


def test_a_message_alone(capsys):
    run_op("print", attrs={"message": "Case 1"}, outputs=[])
    assert capsys.readouterr().out == "Case 1\n"


@pytest.mark.parametrize(
    ("phase", "forward", "printed"),
    [("forward", True, True), ("BACKWARD", True, False), ("both", False, True), ("FORWARD", False, False)],
)
def test_phases(capsys, phase, forward, printed):
    run_op("print", {"In": X}, {"print_phase": phase, "is_forward": forward})
    assert bool(capsys.readouterr().out) is printed


def test_a_file_of_numpy_has_one_tensor(tmp_path):
    path = str(tmp_path / "all.npy")
    with pytest.raises(FluidError, match="cannot hold several tensors"):
        run_op("save_combine", {"X": [X, X]}, {"file_path": path})
    assert not (tmp_path / "all.npy").exists()
    run_op("save_combine", {"X": [X]}, {"file_path": path})
    with pytest.raises(EnforceNotMet, match=r"has one tensor(.|\n)*another ending than .npy"):
        run_op("load_combine", attrs={"file_path": path}, outputs={"Out": 2})


@pytest.mark.parametrize("size", [0, 3, 20, 60, 130])
def test_a_damaged_file_of_numpy(tmp_path, size):
    path = tmp_path / "w.npy"
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(EnforceNotMet, match="not a file in numpy's format"):
        run_op("load", attrs={"file_path": str(path)})
