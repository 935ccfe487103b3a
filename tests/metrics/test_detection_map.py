"""DetectionMAP: mean average precision over batches and passes, as a metric and as an evaluator."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers
BOXES = np.float32([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1], [0, 0.5, 0.5, 1]])


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def variables():
    found = L.data("found", [6], lod_level=1)
    label, hard = (L.data(n, [1], dtype="int32", lod_level=1) for n in ("label", "hard"))
    return found, label, L.data("box", [4], lod_level=1), hard


def batch(found, objects, hard=()):
    """One image: (class, score, number of a box) of each detection, (class, number of a box) of each object."""
    rows = [[kind, score, *BOXES[i]] for kind, score, i in found]
    marks = [[int(i in hard)] for i in range(len(objects))]
    parts = {"found": np.float32(rows), "label": np.int32([[kind] for kind, _ in objects]), "hard": np.int32(marks),
             "box": BOXES[[i for _, i in objects]]}  # fmt: skip
    return {n: fluid.create_lod_tensor(v, [[len(v)]], fluid.CPUPlace()) for n, v in parts.items()}


RIGHT = batch([(1, 0.9, 0)], [(1, 0)])
WRONG = batch([(1, 0.8, 1), (1, 0.7, 2)], [(1, 0)])


@pytest.mark.parametrize("kind", [fluid.metrics.DetectionMAP, fluid.evaluator.DetectionMAP])
@pytest.mark.parametrize("stepped", [False, True])
def test_over_batches_and_passes(kind, stepped):
    found, label, box, _ = variables()
    metric = kind(found, label, box, class_num=2)
    of_batch, so_far = metric.get_map_var()
    assert (metric.cur_map, metric.accum_map) == (of_batch, so_far)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        expected = [(RIGHT, 1, 1), (WRONG, 0, 1 / 2), (RIGHT, 1, (1 + 1) / 3), (RIGHT, 1, 3 / 4)]
        for feed, one, whole in expected:
            values = exe.run(feed=feed, fetch_list=[of_batch, so_far], keep_scopes=stepped)
            assert np.ravel(values) == pytest.approx([one, whole])
        metric.reset(exe)


def test_the_startup_program_is_a_reset_too():
    found, label, box, _ = variables()
    metric, exe = fluid.metrics.DetectionMAP(found, label, box, class_num=2), fluid.Executor(fluid.CPUPlace())
    for _ in range(2):
        exe.run(fluid.default_startup_program())
        assert [exe.run(feed=f, fetch_list=[metric.accum_map])[0].item() for f in (WRONG, RIGHT)] == [0.0, 0.5]


@pytest.mark.parametrize(("every", "value"), [(True, 0.5), (False, 1.0)])
def test_difficult_objects(every, value):
    found, label, box, hard = variables()
    metric = fluid.metrics.DetectionMAP(found, label, box, hard, class_num=2, evaluate_difficult=every)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = batch([(1, 0.9, 0)], [(1, 0), (1, 1)], hard=(1,))
    assert exe.run(feed=feed, fetch_list=[metric.cur_map])[0].item() == value


@pytest.mark.parametrize(("version", "value"), [("integral", 0.5), ("11point", 6 / 11)])
def test_versions_and_thresholds(version, value):
    found, label, box, _ = variables()
    metric = fluid.metrics.DetectionMAP(found, label, box, class_num=2, ap_version=version, overlap_threshold=0.9)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = batch([(1, 0.9, 0)], [(1, 0), (1, 1)])
    assert exe.run(feed=feed, fetch_list=[metric.cur_map])[0].item() == pytest.approx(value)
    near = np.array(feed["found"])
    near[0, 4] = 0.4  # an overlap of 0.8
    feed["found"] = fluid.create_lod_tensor(near, [[1]], fluid.CPUPlace())
    assert exe.run(feed=feed, fetch_list=[metric.cur_map])[0].item() == 0


def test_the_states_are_saved_with_the_program(tmp_path):
    found, label, box, _ = variables()
    metric, exe = fluid.metrics.DetectionMAP(found, label, box, class_num=2), fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed=RIGHT)
    fluid.io.save_persistables(exe, str(tmp_path))
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path))
        assert exe.run(feed=WRONG, fetch_list=[metric.accum_map])[0].item() == 0.5


def test_mistakes():
    found, label, box, _ = variables()
    block = fluid.default_main_program().global_block()
    names = list(block.vars)
    with pytest.raises(OpValueError, match="DetectionMAP needs class_num"):
        fluid.metrics.DetectionMAP(found, label, box)
    with pytest.raises(OpValueError, match="ap_type"):
        fluid.metrics.DetectionMAP(found, label, box, class_num=2, ap_version="12point")
    with pytest.raises(OpTypeError):
        fluid.evaluator.DetectionMAP(found, label, None, class_num=2)
    assert list(block.vars) == names and block.ops == []
