"""Products of matrices in C: against float64, with any number of threads, and in programs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import layers
from fluidnb.memory import flags
from fluidnb.runtime import native_calls
from fluidnb.runtime.native import matrix_products
from fluidnb.runtime.native.matrix_products import Products
from fluidnb.runtime.native.segment_code import Calls

FOUND = matrix_products.products
pytestmark = pytest.mark.skipif(FOUND() is None, reason="needs a processor with AVX-512, and OpenBLAS in numpy")
NUMBER = ctypes.CFUNCTYPE(ctypes.c_int)


@pytest.fixture(autouse=True)
def used(separate: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compiled at once, with products."""
    monkeypatch.setattr(matrix_products, "products", FOUND)
    flags.values["native"] = "require"
    yield


@pytest.fixture
def all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products too."""
    monkeypatch.setattr(matrix_products, "_pays", lambda product: True)


def made(threads: int) -> Products:
    """Products that some threads compute."""
    number = NUMBER(lambda: threads)
    found = Products(number)
    found.decide()
    return found


ONE, TWO, SEVEN = NUMBER(lambda: 1), NUMBER(lambda: 2), NUMBER(lambda: 7)


def multiply(x: Any, y: Any, out: Any, threads: Any = TWO) -> Any:
    """The product by C."""
    found = Products(threads)
    found.decide()
    calls, report = found.replace(Calls([(np.matmul, (x, y, out))], [None], [None]), dict)
    assert len(report) == 1
    out[...] = np.nan
    for function, args in calls.calls:
        function(*args)
    return out


def drawn(shape: tuple[int, ...], layout: str, r: Any) -> Any:
    """An array, transposed in memory, or part of a larger one."""
    if layout == "turned":
        return np.swapaxes(r.randn(*shape[:-2], shape[-1], shape[-2]).astype("float32"), -1, -2)
    if layout == "part":
        return r.randn(*shape[:-1], shape[-1] + 3).astype("float32")[..., 1:-2]
    if layout == "sparse":
        return r.randn(*shape[:-1], 2 * shape[-1]).astype("float32")[..., ::2]
    return r.randn(*shape).astype("float32")


LAYOUTS = st.sampled_from(["dense", "turned", "part", "sparse"])
SIZE = st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 100, 200, 400, 500, 1025]))


@pytest.mark.usefixtures("all_sizes")
@settings(max_examples=200, deadline=None)
@given(SIZE, SIZE, SIZE, LAYOUTS, LAYOUTS, st.sampled_from([(), (1,), (3,)]), st.booleans())
@example(14, 384, 32, "dense", "dense", (), False)
@example(15, 385, 33, "turned", "turned", (), False)
@example(197, 769, 513, "dense", "turned", (), False)
@example(20, 3000, 25, "dense", "turned", (), False)
@example(32, 143, 5, "part", "turned", (2,), True)
@example(64, 800, 70, "dense", "dense", (), False)
@example(64, 40, 2000, "dense", "dense", (), False)
def test_like_float64(
    m: int, k: int, n: int, left: str, right: str, batch: tuple[int, ...], shared: bool
) -> None:
    r = np.random.RandomState(m + 7 * k + 31 * n)
    x = drawn((*(() if shared else batch), m, k), left, r)
    y = drawn((*batch, k, n), right, r)
    out = np.empty((*batch, m, n + 2), "float32")[..., :n]
    got = multiply(x, y, out)
    wanted = x.astype("float64") @ y.astype("float64")
    bound = np.abs(x).astype("float64") @ np.abs(y).astype("float64") * (k + 8) * 2.0**-24
    assert (np.abs(got - wanted) <= bound).all()


@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize(("m", "k", "n"), [(500, 300, 700), (10000, 64, 48), (30, 30000, 31), (3, 7000, 3000)])
@pytest.mark.parametrize("batch", [(), (2,), (9,)])
def test_threads_change_no_bits(m: int, k: int, n: int, batch: tuple[int, ...]) -> None:
    r = np.random.RandomState(0)
    x, y = r.randn(*batch, m, k).astype("float32"), np.swapaxes(r.randn(*batch, n, k).astype("float32"), -1, -2)
    one = multiply(x, y, np.empty((*batch, m, n), "float32"), ONE)
    for threads in (TWO, SEVEN):
        assert np.array_equal(multiply(x, y, np.empty((*batch, m, n), "float32"), threads), one)


@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize(("m", "k", "n"), [(20, 333, 25), (64, 333, 100)])
def test_what_is_not_finite_stays_where_it_is(m: int, k: int, n: int) -> None:
    r = np.random.RandomState(0)
    x, y = r.rand(m, k).astype("float32") + 1, r.rand(n, k).astype("float32").T + 1
    x[3, 330], x[5, 10], y[7, 2], y[331, 4] = np.inf, np.nan, -np.inf, np.inf
    got = multiply(x, y, np.empty((m, n), "float32"))
    with np.errstate(invalid="ignore"):
        wanted = x.astype("float64") @ y.astype("float64")
    assert np.array_equal(np.isnan(got), np.isnan(wanted)) and np.array_equal(np.isinf(got), np.isinf(wanted))
    assert np.isnan(got[5]).all() and np.isposinf(got[3, 0]) and np.isneginf(got[0, 2])


def test_several_threads_of_a_program_at_once() -> None:
    r = np.random.RandomState(0)
    x, y = r.randn(500, 200).astype("float32"), r.randn(200, 900).astype("float32")
    one = multiply(x, y, np.empty((500, 900), "float32"), ONE)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            if not np.array_equal(multiply(x, y, np.empty((500, 900), "float32"), SEVEN), one):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_its_own_threads() -> None:
    r = np.random.RandomState(0)
    x, y = r.randn(500, 200).astype("float32"), r.randn(200, 900).astype("float32")
    one = multiply(x, y, np.empty((500, 900), "float32"), SEVEN)
    child = os.fork()
    if child == 0:
        same = np.array_equal(multiply(x, y, np.empty((500, 900), "float32"), SEVEN), one)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def perceptron() -> tuple[Any, dict[str, Any]]:
    """A network with large products, and a feed."""
    x = layers.data("x", [300])
    h = layers.fc(layers.fc(x, 200, act="relu"), 150, act="tanh")
    loss = layers.mean(layers.square(h))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss, {"x": np.random.RandomState(1).randn(64, 300).astype("float32")}


def trained(native: str, steps: int = 6) -> list[Any]:
    """The losses of a training."""
    flags.values["native"] = native
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 3
        loss, feed = perceptron()
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        losses = [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(steps)]
        found = native_calls(fluid.default_main_program())
    products = [call.ops[0].desc.optype for call in found if "product" in call.text]
    assert products == ([] if native == "off" else ["mul", "mul", "mul_grad", "mul_grad", "mul_grad"])
    return losses


def test_training() -> None:
    by_numpy, native = trained("off"), trained("require")
    np.testing.assert_allclose(native, by_numpy, 1e-5)
    assert np.array_equal(native, trained("require"))


@pytest.mark.parametrize("watched", [False, True])
def test_a_walk_has_the_bits_of_a_run(watched: bool) -> None:
    fluid.default_startup_program().random_seed = 3
    loss, feed = perceptron()
    exe, names = fluid.Executor(), [p.name for p in fluid.default_main_program().all_parameters()]
    exe.run(fluid.default_startup_program())
    before = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    flags.values["check_nan_inf"] = watched
    try:
        (run,) = exe.run(feed=feed, fetch_list=[loss])
    finally:
        flags.values["check_nan_inf"] = False
    after = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    for name, value in before.items():
        fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
    with fluid.debug(fluid.default_main_program()) as d:
        (walked,) = exe.run(feed=feed, fetch_list=[loss])
    d.close()
    assert np.array_equal(walked, run)
    for name in names:
        assert np.array_equal(np.array(fluid.global_scope().find_var(name).get_tensor()), after[name])


def test_a_product_that_numpy_computes_transposed_needs_no_copy() -> None:
    """With AVX-512 the kernel of mul turns a product by a transposed matrix."""
    loss, feed = perceptron()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=[loss])
    found = native_calls(fluid.default_main_program())
    assert [call.replaced for call in found if "product" in call.text].count(2) == 1  # of x@GRAD of the second layer


def test_a_large_feed_is_read_where_it_is() -> None:
    x = layers.data("x", [600])
    out = layers.matmul(x, layers.fill_constant([600, 200], "float32", 0.5))
    exe, fed = fluid.Executor(), np.random.RandomState(0).rand(3000, 600).astype("float32")
    for _ in range(3):
        (got,) = exe.run(feed={"x": fed}, fetch_list=[out])
        np.testing.assert_allclose(got, np.repeat(fed.sum(1, keepdims=True) / 2, 200, 1), 1e-5)
        fed = fed + 1


PROGRAM = """
import fluidnb as fluid
from fluidnb.runtime import native_calls, wait_for_native_code
from fluidnb.runtime.native import segment_code
from tests.runtime.native.test_matrix_products import perceptron
segment_code.LONG = 0.0
fluid.default_startup_program().random_seed = 3
loss, feed = perceptron()
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
losses = []
for _ in range(40):
    losses.append(exe.run(feed=feed, fetch_list=[loss])[0].tobytes().hex())
    assert wait_for_native_code(120)
print(sum("product" in call.text for call in native_calls(fluid.default_main_program())), *losses)
"""


def process(cache: Path, **more: str) -> list[str]:
    """The output of a new process: the number of products in C, and the losses in hexadecimal digits."""
    env = {**os.environ, "FLUIDNB_CACHE": str(cache), "FLAGS_native": "auto", **more}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_auto_has_them_from_the_first_run_on_or_never(tmp_path: Path) -> None:
    """The first process compiles them for later ones, and its numbers are numpy's to the end."""
    first, second, third = (process(tmp_path) for _ in range(3))
    by_numpy = process(tmp_path, FLAGS_native="off")
    assert first[0] == "0" and first == by_numpy
    assert second[0] == "5" and second == third and second != first


@pytest.mark.parametrize("fault", ["a file", "of others", "no library"])
def test_auto_computes_with_numpy_where_the_cache_cannot_be_used(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_numpy, cache = trained("off"), tmp_path / "cache"
    if fault == "a file":
        cache.write_text("")
    elif fault == "of others":
        cache.mkdir()
        cache.chmod(0o777)
    else:
        wrong = tmp_path / "wrong.so"
        wrong.write_text("no library")
        monkeypatch.setattr(matrix_products, "kept_library", lambda *_: wrong)
    monkeypatch.setenv("FLUIDNB_CACHE", str(cache))
    fresh = Products(TWO)
    monkeypatch.setattr(matrix_products, "products", lambda: fresh)
    flags.values["native"] = "auto"
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 3
        loss, feed = perceptron()
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        assert np.array_equal([exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(6)], by_numpy)
    assert not fresh.ready


SHAPES: list[Callable[[], Any]] = [
    lambda: (np.ones((64, 64), "float64"), np.ones((64, 64), "float64"), np.ones((64, 64), "float64")),
    lambda: (np.ones((64, 64), "float32"), np.ones(64, "float32"), np.ones(64, "float32")),
    lambda: (np.ones((2, 3, 64, 64), "f")[:, ::2], np.ones((64, 64), "f"), np.ones((2, 3, 64, 64), "f")[:, ::2]),
    lambda: (np.ones((64, 64), "float32"), np.ones((64, 64), "float32"), np.ones((64, 64), "float32").T),
]


@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize("arrays", SHAPES)
def test_what_is_left_to_numpy(arrays: Callable[[], Any]) -> None:
    calls = Calls([(np.matmul, arrays())], [None], [None])
    assert made(2).replace(calls, dict) == (calls, [])


@pytest.mark.usefixtures("all_sizes")
def test_an_operand_that_is_overwritten_is_left_to_numpy() -> None:
    x = np.random.RandomState(0).rand(64, 64).astype("float32")
    calls = Calls([(np.matmul, (x, x, x))], [None], [None])
    assert made(2).replace(calls, dict) == (calls, [])
