"""Target ``cuda``: host programs run outside Python, kernels compile for all architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli.entry import main
from fluidnb.code_generator import CodeGenerator
from fluidnb.errors import OpValueError
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import nvrtc
from tests.code_generator.cuda_program import CudaProgram, parts_of, same
from tests.cuda.test_compile import UNUSED
from tests.tools.sampling import sample

layers = fluid.layers
pytestmark = [
    pytest.mark.skipif(bool(emulator.missing() or nvrtc.missing()), reason="no g++, or no headers of CUDA"),
    pytest.mark.usefixtures("cuda"),
]


def started() -> Any:
    """An executor on the emulated GPU; the host's has run the startup program."""
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    return fluid.Executor(fluid.CUDAPlace(0))


def random(*shape: int) -> np.ndarray:
    """Numbers that are the same in every run."""
    return np.random.RandomState(3).uniform(-1, 1, shape).astype("float32")


def test_a_classifier(tmp_path: Path) -> None:
    x = layers.data("x", [8])
    y = layers.fc(layers.fc(x, 16, act="relu"), 3, act="softmax")
    feed = {"x": random(4, 8)}
    [expected] = started().run(feed=feed, fetch_list=[y])
    [got] = CudaProgram(CodeGenerator(feeds=["x"], fetches=[y], target="cuda", batch=4), tmp_path).run(feed)
    same(got, expected)


def lenet(classes: int = 10) -> tuple[Any, Any]:
    """LeNet with batch_norm and dropout, and its loss."""
    image, label = layers.data("image", [1, 28, 28]), layers.data("label", [1], dtype="int64")
    one = fluid.nets.simple_img_conv_pool(image, 6, 5, 2, 2, act="relu")
    two = layers.batch_norm(fluid.nets.simple_img_conv_pool(one, 16, 5, 2, 2, act="relu"))
    scores = layers.fc(layers.dropout(two, 0.3, seed=5), classes, act="softmax")
    return scores, layers.mean(layers.cross_entropy(scores, label))


def test_lenet(tmp_path: Path) -> None:
    scores, _ = lenet()
    exe = started()
    program = fluid.default_main_program().clone(for_test=True)
    feed = {"image": random(2, 1, 28, 28)}
    pruned = program.prune([scores.name])
    [expected] = exe.run(pruned, feed=feed, fetch_list=[scores.name])
    generator = CodeGenerator(program, ["image"], scores.name, target="cuda", batch=2)
    [got] = CudaProgram(generator, tmp_path).run(feed)
    same(got, expected)


@pytest.mark.parametrize("optimizer", ["SGD", "Momentum", "Adam"])
def test_training_steps(tmp_path: Path, optimizer: str) -> None:
    _, loss = lenet()
    rate = {"momentum": 0.9} if optimizer == "Momentum" else {}
    getattr(fluid.optimizer, optimizer)(learning_rate=0.01, **rate).minimize(loss)
    exe = started()
    feed = {"image": random(3, 1, 28, 28), "label": np.array([[1], [5], [9]])}
    generator = CodeGenerator(feeds=["image", "label"], fetches=[loss], target="cuda", batch=3)
    program = CudaProgram(generator, tmp_path)
    losses = [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(5)]
    [got] = program.run(feed, times=5)
    same(got, losses[-1])
    # on a GPU the last digits of gradients near 0 decide about whole steps of Adam
    atol = 0.05 if optimizer == "Adam" else 1e-5
    for name, array in program.parameters().items():
        same(array, np.asarray(fluid.global_scope().find_var(name).get_tensor()), name, atol)


@pytest.mark.parametrize("architecture", sample(nvrtc.ARCHITECTURES, 2))
def test_the_kernels_compile(architecture: int) -> None:
    _, loss = lenet()
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)
    parts = parts_of(CodeGenerator(feeds=["image", "label"], fetches=[loss], target="cuda", batch=3))
    assert len(parts) > 10
    for text, names in parts:
        made = nvrtc.compile_for(architecture, text, "model.cu", names)
        assert made.spilled == 0 and made.cubin.startswith(b"\x7fELF")
        assert [w for w in made.warnings if not UNUSED.search(w)] == []


def test_a_loop_and_a_branch(tmp_path: Path) -> None:
    x, i = layers.data("x", [4]), layers.fill_constant([1], "int64", 0)
    total, limit = layers.scale(x, 1.0), layers.fill_constant([1], "int64", 3)
    cond = layers.less_than(i, limit)
    loop = layers.While(cond)
    with loop.block():
        layers.assign(layers.scale(total, 2.0, 1.0), total)
        layers.increment(i, in_place=True)
        layers.less_than(i, limit, cond=cond)
    feed = {"x": random(2, 4)}
    [expected] = started().run(feed=feed, fetch_list=[total])
    generator = CodeGenerator(feeds=["x"], fetches=[total], target="cuda", batch=2)
    assert "while (is_true(scope_0." in generator.source()
    same(CudaProgram(generator, tmp_path).run(feed)[0], expected)


def test_numbers_that_differ_from_run_to_run(tmp_path: Path) -> None:
    x = layers.data("x", [64])
    y = layers.dropout(x, 0.5)
    fluid.default_main_program().random_seed = 9
    exe, feed = started(), {"x": np.ones((2, 64), "float32")}
    runs = [exe.run(feed=feed, fetch_list=[y])[0] for _ in range(3)]
    assert not np.array_equal(runs[0], runs[2])
    program = CudaProgram(CodeGenerator(feeds=["x"], fetches=[y], target="cuda", batch=2), tmp_path)
    for times in (1, 3):
        same(program.run(feed, times)[0], runs[times - 1])


def test_constants_and_embedded_parameters(tmp_path: Path) -> None:
    x = layers.data("x", [2, 3, 4])
    y = layers.fc(layers.resize_bilinear(x, [5, 7]), 2)
    feed = {"x": random(3, 2, 3, 4)}
    [expected] = started().run(feed=feed, fetch_list=[y])
    generator = CodeGenerator(feeds=["x"], fetches=[y], target="cuda", batch=3, embed_weights=True)
    assert "static const float table_table_" in generator.source()
    program = CudaProgram(generator, tmp_path)
    assert not (program.code / "weights.bin").exists()
    same(program.run(feed)[0], expected)


def test_build_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y = layers.fc(layers.data("x", [4]), 2)
    feed = {"x": random(1, 4)}
    [expected] = started().run(feed=feed, fetch_list=[y])
    generator = CodeGenerator(feeds=["x"], fetches=[y], target="cuda")
    program = CudaProgram(generator, tmp_path)
    monkeypatch.setenv("CUDA_HOME", str(program.toolkit))
    monkeypatch.setenv("EMULATED_PARTS", str(tmp_path))
    same(generator.run(feed)[0], expected)


@pytest.mark.emulator_backend
def test_errors_of_the_driver(tmp_path: Path) -> None:
    y = layers.fc(layers.data("x", [4]), 2)
    started()
    program = CudaProgram(CodeGenerator(feeds=["x"], fetches=[y], target="cuda"), tmp_path)
    done = program.execute({"x": random(1, 4)}, EMULATED_MEMORY="16")
    assert done.returncode == 1 and done.stderr == "CUDA: out of memory\n"
    (program.code / "model.cu").unlink()
    done = program.execute({"x": random(1, 4)})
    assert done.returncode == 1 and "cannot read" in done.stderr and "model.cu" in done.stderr


def test_what_is_refused() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    sequence = layers.sequence_pool(layers.embedding(words, [10, 4]), "sum")
    with pytest.raises(OpValueError, match=r"Sequences have no CUDA code\.[\s\S]*lod_level 0[\s\S]*lod_level 1"):
        CodeGenerator(feeds={"words": [5, 1]}, fetches=[sequence], target="cuda")
    out = fluid.default_main_program().global_block().create_var(name="hashed", dtype="int64", shape=[-1, 2, 1])
    ids = layers.data("ids", [1], dtype="int64")
    ids.block.append_op("hash", {"X": ids}, {"Out": out}, {"num_hash": 2, "mod_by": 100})
    with pytest.raises(OpValueError, match=r"Operators without CUDA code: hash \(1\)\."):
        CodeGenerator(feeds=["ids"], fetches=["hashed"], target="cuda")
    with pytest.raises(OpValueError, match=r"There is no target opencl\.[\s\S]*'c' or target='cuda'"):
        CodeGenerator(target="opencl")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y = layers.fc(layers.data("x", [4]), 2)
    exe = started()
    fluid.io.save_inference_model(str(tmp_path / "saved"), ["x"], [y], exe)
    words = ["compile", str(tmp_path / "saved"), "-o", str(tmp_path / "code"), "--target", "cuda", "--batch", "2"]
    assert main(words) == 0
    assert f"written   {tmp_path / 'code' / 'model.cu'}" in capsys.readouterr().out
