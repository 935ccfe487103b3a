"""Statistics of tensors on a device, for debugger, pictures and checks, are computed there: few bytes are copied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.dap.references import References
from fluidnb.dap.values import Expandable, children, variable
from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.nan import find_nan
from fluidnb.debug.tensor_stats import tensor_stats
from fluidnb.debug.view import View
from fluidnb.runtime import latest_array
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.scope import Scope
from fluidnb.terminal.commands import run_command
from fluidnb.values.device_array import DeviceArray
from fluidnb.viz import plain
from fluidnb.viz.notebook_reprs import repr_html
from fluidnb.viz.session.panel_values import Window, read_details, read_window
from fluidnb.viz.time.gradients import Gradients
from fluidnb.viz.time.progress import Progress
from fluidnb.viz.values.reader import read_scope, read_tensor
from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_magics.widgets.scope_explorer import ScopeExplorer
from tests.magics.conftest import Session, session

__all__ = ["session"]

#: Rows and columns of a parameter of 64 MB, and bytes that may be copied where somebody looks at it.
ROWS, COLUMNS, FEW = 1 << 14, 1 << 10, 64 << 10


class Bytes:
    """Counts what is copied from a device to the host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total, copy = 0, runtime.memcpyAsync

        def counted(dst: int, src: int, size: int, kind: int, stream: int) -> None:
            self.total += size if kind == runtime.memcpyDeviceToHost else 0
            copy(dst, src, size, kind, stream)

        monkeypatch.setattr(runtime, "memcpyAsync", counted)

    def of(self, look: Any) -> Any:
        """The result of a look, which must copy few bytes, and some."""
        before = self.total
        found = look()
        assert 0 < self.total - before < FEW, f"{self.total - before:,} bytes"
        return found


@pytest.fixture
def copied(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> Bytes:
    """Counts from now on."""
    return Bytes(monkeypatch)


def on_device(held: np.ndarray[Any, Any], place: fluid.CUDAPlace) -> Any:
    """An array of the device with some values."""
    tensor = fluid.LoDTensor()
    tensor.set(held, place)
    return tensor.array


@pytest.fixture(scope="module")
def large() -> np.ndarray[Any, Any]:
    """The values of the parameter."""
    values = np.random.default_rng(3).normal(size=(ROWS, COLUMNS)).astype("float32")
    values[1, 16], values[5, 32] = np.nan, np.inf  # among those that statistics look at
    return values


@pytest.fixture
def scope(cuda: fluid.CUDAPlace, large: np.ndarray[Any, Any]) -> Scope:
    """A scope with the parameter on the device."""
    made = fluid.Scope()
    made.var("w").get_tensor().set(large, cuda)
    return made


def test_the_counter_counts(copied: Bytes, cuda: fluid.CUDAPlace) -> None:
    tensor = fluid.LoDTensor()
    tensor.set(np.zeros((100, 10), "float32"), cuda)
    np.asarray(tensor)
    assert copied.total == 4000


def test_scopes_are_listed_with_statistics_and_previews(
    scope: Scope, copied: Bytes, large: np.ndarray[Any, Any]
) -> None:
    held = copied.of(lambda: read_scope(scope, previews=True)).variables[0]
    want = read_tensor(large, "w")
    got = held.tensor
    assert (got.nan, got.inf, got.low, got.high) == (want.nan, want.inf, want.low, want.high)
    assert got.histogram == want.histogram and got.statistics == want.statistics
    assert held.preview.planes[0][0][:2] == (large[0, 0], large[0, 33]) and held.preview.size == (32, 32)


def test_texts_show_the_corners(scope: Scope, copied: Bytes, large: np.ndarray[Any, Any]) -> None:
    tensor = scope.find_var("w").get_tensor()
    assert copied.of(lambda: str(tensor)).splitlines()[1:] == np.array2string(large, threshold=100).splitlines()
    html = copied.of(lambda: repr_html(tensor))
    assert "histogram" in html and "1 NaN" in html
    np.testing.assert_array_equal(copied.of(lambda: np.asarray(tensor[3, 5:9])), large[3, 5:9])
    np.testing.assert_array_equal(copied.of(lambda: np.asarray(tensor[::4096, 2])), large[::4096, 2])
    assert copied.of(lambda: tensor._get_float_element(COLUMNS + 2)) == large[1, 2]


def test_numbers_of_reports(scope: Scope, copied: Bytes, large: np.ndarray[Any, Any]) -> None:
    found = copied.of(lambda: tensor_stats("w", scope.find_var("w").value))
    fine = large[np.isfinite(large)].astype("float64")
    assert (found.nan, found.inf, found.low, found.high) == (1, 1, fine.min(), fine.max())
    np.testing.assert_allclose(found.norm, np.sqrt(np.square(fine).sum()), rtol=1e-12)


def test_arrays_of_a_device_read_as_those_of_numpy(scope: Scope, copied: Bytes, large: np.ndarray[Any, Any]) -> None:
    far, dtype = View(scope)["w"], np.dtype("float32")
    assert isinstance(far, DeviceArray) and far.shape == large.shape and far.dtype == dtype and len(far) == ROWS
    np.testing.assert_equal(copied.of(lambda: far.max()), np.float32(np.nan))
    assert copied.of(lambda: np.isnan(far).sum()) == copied.of(lambda: np.isinf(far).sum()) == 1
    assert not copied.of(lambda: np.isfinite(far).all()) and copied.of(lambda: np.isnan(far).any())
    assert repr(np.isnan(far)) == repr(np.isnan(large))
    assert copied.of(lambda: repr(far)) == repr(large) and copied.of(lambda: str(far)) == str(large)
    np.testing.assert_array_equal(copied.of(lambda: far[3:5, ::100]), large[3:5, ::100])
    assert copied.of(lambda: far[3][4]) == large[3, 4] and isinstance(far[3, 4], np.float32)
    with pytest.raises(TypeError):
        far[0] = 1.0
    whole = np.asarray(far)
    assert not whole.flags.writeable and far.copy().flags.writeable
    np.testing.assert_array_equal(whole, large)


ODD = ([], [np.nan], [np.inf], [-np.inf], [np.inf, -np.inf])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"])
def test_answers_are_numpys(cuda: fluid.CUDAPlace, dtype: str) -> None:
    floats = dtype.startswith("float")
    odds = ODD if dtype == "float32" else ODD[: 1 + floats]
    for odd, start in product(odds, ([3.0, 0.0, 7.0, 25.0], [1.0, 2.0, 4.0], [])):
        held = np.array([*start, *odd]).astype(dtype)
        for kept in (None, np.absolute, np.isnan, np.isinf, np.isfinite)[: 5 if floats else 1] if held.size else ():
            far = DeviceArray(on_device(held, cuda), kept)
            near = held if kept is None else kept(held)
            assert far.dtype == near.dtype
            for name in ("max", "min", "sum", "mean", "any", "all"):
                with np.errstate(invalid="ignore"):
                    got, want = getattr(far, name)(), getattr(near, name)()
                assert type(got) is type(want), (name, kept)
                np.testing.assert_equal(got, want, f"{name} of {kept} of {held}")


def test_what_a_device_is_not_asked_is_asked_of_a_copy(cuda: fluid.CUDAPlace) -> None:
    near = np.arange(6, dtype="float32").reshape(2, 3)
    far = DeviceArray(on_device(near, cuda))
    assert np.max(far) == far.std() + 5 - near.std() and np.sum(far) == 15 and np.isnan(far).mean() == 0
    for got, want in ((far.sum(axis=0), near.sum(axis=0)), (far * 2 - far, near), (list(far), list(near)),
                      (far[[1, 0]], near[[1, 0]]), (far[..., 1:2], near[..., 1:2]), (abs(far)[1], near[1]),
                      (np.maximum(far, 2), np.maximum(near, 2)), (far.T, near.T), (far[far > 2], near[near > 2]),
                      (np.add.reduce(far), near.sum(0)), (far[None, 1], near[None, 1])):  # fmt: skip
        np.testing.assert_array_equal(got, want)


def test_one_element_is_a_number(cuda: fluid.CUDAPlace) -> None:
    far = DeviceArray(on_device(np.array(2), cuda))
    assert far and far == 2 and float(far) == 2.0 and int(far) == 2 and f"{far:03d}" == "002" and f"{far}" == "2"
    assert far.item() == 2 and far.tolist() == 2 and range(5)[far] == 2 and isinstance(far[()], np.int64)
    with pytest.raises(AttributeError):
        far.__cuda_array_interface__  # noqa: B018
    with pytest.raises(TypeError, match="unsized"):
        len(far)
    with pytest.raises(IndexError):
        DeviceArray(on_device(np.zeros(2), cuda))[3]
    with pytest.raises(ValueError, match="copy"):
        np.array(far, copy=False)


def _net(value: float = 1.0) -> fluid.Variable:
    """A program with a parameter of 64 MB that operators read and write."""
    fluid.default_startup_program().random_seed = 1
    w = layers.create_parameter([ROWS, COLUMNS], "float32", "w", default_initializer=fluid.initializer.Constant(0.5))
    return layers.mean(layers.scale(layers.scale(w, scale=value), scale=4.0))


def test_a_session_steps_over_large_tensors(copied: Bytes, cuda: fluid.CUDAPlace) -> None:
    out = _net()
    fluid.Executor(cuda).run(fluid.default_startup_program())
    debugger = fluid.debug(feed={}, fetch_list=[out], place=cuda)
    try:
        debugger.watch("w")
        debugger.watch("abs(scale_0_tmp_0).max()")
        debugger.watch("v['scale_0.tmp_0'].mean()")
        snapshot = copied.of(debugger.step)
        assert snapshot.watches[0][1].startswith("[[0.5 0.5 ... 0.5 0.5]") and snapshot.watches[2][1] == "0.5"
        page = copied.of(lambda: debugger.inspect(read_window, Window()))
        assert [row.statistics[:10] for row in page.rows] == ["0.5 ± 0 in"]
        opened = copied.of(lambda: debugger.inspect(read_details, "w", -1))
        assert opened.page.cells[0][0] == "0.5" and opened.picture.startswith("data:image")
        assert copied.of(lambda: debugger.evaluate("v['w'].sum()")) == ROWS * COLUMNS / 2
        lines = copied.of(lambda: plain(run_command(debugger, "print w"))).splitlines()
        assert "0.5 ± 0 in [0.5, 0.5]" in lines[0] and lines[1] == "  [[0.5 0.5 0.5 ... 0.5 0.5 0.5]"
        assert debugger.snapshot.kept < FEW  # what is new is kept by reference
        snapshot = copied.of(debugger.back)
        assert snapshot.at == 0
    finally:
        debugger.close()


class Test_breakpoints_on_numbers:
    """Conditions copy what they ask for."""

    @pytest.fixture
    def debugger(self, copied: Bytes, cuda: fluid.CUDAPlace) -> Iterator[Any]:
        out = _net(3e38)
        fluid.Executor(cuda).run(fluid.default_startup_program())
        made = fluid.debug(feed={}, fetch_list=[out], place=cuda)
        yield made
        made.close()

    @pytest.mark.parametrize(("kind", "what", "stops"), [
        ("nan", "", "scale_1.tmp_0"),
        ("nan", "1e6", "scale_0.tmp_0"),
        ("when", "abs(v['scale_0.tmp_0']).max() > 1e30", "scale_0.tmp_0"),
        ("when", "np.isinf(v['scale_1.tmp_0']).any()", "scale_1.tmp_0"),
    ])  # fmt: skip
    def test_stop(self, debugger: Any, copied: Bytes, kind: str, what: str, stops: str) -> None:
        snapshot = copied.of(lambda: debugger.do(Debugger.run_to, Breakpoint(kind, what)))
        assert snapshot.reason.startswith("breakpoint") and snapshot.wrote == (stops,)


def test_the_check_for_nan_copies_flags(copied: Bytes, cuda: fluid.CUDAPlace) -> None:
    out = _net(3e38)
    exe = fluid.Executor(cuda)
    exe.run(fluid.default_startup_program())
    fluid.set_flags({"FLAGS_check_nan_inf": True})

    def refused() -> str:
        with pytest.raises(fluid.core.EnforceNotMet) as raised:
            exe.run(fetch_list=[out])
        return str(raised.value)

    try:
        said = copied.of(refused)
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    assert "Operator scale output Tensor scale_1.tmp_0 contains NAN/Inf" in said
    assert f"0 NaN and {ROWS * COLUMNS} infinite of {ROWS * COLUMNS} elements" in said


def test_the_search_for_nan_copies_numbers(copied: Bytes, cuda: fluid.CUDAPlace) -> None:
    _net(3e38)
    fluid.Executor(cuda).run(fluid.default_startup_program())
    found = copied.of(lambda: find_nan(feed={}, place=cuda))
    assert found.op.type == "scale" and found.outputs[0].inf == ROWS * COLUMNS and found.inputs[0].low > 1e38


def test_commands_and_widgets_copy_what_they_show(
    session: Session, cuda: fluid.CUDAPlace, copied: Bytes, large: np.ndarray[Any, Any]
) -> None:
    tensor = fluid.global_scope().var("w").get_tensor()
    tensor.set(large, cuda)
    assert "0.000314 ± 1 in [-4.4, 5.15]" in copied.of(lambda: session.run("%fluid scope"))
    shown = copied.of(lambda: session.run("%fluid scope w"))
    assert str(large).splitlines()[0] in shown and "on CUDAPlace(0)" in shown
    face = copied.of(lambda: ScopeExplorer(session.bench, fluid.global_scope(), "w"))
    try:
        assert face.opened["shape"] == [ROWS, COLUMNS] and face.opened["cells"][0][0] == f"{large[0, 0]:.5g}"
        assert face.opened["pictures"]["plane"]["size"] == (96, 96) and face.opened["warn"]
        copied.of(face.refresh)
        assert not face.opened["changed"]
        tensor._set_float_element(0, 9.0)
        copied.of(face.refresh)
        assert face.opened["changed"] and face.opened["cells"][0][0] == "9"
    finally:
        face.close()


def test_variables_tell_their_last_value(
    cuda: fluid.CUDAPlace, copied: Bytes, large: np.ndarray[Any, Any], scope: Scope
) -> None:
    with fluid.scope_guard(scope):
        w = layers.create_parameter([ROWS, COLUMNS], "float32", "w")
        assert "last value min nan, max nan, mean nan" in copied.of(lambda: repr(w))
        assert "±" in copied.of(lambda: repr_html(w))
        tensor = scope.find_var("w").get_tensor()
        tensor.set(np.nan_to_num(large, posinf=9.0), cuda)
        assert "max 9" in copied.of(lambda: repr(w))
        np.testing.assert_array_equal(latest_array(w), np.nan_to_num(large, posinf=9.0))
        tensor.set(np.ones((1,), "float32"), cuda)
        assert "last value 1" in repr(w)


def test_what_a_session_keeps_stays_on_the_device(cuda: fluid.CUDAPlace, copied: Bytes) -> None:
    w = layers.create_parameter([ROWS, COLUMNS], "float32", "w", default_initializer=fluid.initializer.Constant(0.5))
    layers.assign(layers.scale(w, scale=2.0), output=w)
    fluid.Executor(cuda).run(fluid.default_startup_program())
    debugger = fluid.debug(feed={}, place=cuda)
    before = copied.total
    try:
        assert debugger.step(2).kept > 4 * ROWS * COLUMNS  # what assign has overwritten
        debugger.edit("w", 7.0)
        assert debugger.snapshot.kept > 8 * ROWS * COLUMNS
        assert debugger.back(3).at == 0
        debugger.restart()
        assert copied.total - before < FEW
        assert debugger.evaluate("v['w'].max()") == 0.5
    finally:
        debugger.close()


def test_checkpoints_are_compared_on_the_device(cuda: fluid.CUDAPlace, copied: Bytes, scope: Scope) -> None:
    w = layers.create_parameter([ROWS, COLUMNS], "float32", "w")
    layers.assign(layers.scale(w, scale=2.0), output=w)
    lowered = LoweredProgram(fluid.default_main_program().desc, (), (), cuda)
    point, tensor = Checkpoint(lowered, scope), scope.find_var("w").get_tensor()
    assert copied.of(point.changed) == []
    tensor._set_float_element(ROWS * COLUMNS - 1, 9.0)
    assert copied.of(point.changed) == ["w"]
    point.restore()
    assert copied.of(point.changed) == []


def test_updates_are_measured_on_the_device(cuda: fluid.CUDAPlace, copied: Bytes) -> None:
    w = layers.create_parameter([ROWS, 8], "float32", "w", default_initializer=fluid.initializer.Constant(3.0))
    fluid.optimizer.SGD(0.5).minimize(layers.reduce_sum(w))
    exe = fluid.Executor(cuda)
    exe.run(fluid.default_startup_program())
    gradients, size = Gradients(), 4 * 8 * ROWS
    before = copied.total
    gradients.run(exe)
    assert size <= copied.total - before < size + FEW  # the gradient is fetched
    row = copied.of(gradients.picture).rows[0]
    want = np.sqrt(8 * ROWS) * np.array([1.0, 0.5, 2.5])
    np.testing.assert_allclose([row.gradient.last, row.update.last, row.weights], want)


def test_progress_watches_means_of_large_tensors(
    cuda: fluid.CUDAPlace, copied: Bytes, scope: Scope, large: np.ndarray[Any, Any]
) -> None:
    with fluid.scope_guard(scope):
        w = layers.create_parameter([ROWS, COLUMNS], "float32", "w")
        scope.find_var("w").get_tensor().set(np.nan_to_num(large, posinf=0.0), cuda)
        progress = copied.of(lambda: _watched(w))
    want = np.nan_to_num(large, posinf=0.0).mean(dtype="float64")
    np.testing.assert_allclose(progress.curves[0].last, want, rtol=1e-5)


def _watched(variable: fluid.Variable) -> Progress:
    progress = Progress(range(1), [variable])
    for _ in progress:
        pass
    return progress


def test_clients_list_what_they_show(copied: Bytes, scope: Scope, large: np.ndarray[Any, Any]) -> None:
    tensor, known = scope.find_var("w").get_tensor(), References()
    tensor.set_lod([[0, 3, 3, ROWS]])
    row = copied.of(lambda: variable("w", Expandable(tensor, "w", "w"), known))
    assert "± 1 in [-4.4, 5.15]" in row["value"] and row["indexedVariables"] == ROWS
    first = copied.of(lambda: children(Expandable(tensor, "w", "w"), known, "indexed", 3, 2))
    assert [r["name"] for r in first] == ["[3]", "[4]"] and first[0]["type"] == f"float32[{COLUMNS}]"
    assert first[0]["value"] == f"float32[{COLUMNS}]  {read_tensor(large[3]).statistics}"
    named = copied.of(lambda: children(Expandable(tensor, "w", "w"), known, "named"))
    assert [r["value"] for r in named if r["name"] == "sequences"] == ["3 sequences"]
    parts = copied.of(lambda: children(known.find(named[-1]["variablesReference"]), known))
    assert [r["type"].partition(",")[0] for r in parts] == ["float32[3", "float32[0", f"float32[{ROWS - 3}"]
