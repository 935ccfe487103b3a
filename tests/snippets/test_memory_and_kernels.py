"""The developer guide's snippets on LoD, memory, flags and kernels (S1.7 to S1.10, S1.14)."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import errors, op
from fluidnb.values import LoD

ABSOLUTE = [[0, 5, 8, 10, 14], [0, 2, 3, 5, 7, 8, 10, 13, 14]]
RELATIVE = [[0, 3, 5, 6, 8], [0, 2, 3, 5, 7, 8, 10, 13, 14]]


def test_s1_7_lod() -> None:
    tensor = fluid.LoDTensor()
    tensor.set(np.zeros((14, 1), "float32"), fluid.CPUPlace())
    tensor.set_lod([0, 5, 8, 10, 14])
    assert tensor.lod() == [[0, 5, 8, 10, 14]]
    with pytest.raises(errors.OpValueError, match="LoD.* is invalid") as caught:
        tensor.set_lod(ABSOLUTE)
    assert str(RELATIVE) in (caught.value.hint or "")
    assert tensor.lod() == [[0, 5, 8, 10, 14]]
    tensor.set_lod(LoD.from_absolute(ABSOLUTE))
    assert tensor.lod() == RELATIVE
    assert tensor.recursive_sequence_lengths() == [[3, 2, 1, 2], [2, 1, 2, 2, 1, 2, 3, 1]]


def test_s1_8_memory_interface() -> None:
    from paddle.fluid import core

    place = core.CPUPlace()
    gc.collect()  # other tests' tensors go now, not in between
    core.memory.free(place, core.memory.alloc(place, 1))
    before = core.memory.used(place)
    first, second = core.memory.alloc(place, 4097), core.memory.alloc(place, 4097)
    assert core.memory.used(place) >= before + 2 * 4097
    free = [span.size for chunk in core.memory.arena_map(place) for span in chunk.spans if span.asked is None]
    core.memory.free(place, first)
    core.memory.free(place, second)
    assert core.memory.used(place) == before
    merged = [span.size for chunk in core.memory.arena_map(place) for span in chunk.spans if span.asked is None]
    assert len(merged) <= len(free) + 1 and sum(merged) >= sum(free) + 2 * 4097


def test_s1_8_verbose_lines() -> None:
    code = "from fluidnb import core; p = core.CPUPlace(); core.memory.free(p, core.memory.alloc(p, 4097))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "GLOG_v": "10"}
    )
    said = [line.split("] ", 1)[1] for line in done.stderr.splitlines()]
    assert "Allocate 4097 bytes on CPUPlace" in said
    pointer = next(m[1] for line in said if (m := re.fullmatch(r"  pointer=(\S+)", line)))
    assert f"Free pointer={pointer} on CPUPlace" in said


def test_s1_9_flags() -> None:
    names = ["FLAGS_use_pinned_memory", "FLAGS_fraction_of_cpu_memory_to_use", "FLAGS_fraction_of_gpu_memory_to_use"]
    assert fluid.get_flags(names) == dict(zip(names, [False, 1.0, 0.92], strict=True))
    code = f"import fluidnb as fluid; print(list(fluid.get_flags({names}).values()))"
    given = {"FLAGS_use_pinned_memory": "true", "FLAGS_fraction_of_gpu_memory_to_use": "0.5"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **given}
    )
    assert done.stdout.strip() == "[True, 1.0, 0.5]"


def test_s1_10_op_kernel_type() -> None:
    from paddle.fluid.core import OpKernelType

    one = OpKernelType("float32", "NCHW", "cpu", "PLAIN")
    other = OpKernelType("float32", "NCHW", "cpu", "MKLDNN")
    assert one == OpKernelType("float32", "NCHW", "cpu", "PLAIN") and one != other and len({one, other, one}) == 2
    assert str(other) == "data_type[float32]:data_layout[NCHW]:place[cpu]:library_type[MKLDNN]"


def test_s1_10_two_kernels_switched_by_library() -> None:
    @op.kernel("relu", library="LOUD")
    def loud(b: op.Binder) -> None:
        b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])
        b(np.multiply, b["Out"], b.const(10, b["X"].dtype), out=b["Out"])

    try:
        x = fluid.layers.data("x", shape=[3], append_batch_size=False)
        y = fluid.layers.relu(x)
        exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.array([-1, 0, 2], "float32")}
        assert exe.run(feed=feed, fetch_list=[y])[0].tolist() == [0, 0, 2]
        with op.prefer("relu", library="LOUD"):
            assert exe.run(feed=feed, fetch_list=[y])[0].tolist() == [0, 0, 20]
        assert exe.run(feed=feed, fetch_list=[y])[0].tolist() == [0, 0, 2]
    finally:
        op.remove_kernel("relu", loud)


def test_s1_14_clip() -> None:
    x = fluid.layers.data("x", shape=[3], append_batch_size=False)
    y = fluid.layers.clip(x, min=-1.0, max=1.0)
    exe = fluid.Executor(fluid.CPUPlace())
    assert exe.run(feed={"x": np.array([-2, 0, 2], "float32")}, fetch_list=[y])[0].tolist() == [-1, 0, 1]
    block = fluid.default_main_program().global_block()
    with pytest.raises(errors.OpValueError, match="max should be greater than min."):
        block.append_op("clip", {"X": x}, {"Out": y}, {"min": 1.0, "max": -1.0})
    with pytest.raises(errors.OpValueError, match="Attribute 'max' is required!"):
        block.append_op("clip", {"X": x}, {"Out": y}, {"min": 1.0})
    assert len(block.ops) == 1


def test_s1_14_clip_lets_gradients_through_inside_the_bounds() -> None:
    x = fluid.layers.data("x", shape=[4], append_batch_size=False, stop_gradient=False)
    loss = fluid.layers.reduce_sum(fluid.layers.square(fluid.layers.clip(x, min=-1.0, max=1.0)))
    (gradient,) = fluid.gradients(loss, x)
    exe, at, step = fluid.Executor(fluid.CPUPlace()), np.array([-2, -0.5, 0.25, 3], "float32"), 0.005
    assert gradient is not None
    analytic = exe.run(feed={"x": at}, fetch_list=[gradient])[0]
    numeric = []
    for i in range(4):
        shift = np.eye(4, dtype="float32")[i] * step
        up, down = (exe.run(feed={"x": at + s}, fetch_list=[loss])[0][0] for s in (shift, -shift))
        numeric.append((up - down) / (2 * step))
    np.testing.assert_allclose(analytic, numeric, rtol=5e-3, atol=1e-3)
    assert analytic.tolist() == [0, -1, 0.5, 0]
