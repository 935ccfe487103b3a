"""Attributes that come with a program's bytes are checked before a kernel trusts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, OpTypeError, OpValueError
from tests.tools.refused import refused


def loaded(program: fluid.Program, type: str, **attrs: Any) -> fluid.Program:
    """A program after a way through its bytes in which the attributes of one operator changed."""
    desc = program.clone().desc
    op = next(op for op in desc.blocks[0].ops if op.optype == type)
    for name, value in attrs.items():
        op.set_attr(name, value)
    return fluid.Program.parse_from_string(desc.serialize_to_string())


def run(program: fluid.Program, feed: dict[str, Any], fetch: str) -> np.ndarray[Any, Any]:
    """The value of one variable, by the compiled run."""
    exe = fluid.Executor(fluid.CPUPlace())
    return exe.run(program, feed=feed, fetch_list=[fetch])[0]


def convolution() -> tuple[fluid.Program, dict[str, Any], str]:
    """conv2d of an image [1, 1, 1, 4] and a filter [1, 1, 1, 2], both fed, with its gradients."""
    x = fluid.layers.data("x", [1, 1, 1, 4], append_batch_size=False, stop_gradient=False)
    w = fluid.layers.data("w", [1, 1, 1, 2], append_batch_size=False)
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype="float32")
    block.append_op("conv2d", {"Input": [x], "Filter": [w]}, {"Output": [out]})
    fluid.append_backward(fluid.layers.mean(out))
    feed = {"x": np.arange(4, dtype="float32").reshape(1, 1, 1, 4), "w": np.ones((1, 1, 1, 2), "float32")}
    return fluid.default_main_program(), feed, out.name


@pytest.mark.parametrize("type", ["conv2d", "conv2d_grad"])
@pytest.mark.parametrize(
    ("attr", "value"),
    [
        ("dilations", [1, -100000]), ("dilations", [1, 0]), ("strides", [1, -1]), ("strides", [0, 1]),
        ("paddings", [0, -1]), ("groups", 0), ("groups", -1), ("padding_algorithm", "OTHER"),
    ],
)  # fmt: skip
def test_convolution(type: str, attr: str, value: Any) -> None:
    program, feed, out = convolution()
    assert run(program, feed, out).shape == (1, 1, 1, 3)
    broken = loaded(program, type, **{attr: value})
    for fetch in (out, "x@GRAD"):
        with refused(OpValueError, attr) as caught:
            run(broken, feed, fetch)
        assert f"({type})" in str(caught.value)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("paddings", [[1, -100000, 3, 0], [0, 0, 0, 1], [100, 0, 0, 0]])
def test_paddings_of_a_gradient(mode: str, paddings: list[int]) -> None:
    x = fluid.layers.data("x", [1, 1, 3, 3], append_batch_size=False, stop_gradient=False)
    loss = fluid.layers.mean(fluid.layers.pad2d(x, [1, 1, 0, 0], mode))
    fluid.append_backward(loss)
    program, feed = fluid.default_main_program(), {"x": np.ones((1, 1, 3, 3), "float32")}
    assert run(program, feed, "x@GRAD").shape == (1, 1, 3, 3)
    with pytest.raises(FluidError, match=r"of pad2d(_grad)? does not (fit X|have the shape)"):
        run(loaded(program, "pad2d_grad", paddings=paddings), feed, "x@GRAD")


def test_a_type_that_is_another() -> None:
    program, feed, out = convolution()
    with pytest.raises(OpTypeError, match="strides"):
        run(loaded(program, "conv2d", strides=["a", "b"]), feed, out)


def test_rules_over_all_attributes() -> None:
    x = fluid.layers.data("x", [2], append_batch_size=False)
    y = fluid.layers.clip(x, 0.0, 1.0)
    program = loaded(fluid.default_main_program(), "clip", min=2.0)
    with pytest.raises(FluidError, match="max should be greater than min"):
        run(program, {"x": np.ones(2, "float32")}, y.name)


def test_bytes_stay_as_they_are() -> None:
    program, feed, out = convolution()
    again = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    before = again.desc.serialize_to_string()
    run(again, feed, out)
    assert again.desc.serialize_to_string() == before


@pytest.mark.parametrize("size", [2**31 - 1, 2**40, 2**62])
@pytest.mark.parametrize("times", [1, 3])
def test_absurd_sizes_are_refused_before_memory_is_taken(size: int, times: int) -> None:
    x = fluid.layers.fill_constant([2, 2, 2], "float32", 1.0)
    y = fluid.layers.scale(fluid.layers.scale(x, 2.0), 3.0)
    program = loaded(fluid.default_main_program(), "fill_constant", shape=[size] * times + [64])
    with pytest.raises(MemoryError, match=r"cannot allocate .*B") as caught:
        run(program, {}, y.name)
    assert "(fill_constant)" in str(caught.value) or "(scale)" in str(caught.value)


def test_a_gradient_of_another_size() -> None:
    program, feed, out = convolution()
    desc = program.clone().desc
    back = next(op for op in desc.blocks[0].ops if op.optype == "conv2d_grad")
    back.set_input("Output@GRAD", ["x"])
    with pytest.raises(FluidError, match="does not have the shape and dtype of what conv2d computes"):
        run(fluid.Program.parse_from_string(desc.serialize_to_string()), feed, "x@GRAD")


def test_a_gradient_with_attributes_of_another_operator() -> None:
    program, feed, out = convolution()
    for attrs in ({"strides": [1, 2]}, {"dilations": [1, 2]}, {"paddings": [0, 3]}):
        with pytest.raises(FluidError, match="conv2d"):
            run(loaded(program, "conv2d_grad", **attrs), feed, "x@GRAD")
