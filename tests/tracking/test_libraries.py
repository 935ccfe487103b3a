"""Trackers with the real TensorBoard, tqdm and pandas."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.tracking import Table, TensorBoard, Tqdm, frame
from tests.tracking.test_trackers import train, training  # noqa: F401


def test_tensorboard_reads_scalars_histograms_and_the_graph(training: Any, tmp_path: Path) -> None:  # noqa: F811
    pytest.importorskip("tensorboard", reason="no tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    table = Table()
    train(training, 4, trackers=[TensorBoard(str(tmp_path), histograms=2), table])
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0, "graph": 0}).Reload()
    name = training[1].name
    values = [float(np.frombuffer(e.tensor_proto.tensor_content, "f4")[0]) if e.tensor_proto.tensor_content
              else e.tensor_proto.float_val[0] for e in events.Tensors(name)]  # fmt: skip
    assert values == pytest.approx([row[name] for row in table.rows])
    assert [e.step for e in events.Tensors("fc_0.w_0")] == [0, 2]
    nodes = {node.name: list(node.input) for node in events.Graph().node}
    assert nodes["2_mean"] == ["1_elementwise_add"]
    assert len(nodes) == len(fluid.default_main_program().global_block().ops)


def test_tqdm_shows_steps_and_values(training: Any) -> None:  # noqa: F811
    pytest.importorskip("tqdm", reason="no tqdm")
    shown = io.StringIO()
    train(training, 5, trackers=[Tqdm(total=5, file=shown, mininterval=0)])
    assert "5/5" in shown.getvalue() and training[1].name in shown.getvalue()


def test_pandas_has_steps_and_reports(training: Any) -> None:  # noqa: F811
    pytest.importorskip("pandas", reason="no pandas")
    table = Table()
    train(training, 3, trackers=[table])
    steps = table.frame()
    assert list(steps.index) == [0, 1, 2] and steps[training[1].name].is_monotonic_decreasing
    assert Table().frame().empty
    cost = frame(fluid.default_main_program().cost({"x": (32, 3)}))
    assert cost["multiply_adds"].sum() == fluid.default_main_program().cost({"x": (32, 3)}).multiply_adds
    assert {"calls", "total"} <= set(frame(_profile(training)).columns)


def _profile(training: Any) -> Any:  # noqa: F811
    exe, loss = training
    with fluid.profiler.profiler("CPU", profile_path=None) as profile:
        exe.run(feed={"x": np.ones((2, 3), "f4")}, fetch_list=[loss])
    return profile
