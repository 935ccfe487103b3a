"""The batch innermost in memory: same results and shapes, same bits from both walkers, and nothing outside touched."""

import inspect

import numpy as np
import pytest

from fluidnb.program import Program
from fluidnb.runtime import Executor, LoweredProgram, Scope
from fluidnb.runtime.compile import layout
from fluidnb.runtime.compile.layout import has_order, order_of
from fluidnb.testing import OpTest
from fluidnb.values import CPUPlace
from tests.ops import test_conv, test_norm, test_pool
from tests.runtime.programs import Raw, scope_of

INNER = (1, 2, 3, 0)


def rng(*shape):
    """Random images, the same in every run."""
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype("float32")


def network():
    """Two blocks of convolution, bias, relu and pooling, a matrix product, and their gradients."""
    p = Raw()
    p.data("img", [-1, 1, 8, 8])
    p.weight("w1", [3, 1, 3, 3])
    p.weight("b1", [3])
    p.weight("w2", [12, 5])
    p.op("conv2d", {"Input": "img", "Filter": "w1"}, "c", slot="Output", paddings=[1, 1])
    p.op("elementwise_add", {"X": "c", "Y": "b1"}, "s", axis=1)
    p.op("relu", {"X": "s"}, "r")
    p.op("pool2d", {"X": "r"}, "p", pooling_type="max", ksize=[4, 4], strides=[4, 4])
    p.op("mul", {"X": "p", "Y": "w2"}, "y")
    p.op("mean", {"X": "y"}, "loss")
    return p.program


WEIGHTS = {"w1": rng(3, 1, 3, 3), "b1": rng(3), "w2": rng(12, 5)}


def plan_of(program, fetch=("loss",), feed=("img",)):
    return LoweredProgram(program.desc, feed, fetch, CPUPlace())


def test_images_and_what_is_computed_from_them_element_by_element():
    program = network()
    assert plan_of(program).layout == dict.fromkeys(("img", "c", "s", "r", "p"), INNER)


def test_programs_without_images_have_no_layout():
    p = Raw()
    p.data("x", [-1, 3, 4, 5])
    p.op("relu", {"X": "x"}, "y")
    assert plan_of(p.program, ("y",), ("x",)).layout == {}


def test_channels_that_are_last_stay_last():
    p = Raw()
    p.data("x", [-1, 4, 5, 3])
    p.op("pool2d", {"X": "x"}, "y", pooling_type="max", ksize=[2, 2], data_format="NHWC")
    assert plan_of(p.program, ("y",), ("x",)).layout == {}


def test_parameters_and_what_blocks_share_stay_as_they_are():
    p = Raw()
    p.data("x", [-1, 3, 5, 5])
    p.weight("w", [3, 3, 1, 1])
    p.weight("kept", [16, 3, 5, 5])
    p.op("conv2d", {"Input": "x", "Filter": "w"}, "c", slot="Output")
    p.op("elementwise_add", {"X": "c", "Y": "kept"}, "kept")
    p.op("conv2d", {"Input": "kept", "Filter": "w"}, "d", slot="Output")
    assert set(plan_of(p.program, ("d",), ("x",)).layout) == {"x", "c", "d"}
    scope = scope_of(w=rng(3, 3, 1, 1), kept=rng(16, 3, 5, 5))
    Executor(CPUPlace()).run(p.program, feed={"x": rng(16, 3, 5, 5)}, fetch_list=["d"], scope=scope)
    assert scope.find_var("kept").value.array.flags.c_contiguous


def test_small_batches_stay_in_c_order():
    names = {"x": INNER}
    assert order_of(names, "x", (layout.SMALLEST, 2, 3, 4)) == INNER
    assert order_of(names, "x", (layout.SMALLEST - 1, 2, 3, 4)) is None
    assert order_of(names, "x", (64, 24)) is order_of(names, "y", (64, 2, 3, 4)) is order_of({}, "x", (64,) * 4) is None


def test_images_lie_in_memory_as_the_plan_says():
    scope = scope_of(**WEIGHTS)
    feed = {"img": rng(16, 1, 8, 8)}
    Executor(CPUPlace()).run(network(), feed=feed, fetch_list=["loss"], scope=scope, keep_scopes=True)
    for name in ("img", "c", "s", "r", "p"):
        array = scope.kids[-1].find_var(name).value.array
        assert array.shape[0] == 16 and has_order(array, INNER) and not array.flags.c_contiguous, name


@pytest.mark.parametrize("keep_scopes", [False, True])
@pytest.mark.parametrize("return_numpy", [False, True])
def test_what_is_fetched_is_in_c_order(keep_scopes, return_numpy):
    feed = {"img": rng(16, 1, 8, 8)}
    exe, scope = Executor(CPUPlace()), scope_of(**WEIGHTS)
    for _ in range(3):
        found = exe.run(network(), feed=feed, fetch_list=["img", "r"], scope=scope, return_numpy=return_numpy,
                        keep_scopes=keep_scopes)  # fmt: skip
        img, r = map(np.asarray, found)
        assert img.flags.c_contiguous and r.flags.c_contiguous
        assert np.array_equal(img, feed["img"]) and r.shape == (16, 3, 8, 8)


def test_same_results_as_in_c_order_and_same_bits_from_both_walkers(monkeypatch):
    def results(smallest, keep):
        monkeypatch.setattr(layout, "SMALLEST", smallest)
        exe, scope = Executor(CPUPlace()), scope_of(**WEIGHTS)
        feed = {"img": rng(16, 1, 8, 8)}
        rows = [exe.run(network(), feed=feed, fetch_list=["p", "y", "loss"], scope=scope, keep_scopes=keep)
                for _ in range(3)]  # fmt: skip
        assert all(a.tobytes() == b.tobytes() for row in rows for a, b in zip(row, rows[0], strict=True))
        return rows[0]

    replayed, walked, plain = results(8, False), results(8, True), results(100, False)
    for a, b, c in zip(replayed, walked, plain, strict=True):
        assert a.tobytes() == b.tobytes()
        assert np.allclose(a, c, atol=1e-6)


def test_a_view_in_another_order_is_a_copy():
    """reshape may alias its input, but not where the variable would lie otherwise in memory."""
    p = Raw()
    p.data("x", [-1, 2, 4, 4])
    p.op("pool2d", {"X": "x"}, "p", pooling_type="max", ksize=[2, 2])
    p.op("reshape", {"X": "p"}, "flat", shape=[0, 18])
    p.op("reshape", {"X": "flat"}, "again", shape=[-1, 2, 3, 3])
    p.op("pool2d", {"X": "again"}, "q", pooling_type="avg", ksize=[2, 2])
    x = rng(16, 2, 4, 4)
    exe = Executor(CPUPlace())
    for _ in range(3):
        flat, q = exe.run(p.program, feed={"x": x}, fetch_list=["flat", "q"], scope=Scope())
        walked = exe.run(p.program, feed={"x": x}, fetch_list=["flat", "q"], scope=Scope(), keep_scopes=True)
        assert (flat.tobytes(), q.tobytes()) == tuple(a.tobytes() for a in walked)
    largest = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3)).max((4, 5))
    assert np.array_equal(flat, largest.reshape(16, 18))


CASES = [
    case
    for module in (test_conv, test_pool, test_norm)
    for _, case in inspect.getmembers(module, inspect.isclass)
    if issubclass(case, OpTest) and case.op_type and case.op_type != "layer_norm"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_operators_with_the_batch_innermost(monkeypatch, case):
    """Every case of the operators that care, with images of two and more in the order of the plan."""
    monkeypatch.setattr(layout, "SMALLEST", 2)
    monkeypatch.setattr(layout, "_SOURCES", layout._SOURCES | {f"{n}_norm": ("X", "Y") for n in ("batch", "group")})
    test = case()
    test.check_output(rtol=1e-9, atol=1e-9)
    if hasattr(case, "test_grad"):
        test.test_grad()


def test_normalisation_between_convolutions():
    """batch_norm, dropout and concat pass the order on."""
    program = Program()
    block = program.global_block()
    block.create_var(name="x", shape=[-1, 2, 5, 5], dtype="float32")
    for name in ("scale", "bias", "mean", "variance"):
        block.create_var(name=name, shape=[2], dtype="float32", persistable=True)
    for name in ("y", "m", "v", "d", "mask", "both", "p"):
        block.create_var(name=name, dtype="uint8" if name == "mask" else "float32")
    moments = {"Scale": "scale", "Bias": "bias", "Mean": "mean", "Variance": "variance"}
    saved = {"MeanOut": "mean", "VarianceOut": "variance", "SavedMean": "m", "SavedVariance": "v"}
    block.append_op(type="batch_norm", inputs={"X": "x", **moments}, outputs={"Y": "y", **saved})
    block.append_op(type="dropout", inputs={"X": "y"}, outputs={"Out": "d", "Mask": "mask"})
    block.append_op(type="concat", inputs={"X": ["d", "x"]}, outputs={"Out": "both"}, attrs={"axis": 1})
    block.append_op(
        type="pool2d", inputs={"X": "both"}, outputs={"Out": "p"}, attrs={"pooling_type": "max", "ksize": [2, 2]}
    )
    assert set(plan_of(program, ("p",), ("x",)).layout) == {"x", "y", "d", "mask", "both", "p"}
    program.random_seed = 5
    values = {"scale": [1, 2], "bias": [0, 1], "mean": [0, 0], "variance": [1, 1]}
    scopes = [scope_of(**{n: np.array(v, "float32") for n, v in values.items()}) for _ in range(2)]
    x, exe = rng(16, 2, 5, 5), Executor(CPUPlace())
    for _ in range(3):
        a = exe.run(program, feed={"x": x}, fetch_list=["both", "p"], scope=scopes[0])
        b = exe.run(program, feed={"x": x}, fetch_list=["both", "p"], scope=scopes[1], keep_scopes=True)
        assert all(i.tobytes() == j.tobytes() for i, j in zip(a, b, strict=True))
    assert np.array_equal(a[0][:, 2:], x) and 0 < (a[0][:, :2] == 0).mean() < 1
