"""allreduce and broadcast, over an engine with one other trainer whose values are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed.group import Group
from fluidnb.errors import EnforceNotMet
from fluidnb.op import engine
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, SelectedRows

ROWS = SelectedRows([4, 0], 6, LoDTensor(np.arange(4, dtype="float32").reshape(2, 2)))
GROUP: dict[str, Any] = {"endpoints": ["a:0", "a:1"], "trainer_id": 0}


class Other:
    """An engine and its trainer: the other trainer of the group has given its values before."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.calls: list[tuple[Any, ...]] = []

    def trainer(self, number: int) -> Other:
        self.number = number
        return self

    def all_reduce(
        self, endpoints: Sequence[str], how: str, names: Sequence[str], values: Sequence[Any], check: Any
    ) -> Any:
        self.calls.append((how, len(values)))
        group = Group(2, deadline=1)
        group._given[1 - self.number] = how, names, self.values
        return group.reduce(0, self.number, len(endpoints), how, names, values, check)


@pytest.fixture
def other() -> Iterator[Other]:
    made = Other()
    engine.attach(made, ["a:0", "a:1"])  # type: ignore[arg-type]
    yield made
    engine.detach(made)  # type: ignore[arg-type]


class TestAllreduce(OpTest):
    op_type = "allreduce"
    inputs: ClassVar = {"X": [np.ones((2, 3), "float32"), np.zeros(1, "int64")]}
    attrs: ClassVar = GROUP
    outputs: ClassVar = {"Out": [np.ones((2, 3), "float32"), np.zeros(1, "int64")]}

    @pytest.mark.parametrize("reduce_type, expected", [(0, [5, 5]), (1, [4, 3]), (2, [1, 2]), (3, [4, 6])])
    def test_reductions(self, other: Other, reduce_type: int, expected: list[float]) -> None:
        other.values = [np.array([4.0, 2.0])]
        attrs = {**GROUP, "reduce_type": reduce_type}
        assert run_op("allreduce", {"X": [np.array([1.0, 3.0])]}, attrs)["Out"].tolist() == expected

    def test_several_variables_in_one_message_and_in_place(self, other: Other) -> None:
        other.values = [np.full(2, 10, "float32"), np.full(1, 20, "float32")]
        main = fluid.Program()
        block = main.global_block()
        for name, size in (("v", 2), ("w", 1)):
            block.create_var(name=name, shape=[size], dtype="float32")
            block.append_op("fill_constant", {}, {"Out": name}, {"shape": [size], "dtype": 5, "value": 1.0})
        block.append_op("allreduce", {"X": ["v", "w"]}, {"Out": ["v", "w"]}, GROUP)
        for stepping in (False, True, False):
            got = fluid.Executor().run(main, fetch_list=["v", "w"], keep_scopes=stepping)
            assert [value.tolist() for value in got] == [[11.0, 11.0], [21.0]]
        assert other.calls == [("sum", 2)] * 3

    def test_rows_of_all_trainers(self, other: Other) -> None:
        other.values = [SelectedRows([0], 6, LoDTensor(np.full((1, 2), 9, "float32")))]
        out = run_op("allreduce", {"X": [ROWS]}, GROUP)["Out"]
        assert (out.rows(), out.height()) == ([4, 0, 0], 6)
        assert np.array(out.get_tensor()).tolist() == [[0.0, 1.0], [2.0, 3.0], [9.0, 9.0]]

    def test_rows_have_a_sum_only(self, other: Other) -> None:
        other.values = [ROWS]
        with pytest.raises(EnforceNotMet, match=r"SelectedRows have no max over trainers"):
            run_op("allreduce", {"X": [ROWS]}, {**GROUP, "reduce_type": 1})

    def test_another_dtype_of_a_trainer(self, other: Other) -> None:
        other.values = [np.ones(2)]
        with pytest.raises(EnforceNotMet, match=r"in another form(.|\n)*float32\[2\](.|\n)*float64\[2\]"):
            run_op("allreduce", {"X": [np.ones(2, "float32")]}, GROUP)

    def test_another_number_of_trainers(self, other: Other) -> None:
        with pytest.raises(EnforceNotMet, match="made for trainer 0 of 3, and 2 train"):
            run_op("allreduce", {"X": [np.ones(2)]}, {**GROUP, "endpoints": ["a:0", "a:1", "a:2"]})

    def test_no_engine(self) -> None:
        with pytest.raises(EnforceNotMet, match="No engine serves the endpoint a:0"):
            run_op("allreduce", {"X": [np.ones(2)]}, GROUP)

    def test_an_output_for_each_input(self, other: Other) -> None:
        with pytest.raises(EnforceNotMet, match="needs an output for each input"):
            run_op("allreduce", {"X": [np.ones(2), np.ones(1)]}, GROUP, outputs={"Out": 1})


class TestBroadcast(OpTest):
    op_type = "broadcast"
    inputs: ClassVar = {"X": [np.ones(2, "float32")]}
    attrs: ClassVar = GROUP
    outputs: ClassVar = {"Out": [np.ones(2, "float32")]}

    @pytest.mark.parametrize("trainer, expected", [(0, [1.0, 3.0]), (1, [7.0, 8.0])])
    def test_the_values_of_the_root(self, other: Other, trainer: int, expected: list[float]) -> None:
        other.values = [np.array([7.0, 8.0])] if trainer else []
        attrs = {**GROUP, "trainer_id": trainer, "root": 0}
        assert run_op("broadcast", {"X": [np.array([1.0, 3.0])]}, attrs)["Out"].tolist() == expected
        assert other.calls == [("sum", 1 - trainer)]

    def test_another_shape_of_the_root(self, other: Other) -> None:
        other.values = [np.ones(3)]
        with pytest.raises(EnforceNotMet, match=r"in another form(.|\n)*float64\[2\](.|\n)*float64\[3\]"):
            run_op("broadcast", {"X": [np.ones(2)]}, {**GROUP, "trainer_id": 1})
