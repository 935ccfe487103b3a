"""Operators that open, decorate and read readers inside programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.testing import OpTest
from tests.tools.refused import refused

EOF = fluid.core.EOFException


class Counting:
    """A queue of one-element batches 0, 1, 2, …

    Args:
        count: how many a pass has.
        lod: whether each is a sequence.
    """

    def __init__(self, count: int, lod: bool = False) -> None:
        self.count, self.next, self.lod = count, 0, ((0, 1),) if lod else ()

    def pull(self, check: Any) -> Any:
        """The next batch."""
        self.next += 1
        return None if self.next > self.count else ((np.full((1, 1), self.next - 1, "float32"), self.lod),)

    def reset(self) -> None:
        """Begin again."""
        self.next = 0


def opened(decorator: str | None, attrs: dict[str, Any], queue: Any, lod_level: int = 0) -> tuple[Any, Any]:
    """A program that reads a queue through a decorator, as (program, variable that is read)."""
    main = fluid.default_main_program()
    block = main.global_block()
    fluid.global_scope().var("queue").value = queue
    block.create_var(name="queue", type=fluid.core.VarDesc.VarType.RAW, persistable=True)
    tensors = {"shape_concat": [-1, 1], "ranks": [2], "lod_levels": [lod_level]}
    reader = block.create_var(name="r", type=fluid.core.VarDesc.VarType.READER, persistable=True)
    block.append_op("create_py_reader", {"blocking_queue": ["queue"]}, {"Out": [reader]}, tensors)
    if decorator is not None:
        made = block.create_var(name="d", type=fluid.core.VarDesc.VarType.READER, persistable=True)
        block.append_op(decorator, {"UnderlyingReader": [reader]}, {"Out": [made]}, attrs)
        reader = made
    out = block.create_var(name="out", dtype="float32")
    block.append_op("read", {"Reader": [reader]}, {"Out": [out]})
    assert (out.shape, out.lod_level) == ((-1, 1), lod_level)
    return main, out


def values(main: Any, out: Any, machine: bool = False) -> Iterator[list[float]]:
    """The batches of a pass."""
    exe = fluid.Executor()
    while True:
        try:
            tensor = exe.run(main, fetch_list=[out], return_numpy=False, keep_scopes=machine)[0]
        except EOF:
            return
        yield np.asarray(tensor).ravel().tolist()


class TestRead(OpTest):
    op_type = "read"

    @pytest.mark.parametrize("machine", [False, True])
    def test_batches_come_in_order_once(self, machine: bool) -> None:
        main, out = opened(None, {}, Counting(3))
        assert list(values(main, out, machine)) == [[0], [1], [2]]

    def test_the_number_of_tensors_is_checked(self) -> None:
        main, _ = opened(None, {}, Counting(3))
        block = main.global_block()
        with pytest.raises(EnforceNotMet, match="gives each tensor of its reader an output"):
            block.append_op("read", {"Reader": ["r"]}, {"Out": ["a", "b"]})
        block.create_var(name="x", shape=[1], dtype="float32")
        with pytest.raises(EnforceNotMet, match="is not a reader"):
            block.append_op("read", {"Reader": ["x"]}, {"Out": ["a"]})

    def test_batches_have_as_many_tensors_as_are_read(self) -> None:
        queue = Counting(1)
        queue.pull = lambda check: ((np.ones((1, 1), "float32"), ()),) * 2  # type: ignore[method-assign]
        main, out = opened(None, {}, queue)
        with pytest.raises(EnforceNotMet, match=r"another number of tensors(.|\n)*expected: 1: out(.|\n)*received: 2"):
            fluid.Executor().run(main, fetch_list=[out])

    def test_what_is_no_reader_is_told(self) -> None:
        main, out = opened(None, {}, Counting(1))
        main.global_block()._remove_op(0)
        fluid.global_scope().var("r").get_tensor().set(np.ones(1, "float32"))
        with pytest.raises(EnforceNotMet, match="is no reader: r holds a LoDTensor"):
            fluid.Executor().run(main, fetch_list=[out])


class TestCreatePyReader(OpTest):
    op_type = "create_py_reader"

    def test_another_queue_makes_another_reader(self) -> None:
        main, out = opened(None, {}, Counting(3))
        exe = fluid.Executor()
        assert [exe.run(main, fetch_list=[out])[0].item() for _ in range(2)] == [0, 1]
        held = fluid.global_scope().find_var("r").get_reader()
        fluid.global_scope().var("queue").value = Counting(2)
        assert list(values(main, out)) == [[0], [1]]
        assert fluid.global_scope().find_var("r").get_reader() is not held

    @pytest.mark.parametrize(
        ("attrs", "text"),
        [
            ({"shape_concat": [1], "ranks": [2]}, "shape_concat has 1 sizes, and ranks take 2"),
            ({"shape_concat": [1], "ranks": [2, -1]}, "one is -1"),
            ({"shape_concat": [1], "ranks": [1], "lod_levels": [0, 0]}, "lod_levels has 2 entries for 1 tensors"),
        ],
    )
    def test_tensors_are_checked(self, attrs: dict[str, Any], text: str) -> None:
        block = fluid.Program().global_block()
        block.create_var(name="q", type=fluid.core.VarDesc.VarType.RAW)
        with refused(OpValueError, text):
            block.append_op("create_py_reader", {"blocking_queue": ["q"]}, {"Out": ["r"]}, attrs)


class TestCreateDoubleBufferReader(OpTest):
    op_type = "create_double_buffer_reader"

    @pytest.mark.parametrize("machine", [False, True])
    def test_output(self, machine: bool) -> None:
        main, out = opened(self.op_type, {"place": "CUDAPLACE(0)"}, Counting(4))
        assert list(values(main, out, machine)) == [[0], [1], [2], [3]]


class TestCreateShuffleReader(OpTest):
    op_type = "create_shuffle_reader"

    @pytest.mark.parametrize("machine", [False, True])
    def test_output(self, machine: bool) -> None:
        queue = Counting(10)
        main, out = opened(self.op_type, {"buffer_size": 4}, queue)
        fluid.seed(3)
        got = [int(v) for [v] in values(main, out, machine)]
        assert [sorted(got[i : i + 4]) for i in (0, 4, 8)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert got != sorted(got)
        fluid.global_scope().find_var("d").get_reader().reset()
        fluid.seed(3)
        assert [int(v) for [v] in values(main, out, machine)] == got

    def test_the_size_is_above_zero(self) -> None:
        with pytest.raises(OpValueError, match="buffer_size"):
            opened(self.op_type, {"buffer_size": 0}, Counting(1))


class TestCreateBatchReader(OpTest):
    op_type = "create_batch_reader"

    @pytest.mark.parametrize("machine", [False, True])
    def test_output(self, machine: bool) -> None:
        main, out = opened(self.op_type, {"batch_size": 3}, Counting(7, lod=True), lod_level=1)
        assert list(values(main, out, machine)) == [[0, 1, 2], [3, 4, 5], [6]]
        fluid.global_scope().find_var("d").get_reader().reset()
        tensor = fluid.Executor().run(main, fetch_list=[out], return_numpy=False)[0]
        assert tensor.recursive_sequence_lengths() == [[1, 1, 1]]

    def test_instances_must_fit_together(self) -> None:
        queue = Counting(2)
        shapes = iter([(1, 1), (1, 2)])
        queue.pull = lambda check: ((np.ones(next(shapes), "float32"), ()),)  # type: ignore[method-assign]
        main, out = opened(self.op_type, {"batch_size": 2}, queue)
        with pytest.raises(EnforceNotMet, match="differ in more than their first axis"):
            fluid.Executor().run(main, fetch_list=[out])


class TestCreateRandomDataGenerator(OpTest):
    op_type = "create_random_data_generator"

    def test_output(self) -> None:
        reader = fluid.layers.random_data_generator(2.0, 3.0, shapes=[[50, 40], [-1, 2]], lod_levels=[0, 0])
        x, y = fluid.layers.read_file(fluid.layers.double_buffer(reader))
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        one, two = exe.run(fetch_list=[x, y])
        assert one.shape == (50, 40) and two.shape == (1, 2) and one.dtype == np.float32
        assert 2 <= one.min() < 2.01 and 2.99 < one.max() <= 3 and abs(one.mean() - 2.5) < 0.05
        assert not np.array_equal(one, exe.run(fetch_list=[x])[0])

    def test_bounds_are_in_order(self) -> None:
        with pytest.raises(OpValueError, match="low is 3.0, which is more than high"):
            fluid.layers.random_data_generator(3.0, 2.0, shapes=[[1]], lod_levels=[0])
