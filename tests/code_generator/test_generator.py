"""`CodeGenerator`: files, names, errors; built with all warnings as errors, run outside Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli.entry import main
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.names import Names, comment, identifier
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError
from tests.code_generator.batch import SANITIZERS, WARNINGS

layers = fluid.layers
#: Flags of the strictest build: all warnings are errors, and sanitizers end the program at the first finding.
STRICT = (*WARNINGS, "-Wshadow", *SANITIZERS)


def started(*fetches: Any) -> Any:
    """An executor that has run the startup program."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def classifier() -> Any:
    """A small classifier of x [N, 4]."""
    x = layers.data("x", [4])
    return layers.fc(layers.fc(x, 5, act="tanh"), 3, act="softmax")


def test_numbers_of_the_executor() -> None:
    y = classifier()
    x = np.random.RandomState(0).randn(2, 4).astype("float32")
    [expected] = started().run(feed={"x": x}, fetch_list=[y])
    generator = CodeGenerator(feeds=["x"], fetches=[y], batch=2)
    for cc in (None, " ".join(("gcc", *STRICT))):
        [got] = generator.run({"x": x}, cc)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang")
def test_clang_builds_it() -> None:
    y = classifier()
    x = np.ones((1, 4), "float32")
    [expected] = started().run(feed={"x": x}, fetch_list=[y])
    [got] = CodeGenerator(feeds=["x"], fetches=[y]).run({"x": x}, " ".join(("clang", *STRICT)))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_embedded_parameters(tmp_path: Path) -> None:
    y = classifier()
    x = np.ones((1, 4), "float32")
    [expected] = started().run(feed={"x": x}, fetch_list=[y])
    generator = CodeGenerator(feeds={"x": [1, 4]}, fetches=y, embed_weights=True)
    np.testing.assert_allclose(generator.run({"x": x})[0], expected, rtol=1e-5)
    assert "weights.bin" not in [os.path.basename(f) for f in generator.save(tmp_path / "code")]


def test_the_files_and_their_texts(tmp_path: Path) -> None:
    y = classifier()
    started()
    generator = CodeGenerator()
    text = generator.transpile(fluid.default_main_program(), ["x"], [y])
    assert text == generator.source() and "static void op_tanh(const float *X, float *Out)" in text
    assert re.search(r"op_mul\(.*\);  // test_generator\.py:\d+: return layers\.fc", text)
    names = [os.path.basename(f) for f in generator.save(tmp_path / "code")]
    texts = ["Makefile", "README.md", "main.c", "model.c", "model.h", "model.mjs", "operators.json"]
    assert names == [*texts, "weights.bin"]
    assert "void model_run(const float *x, float *fc_1_tmp_2_out);" in generator.source("model.h")
    with pytest.raises(NotFound, match="There is no file model.cc"):
        generator.source("model.cc")


def test_the_makefile_and_the_program_by_themselves(tmp_path: Path) -> None:
    y = classifier()
    started()
    CodeGenerator(feeds=["x"], fetches=[y]).save(tmp_path / "code")
    subprocess.run(["make", "-s"], cwd=tmp_path / "code", check=True, timeout=120)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    run = [str(tmp_path / "code" / "model"), "weights.bin", str(tmp_path / "in"), str(tmp_path / "out"), "10"]
    done = subprocess.run(run, cwd=tmp_path / "code", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "cannot open" in done.stderr and "x.tensor" in done.stderr
    layers_in = fluid.Program()
    with fluid.program_guard(layers_in):
        layers.fill_constant([1, 4], "float32", 1.0).block.append_op(
            "save", {"X": layers_in.global_block().ops[0].output("Out")[0]}, {},
            {"file_path": str(tmp_path / "in" / "x.tensor")},
        )  # fmt: skip
    fluid.Executor(fluid.CPUPlace()).run(layers_in)
    done = subprocess.run(run, cwd=tmp_path / "code", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and re.fullmatch(r"\d+\.\d{3} ms\n", done.stdout)
    [expected] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones((1, 4), "float32")}, fetch_list=[y])
    data = (tmp_path / "out" / "fc_1_tmp_2.tensor").read_bytes()
    np.testing.assert_allclose(np.frombuffer(data[-12:], "float32"), expected[0], rtol=1e-5)
    with open(tmp_path / "code" / "weights.bin", "r+b") as file:
        file.truncate(50)
    done = subprocess.run(run, cwd=tmp_path / "code", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "parameters do not fit" in done.stderr


def test_hostile_names() -> None:
    names = ["int", "a.b", "a_b", "*/ int main(void) { } /*", "\u202etxt", "x" * 5000, '"', "??/", "1st", "model_run"]
    block = fluid.default_main_program().global_block()
    last = layers.data("start \\", [3])
    for name in names:
        out = block.create_var(name=name, dtype="float32", shape=[-1, 3])
        block.append_op("tanh", {"X": last}, {"Out": out})
        last = out
    x = np.ones((1, 3), "float32")
    [expected] = fluid.Executor(fluid.CPUPlace()).run(feed={"start \\": x}, fetch_list=[last])
    generator = CodeGenerator(feeds=["start \\"], fetches=[last])
    np.testing.assert_allclose(generator.run({"start \\": x}, " ".join(("gcc", *STRICT)))[0], expected, rtol=1e-6)
    assert "\u202e" not in generator.source() + generator.source("main.c") + generator.source("README.md")


def test_identifiers_and_comments() -> None:
    names = Names()
    assert [names[t] for t in ("a.b", "a_b", "a.b", "while", "9")] == ["a_b", "a_b_2", "a_b", "while_", "v9"]
    assert len(identifier("é" * 500)) <= 60
    assert "*/" not in comment("**//") and "\n" not in comment("a\nb") and len(comment("x" * 999)) == 200


def test_what_is_refused(tmp_path: Path) -> None:
    x = layers.data("x", [4])
    sequence = layers.data("words", [4], lod_level=1)
    started()
    with pytest.raises(OpValueError, match=r"Operators without C code: lgamma \(2\), digamma \(1\)\."):
        block = fluid.default_main_program().global_block()
        outs = [block.create_var(name=f"out{i}", dtype="float32", shape=[-1, 4]) for i in range(3)]
        for type, source, out in (("lgamma", x, outs[0]), ("lgamma", outs[0], outs[1]), ("digamma", outs[1], outs[2])):
            block.append_op(type, {"X": source}, {"Out": out})
        CodeGenerator(feeds=["x"], fetches=[outs[2]])
    with pytest.raises(OpValueError, match="needs at least one fetch"):
        CodeGenerator().transpile(feed=["x"])
    with pytest.raises(OpValueError, match="No program has been given"):
        CodeGenerator().source()
    with pytest.raises(OpValueError, match=r"There is no target cuda2\."):
        CodeGenerator(target="cuda2")
    with pytest.raises(NotFound, match="The program has no variable y"):
        CodeGenerator(feeds=["y"], fetches=[layers.tanh(x)])
    with pytest.raises(OpValueError, match=r"is too large for C\.[\s\S]*2,500,000,000 elements of shape"):
        CodeGenerator(feeds={"x": [625_000_000, 4]}, fetches=[layers.tanh(x)])
    assert sequence.lod_level == 1


def test_no_value_and_a_folder_with_files(tmp_path: Path) -> None:
    y = classifier()
    generator = CodeGenerator(feeds=["x"], fetches=[y])
    with pytest.raises(EnforceNotMet, match=r"Parameter fc_0\.b_0 has no value\.[\s\S]*run the startup program"):
        generator.save(tmp_path / "code")
    assert not (tmp_path / "code").exists()
    started()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(OpValueError, match="is not empty"):
        generator.save(tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["notes"]
    for path in (tmp_path / "full" / "notes", tmp_path / "full" / "notes" / "x", "/proc/zz"):
        with pytest.raises(EnforceNotMet, match="model.h"):
            generator.save(path)


@pytest.mark.parametrize("sizes", [[0, 4], [-3, 4], [2, 0]])
def test_sizes_that_no_array_has_in_c(sizes: list[int]) -> None:
    with pytest.raises(OpValueError, match="The feed x has no rows or columns in C"):
        CodeGenerator(feeds={"x": sizes}, fetches=[classifier()])


def test_compilers_that_are_not_there_or_fail(tmp_path: Path) -> None:
    y = classifier()
    started()
    generator = CodeGenerator(feeds=["x"], fetches=[y])
    with pytest.raises(EnforceNotMet, match=r"There is no C compiler\.[\s\S]*no-such-compiler"):
        generator.build("no-such-compiler", tmp_path / "code")
    assert not (tmp_path / "code").exists()
    with pytest.raises(EnforceNotMet, match=r"fails\.[\s\S]*the command was"):
        generator.build(None, tmp_path / "code", ["-no-such-flag"])


def test_another_shape_is_refused() -> None:
    y = classifier()
    started()
    with pytest.raises(OpValueError, match=r"The feed x has another shape\.[\s\S]*\[1, 4\][\s\S]*\[2, 4\]"):
        CodeGenerator(feeds=["x"], fetches=[y]).run({"x": np.ones((2, 4), "float32")})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y = classifier()
    exe = started()
    fluid.io.save_inference_model(str(tmp_path / "saved"), ["x"], [y], exe)
    words = ["compile", str(tmp_path / "saved"), "-o", str(tmp_path / "code"), "--batch", "3", "--build"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"written   {tmp_path / 'code' / 'model.c'}" in out and f"built     {tmp_path / 'code' / 'model'}" in out
    assert "float32[3, 4]" in (tmp_path / "code" / "model.h").read_text()
    assert main(words) == 1
    assert "is not empty" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["compile", str(tmp_path / "saved"), "-o", str(tmp_path / "other"), "--size", "x=1,a"])
    assert "'x=1,a' is no feed with sizes" in capsys.readouterr().err
