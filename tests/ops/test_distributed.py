"""Operators of trainers and parameter servers, over an engine that records what they ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import engine
from fluidnb.op.engine import Arrival
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, SelectedRows

ROWS = SelectedRows([4, 0, 5], 6, LoDTensor(np.arange(6, dtype="float32").reshape(3, 2)))


class Recorder:
    """An engine, and both sides of it: keeps what it is given, and gives what it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.arrivals: list[Arrival] = []
        self.values: dict[str, Any] = {}
        self.published: list[dict[str, Any]] = []

    def trainer(self, number: int) -> Recorder:
        return self

    def server(self, endpoint: str) -> Recorder:
        return self

    def send(self, endpoint: str, name: str, value: Any) -> None:
        self.calls.append(("send", endpoint, np.array(value)))

    def send_barrier(self, endpoints: Sequence[str]) -> None:
        self.calls.append(("send_barrier", *endpoints))

    def receive(self, endpoint: str, name: str, check: Any) -> Any:
        self.calls.append(("receive", endpoint, name))
        return self.values[name]

    def prefetch(self, endpoint: str, table: str, ids: Any, check: Any) -> Any:
        self.calls.append(("prefetch", endpoint, table, ids.tolist()))
        return np.repeat(ids[:, None] * 10.0, 2, axis=1)

    def save(self, endpoint: str, name: str, path: str, check: Any) -> None:
        self.calls.append(("save", endpoint, name, path))

    def fetch_barrier(self, endpoints: Sequence[str]) -> None:
        self.calls.append(("fetch_barrier", *endpoints))

    def publish(self, values: Mapping[str, Any], updated: bool) -> None:
        self.published.append({name: np.array(value) for name, value in values.items()})

    def take(self, check: Any) -> Arrival | None:
        return self.arrivals.pop(0) if self.arrivals else None


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    engine.attach(made, ["ps:0", "ps:1"])  # type: ignore[arg-type]
    yield made
    engine.detach(made)  # type: ignore[arg-type]


class TestSend(OpTest):
    op_type = "send"

    def test_each_variable_goes_to_its_endpoint(self, recorder: Recorder) -> None:
        run_op("send", {"X": [np.ones(2), np.zeros(1)]}, {"epmap": ["ps:1", "ps:0"]}, outputs={"Out": 1})
        assert [(call[1], call[2].tolist()) for call in recorder.calls] == [("ps:1", [1.0, 1.0]), ("ps:0", [0.0])]

    def test_an_endpoint_is_needed_for_each_variable(self, recorder: Recorder) -> None:
        with pytest.raises(EnforceNotMet, match="needs an endpoint for each variable"):
            run_op("send", {"X": [np.ones(2), np.zeros(1)]}, {"epmap": ["ps:1"]}, outputs={"Out": 1})
        assert recorder.calls == []

    def test_an_endpoint_without_an_engine(self) -> None:
        with pytest.raises(EnforceNotMet, match="No engine serves the endpoint ps:9"):
            run_op("send", {"X": [np.ones(2)]}, {"epmap": ["ps:9"]}, outputs={"Out": 1})


class TestSendBarrier(OpTest):
    op_type = "send_barrier"

    def test_all_servers_are_told(self, recorder: Recorder) -> None:
        run_op("send_barrier", {}, {"endpoints": ["ps:0", "ps:1"]}, outputs={"Out": 1})
        assert recorder.calls == [("send_barrier", "ps:0", "ps:1")]


class TestCheckpointNotify(OpTest):
    op_type = "checkpoint_notify"

    def test_each_server_gets_a_file(self, recorder: Recorder) -> None:
        run_op("checkpoint_notify", {}, {"epmap": ["ps:0", "ps:1"], "dir": "d", "lookup_table": "t"})
        assert recorder.calls == [("save", "ps:0", "t", "d/t_0"), ("save", "ps:1", "t", "d/t_1")]


def receiving(shape: list[int]) -> fluid.Program:
    """A program that receives w from ps:0."""
    main = fluid.Program()
    block = main.global_block()
    block.create_var(name="w", shape=shape, dtype="float32")
    block.append_op("recv", {}, {"Out": ["w"]}, {"epmap": ["ps:0"]})
    block.append_op("fetch_barrier", {}, {"Out": ["w"]}, {"endpoints": ["ps:0", "ps:1"]})
    return main


class TestRecv(OpTest):
    op_type = "recv"

    @pytest.mark.parametrize("keep_scopes", [False, True])
    def test_a_parameter_comes_anew_in_every_run(self, recorder: Recorder, keep_scopes: bool) -> None:
        main, exe = receiving([2]), fluid.Executor()
        for value in ([1.0, 2.0], [3.0, 4.0]):
            recorder.values["w"] = np.array(value, "float32")
            assert exe.run(main, fetch_list=["w"], keep_scopes=keep_scopes)[0].tolist() == value

    def test_another_shape_is_refused(self, recorder: Recorder) -> None:
        recorder.values["w"] = np.ones(3, "float32")
        with pytest.raises(EnforceNotMet, match=r"keeps w in another form(.|\n)*float32\[2\](.|\n)*float32\[3\]"):
            fluid.Executor().run(receiving([2]))

    def test_an_unknown_size_is_refused(self, recorder: Recorder) -> None:
        with pytest.raises(EnforceNotMet, match="recv needs the shape of w"):
            fluid.Executor().run(receiving([-1]))


class TestFetchBarrier(OpTest):
    op_type = "fetch_barrier"

    def test_what_was_received_is_not_changed(self, recorder: Recorder) -> None:
        recorder.values["w"] = np.array([5.0, 6.0], "float32")
        assert fluid.Executor().run(receiving([2]), fetch_list=["w"])[0].tolist() == [5.0, 6.0]
        assert recorder.calls == [("receive", "ps:0", "w"), ("fetch_barrier", "ps:0", "ps:1")]


class TestSplitByref(OpTest):
    op_type = "split_byref"
    inputs: ClassVar = {"X": np.arange(10, dtype="float32").reshape(5, 2)}
    attrs: ClassVar = {"sections": [2, 3]}
    outputs: ClassVar = {"Out": [inputs["X"][:2], inputs["X"][2:]]}

    def test_output(self) -> None:
        self.check_output()

    def test_sections_that_do_not_fit(self) -> None:
        with pytest.raises(EnforceNotMet, match="sections must divide the rows of X"):
            run_op("split_byref", {"X": np.ones((5, 2))}, {"sections": [2, 2]}, outputs={"Out": 2})


class TestSplitSelectedRows(OpTest):
    op_type = "split_selected_rows"
    inputs: ClassVar = {"X": ROWS}
    attrs: ClassVar = {"height_sections": [4, 2]}
    outputs: ClassVar = {"Out": [SelectedRows((), 4), SelectedRows((), 2)]}

    def test_rows_go_where_their_numbers_are(self) -> None:
        low, high = run_op("split_selected_rows", {"X": ROWS}, {"height_sections": [4, 2]}, outputs={"Out": 2})["Out"]
        assert (low.rows(), low.height(), np.array(low.get_tensor()).tolist()) == ([0], 4, [[2.0, 3.0]])
        assert (high.rows(), high.height()) == ([0, 1], 2)
        assert np.array(high.get_tensor()).tolist() == [[0.0, 1.0], [4.0, 5.0]]


def server(sync: bool) -> fluid.Program:
    """A server with a weight, a bias and a block for each, which subtracts its gradient."""
    main = fluid.Program()
    top = main.global_block()
    for name in ("w", "b", "w@GRAD", "b@GRAD"):
        top.create_var(name=name, shape=[1], dtype="float32", persistable=True)
    for name in ("w", "b"):
        with main.block_guard(0) as block:
            block.append_op("elementwise_sub", {"X": name, "Y": f"{name}@GRAD"}, {"Out": name})
    attrs = {
        "optimize_blocks": [1, 2], "endpoint": "ps:0", "sync_mode": sync,
        "grad_to_block_id": ["w@GRAD:1", "b@GRAD:2"],
    }  # fmt: skip
    top.append_op("listen_and_serv", {"X": ["w@GRAD", "b@GRAD"]}, {}, attrs)
    return main


def one(value: float) -> Any:
    return np.array([value], "float32")


class TestListenAndServ(OpTest):
    op_type = "listen_and_serv"

    @pytest.mark.parametrize("stepping", [False, True])
    @pytest.mark.parametrize(
        "sync, arrivals, expected",
        [
            (True, [{"w@GRAD": one(1), "b@GRAD": one(2)}, {"w@GRAD": one(3), "b@GRAD": one(4)}], [(9, 8), (6, 4)]),
            (False, [{"b@GRAD": one(2)}, {"w@GRAD": one(3)}], [(10, 8), (7, 8)]),
        ],
    )
    def test_blocks_run_and_parameters_are_published(
        self, recorder: Recorder, sync: bool, arrivals: list[Any], expected: list[Any], stepping: bool
    ) -> None:
        recorder.arrivals = [Arrival(values, 0) for values in arrivals]
        scope = fluid.Scope()
        for name in ("w", "b"):
            scope.var(name).get_tensor().set(one(10), fluid.CPUPlace())
        fluid.Executor().run(server(sync), scope=scope, keep_scopes=stepping)
        assert [(p["w"].item(), p["b"].item()) for p in recorder.published] == [(10, 10), *expected]

    def test_a_debug_session_steps_into_an_update_and_back(self, recorder: Recorder) -> None:
        recorder.arrivals = [Arrival({"w@GRAD": one(1), "b@GRAD": one(2)})]
        scope = fluid.Scope()
        for name in ("w", "b"):
            scope.var(name).get_tensor().set(one(10), fluid.CPUPlace())
        run = fluid.Executor().interpret(server(True), scope=scope)
        seen = []
        while not run.done:
            run.step()
            seen.append((run.stack[-1].block.index, run.value("w").array.item(), run.value("b").array.item()))
        assert seen == [(1, 10, 10), (1, 9, 10), (2, 9, 10), (2, 9, 8), (0, 9, 8)]
        run.back(), run.back(), run.back()
        assert (run.stack[-1].block.index, run.value("w").array.item()) == (1, 9)
        run.back()
        assert run.value("w").array.item() == 10
        while not run.done:
            run.step()
        assert (run.value("w").array.item(), run.value("b").array.item()) == (9, 8)


class TestSplitIds(OpTest):
    op_type = "split_ids"
    inputs: ClassVar = {"Ids": [np.array([[0], [2], [2], [3]]), np.array([[5], [5], [6]])]}
    outputs: ClassVar = {"Out": [np.array([[0], [3], [6]]), np.zeros((0, 1), np.int64), np.array([[2], [5]])]}

    def test_numbers(self) -> None:
        got = run_op("split_ids", self.inputs, outputs={"Out": 3})["Out"]
        assert [out.tolist() for out in got] == [out.tolist() for out in self.outputs["Out"]]

    def test_other_numbers_in_the_next_run(self) -> None:
        block = fluid.default_main_program().global_block()
        ids = fluid.layers.data("ids", [1], dtype="int64")
        block.append_op("split_ids", {"Ids": [ids]}, {"Out": ["even", "odd"]})
        exe = fluid.Executor()
        for numbers, expected in (([4, 1, 4], [[4], [1]]), ([1, 3, 5], [[], [1, 3, 5]])):
            got = exe.run(feed={"ids": np.array(numbers)[:, None]}, fetch_list=["even", "odd"])
            assert [out.ravel().tolist() for out in got] == expected

    def test_rows(self) -> None:
        even, odd = run_op("split_ids", {"Ids": ROWS}, outputs={"Out": 2})["Out"]
        assert (even.rows(), odd.rows(), even.height()) == ([4, 0], [5], 6)
        assert np.array(odd.get_tensor()).tolist() == [[4.0, 5.0]]


class TestPrefetch(OpTest):
    op_type = "prefetch"

    def test_each_server_gives_its_rows(self, recorder: Recorder) -> None:
        attrs = {"epmap": ["ps:0", "ps:1"], "table_names": ["t", "t"], "width": 2}
        ids = [np.array([[4], [6]]), np.zeros((0, 1), np.int64)]
        first, second = run_op("prefetch", {"X": ids}, attrs, outputs={"Out": 2})["Out"]
        assert first.tolist() == [[40.0, 40.0], [60.0, 60.0]] and second.shape == (0, 2)
        assert recorder.calls == [("prefetch", "ps:0", "t", [4, 6])]


class TestMergeIds(OpTest):
    op_type = "merge_ids"
    inputs: ClassVar = {
        "Ids": [np.array([[3], [2], [3]]), np.array([[0]])],
        "Rows": [np.array([[0], [2]]), np.array([[3]])],
        "X": [np.array([[0.0, 1.0], [20.0, 21.0]]), np.array([[30.0, 31.0]])],
    }
    outputs: ClassVar = {"Out": [np.array([[30.0, 31.0], [20.0, 21.0], [30.0, 31.0]]), np.array([[0.0, 1.0]])]}

    def test_output(self) -> None:
        self.check_output()

    def test_servers_may_have_any_rows(self) -> None:
        numbers = [np.array([[0], [2]]), np.array([[5], [3]]), np.zeros((0, 1), "int64")]
        rows = [np.array([[0.0], [20.0]]), np.array([[50.0], [30.0]]), np.zeros((0, 1))]
        out = run_op("merge_ids", {"Ids": [np.array([[3], [0], [5]])], "Rows": numbers, "X": rows}, outputs={"Out": 1})
        assert out["Out"].ravel().tolist() == [30.0, 0.0, 50.0]

    def test_a_number_without_a_row(self) -> None:
        with pytest.raises(EnforceNotMet, match="does not hold row 1"):
            run_op("merge_ids", {**self.inputs, "Ids": [np.array([[1]])]}, outputs={"Out": 1})


class TestLookupSparseTable(OpTest):
    op_type = "lookup_sparse_table"
    inputs: ClassVar = {"W": ROWS, "Ids": np.array([[5], [4], [5]])}
    outputs: ClassVar = {"Out": np.array([[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]], "float32")}

    def test_rows_are_found_by_number(self) -> None:
        got = run_op("lookup_sparse_table", self.inputs)["Out"]
        assert got.tolist() == self.outputs["Out"].tolist()

    def test_a_row_that_is_elsewhere(self) -> None:
        with pytest.raises(EnforceNotMet, match="does not hold row 1"):
            run_op("lookup_sparse_table", {"W": ROWS, "Ids": np.array([[1]])})


class TestFakeInit(OpTest):
    op_type = "fake_init"
    attrs: ClassVar = {"shape": [1000, 4]}
    outputs: ClassVar = {"Out": SelectedRows((), 1000)}

    def test_a_table_without_rows(self) -> None:
        table = run_op("fake_init", attrs={"shape": [1000, 4]})["Out"]
        assert (table.shape(), table.rows()) == ([1000, 4], [])
