"""Training steps with loops and branches as C code: arrays of tensors, kept iterations, gradient blocks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli.entry import main
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.generator import write_feeds
from fluidnb.errors import OpValueError
from fluidnb.layers.control_flow import ConditionalBlock
from tests.code_generator.batch import CProgram, close

L = fluid.layers
STEPS = 6


def recurrent() -> Any:
    """A recurrent network over an array of tensors, as many steps as are fed, and its loss."""
    x, n = L.data("x", [4]), L.data("n", [1], dtype="int64", append_batch_size=False)
    i = L.zeros([1], "int64")
    states = L.create_array("float32")
    L.array_write(L.fc(x, 5, bias_attr=False), i, array=states)
    cond = L.less_than(i, n)
    loop = L.While(cond)
    with loop.block():
        before = L.array_read(states, i)
        after = L.fc([before, x], 5, act="tanh", param_attr=["from_state", "from_x"], bias_attr="shift")
        L.increment(i, in_place=True)
        L.array_write(after, i, array=states)
        L.less_than(i, n, cond=cond)
    return L.mean(L.square(L.array_read(states, i)))


def branched() -> Any:
    """A network whose last layer runs only where a fed number is large, and its loss."""
    x, n = L.data("x", [4]), L.data("n", [1], dtype="int64", append_batch_size=False)
    h = L.fc(x, 5, act="tanh")
    total = L.fill_constant([1], "float32", 1.0)
    total.stop_gradient = False
    with ConditionalBlock([L.less_than(L.fill_constant([1], "int64", 2), n)], is_scalar_condition=True).block():
        L.assign(L.mean(L.square(L.fc(h, 3))), total)
    return L.mean(L.elementwise_add(L.mean(h), total))


def trained(network: Any) -> tuple[fluid.Program, Any]:
    """The initialized program of a network that Adam trains, and its loss."""
    program, startup = fluid.Program(), fluid.Program()
    program.random_seed = startup.random_seed = 3
    with fluid.program_guard(program, startup), fluid.unique_name.guard():
        loss = network()
        fluid.optimizer.Adam(0.05).minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(startup)
    return program, loss


def feed_of(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A batch of three, and a number."""
    x = np.random.default_rng(seed).uniform(-1, 1, (3, 4)).astype("float32")
    return {"x": x, "n": np.array([n], "int64")}


@pytest.mark.parametrize("network", [recurrent, branched])
def test_training_steps(network: Any, tmp_path: Path) -> None:
    """Losses and parameters of steps in which loops run 0 to 5 times and branches run or do not."""
    with fluid.scope_guard(fluid.Scope()):
        program, loss = trained(network)
        code = CodeGenerator(program, {"x": (3, 4), "n": (1,)}, [loss], max_steps=STEPS)
        generated, exe = CProgram(code, tmp_path), fluid.Executor(fluid.CPUPlace())
        seen = set()
        for step, n in enumerate((3, 5, 0, 1, 5)):
            feed = feed_of(n, step)
            [got], [want] = generated.run(feed), exe.run(program, feed=feed, fetch_list=[loss])
            close(got, want, f"step {step}, n = {n}", 1e-4)
            seen.add(float(want[0]))
        assert len(seen) == 5


def test_too_many_steps_end_the_program(tmp_path: Path) -> None:
    with fluid.scope_guard(fluid.Scope()):
        program, loss = trained(recurrent)
        code = CodeGenerator(program, {"x": (3, 4), "n": (1,)}, [loss], max_steps=STEPS)
        binary = code.build(dirname=tmp_path / "code")
        for name in ("in", "out"):
            (tmp_path / name).mkdir()
        write_feeds(code._text, feed_of(STEPS), str(tmp_path / "in"))
        done = subprocess.run(
            [binary, tmp_path / "code" / "weights.bin", tmp_path / "in", tmp_path / "out"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode != 0
    assert "an array of tensors has more elements than there is memory for (STEPS = 6)" in done.stderr


def test_a_bound_is_asked_for() -> None:
    with fluid.scope_guard(fluid.Scope()):
        program, loss = trained(recurrent)
        with pytest.raises(OpValueError, match=r"need a bound on their steps in C\.[\s\S]*max_steps=100"):
            CodeGenerator(program, {"x": (3, 4), "n": (1,)}, [loss])
        bounded = CodeGenerator(program, {"x": (3, 4), "n": (1,)}, [loss], max_steps=100)
        assert "enum { STEPS = 100 };" in bounded.source()
        with pytest.raises(OpValueError, match="Operators without CUDA code: .*while_grad"):
            CodeGenerator(program, {"x": (3, 4), "n": (1,)}, [loss], "cuda", max_steps=100)


def test_arrays_of_sequences_and_bounds_that_are_none_are_refused() -> None:
    with fluid.fresh():
        x, i = L.data("x", [4], lod_level=1), L.zeros([1], "int64")
        kept = L.array_read(L.array_write(x, i), i)
        with pytest.raises(OpValueError, match=r"Arrays of sequences have no C code\.[\s\S]*write_to_array"):
            CodeGenerator(feeds={"x": [5, 4]}, fetches=[L.sequence_pool(kept, "sum")], max_steps=3)
    with fluid.fresh():
        x, i = L.data("x", [4]), L.zeros([1], "int64")
        kept = L.array_read(L.array_write(x, i), i)
        with pytest.raises(OpValueError, match="max_steps=-1"):
            CodeGenerator(feeds=["x"], fetches=[kept], max_steps=-1)
        with pytest.raises(OpValueError, match="too large for C in each of 1,000,000,000 steps"):
            CodeGenerator(feeds=["x"], fetches=[kept], max_steps=10**9)


def test_a_loop_inside_a_loop_is_refused_by_name() -> None:
    def nested() -> Any:
        x, n = L.data("x", [4]), L.fill_constant([1], "int64", 2)
        states, i = L.create_array("float32"), L.zeros([1], "int64")
        L.array_write(x, i, array=states)
        outer = L.less_than(i, n)
        with L.While(outer).block():
            h = L.fc(L.array_read(states, i), 4)
            with ConditionalBlock([L.less_than(i, n)], is_scalar_condition=True).block():
                L.assign(L.scale(h, 2.0), h)
            L.increment(i, in_place=True)
            L.array_write(h, i, array=states)
            L.less_than(i, n, cond=outer)
        return L.mean(L.array_read(states, i))

    with fluid.scope_guard(fluid.Scope()):
        program, loss = trained(nested)
        with pytest.raises(OpValueError, match=r"conditional_block_grad \(1\)[\s\S]*inside another one"):
            CodeGenerator(program, {"x": (3, 4)}, [loss], max_steps=4)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fluid.scope_guard(fluid.Scope()):
        program, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(program, startup):
            loss = recurrent()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "saved"), ["x", "n"], [loss], exe, program)
    words = ["compile", str(tmp_path / "saved"), "-o", str(tmp_path / "code"), "--max-steps", "9"]
    assert main(words) == 0
    assert f"written   {tmp_path / 'code' / 'model.c'}" in capsys.readouterr().out
    assert "enum { STEPS = 9 };" in (tmp_path / "code" / "model.c").read_text()
