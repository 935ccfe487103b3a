"""Native code that serves bindings of many sizes: the bits of numpy, from the first run of a size on."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.runtime import native_calls, wait_for_native_code
from fluidnb.runtime.native import segment_code, sized_code
from fluidnb.runtime.native.sized_code import polynomial
from tests.runtime.sized_networks import NETWORKS, L, Network, drawn

#: The first six make a template, four more are compared, and what is compiled serves the last ones.
FIRST = (10, 11, 12, 40, 9, 17, *range(18, 36))
LAST = (36, 13, 38, 14, 39, 15)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_code, "OFTEN", 2)


def trained(network: Network, native: str) -> tuple[list[bytes], list[int]]:
    """The losses of a training with the parameters behind it, and the calls that native code replaced at the end."""
    flags.values["native"] = native
    with fluid.fresh():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 3
        loss, feed = network()
        fluid.optimizer.SGD(1e-2).minimize(loss)
        exe, r = fluid.Executor(), np.random.RandomState(0)
        exe.run(fluid.default_startup_program())
        out, replaced = [], []
        for n in FIRST:
            out.append(exe.run(feed=feed(n, r), fetch_list=[loss])[0].tobytes())
        assert wait_for_native_code(120)
        for n in LAST:
            out.append(exe.run(feed=feed(n, r), fetch_list=[loss])[0].tobytes())
            replaced.append(sum(call.replaced for call in native_calls(fluid.default_main_program())))
        names = [p.name for p in fluid.default_main_program().all_parameters()]
        out += [np.array(fluid.global_scope().find_var(n).get_tensor()).tobytes() for n in names]
    return out, replaced


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    got, replaced = trained(NETWORKS[name], "auto")
    assert got == trained(NETWORKS[name], "off")[0]
    assert min(replaced) >= {"recurrent": 1, "guarded": 4}.get(name, 10), "at the first run of each size"


@pytest.mark.parametrize("lod", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_networks(seed: int, lod: bool) -> None:
    got, replaced = trained(drawn(seed, lod), "auto")
    assert got == trained(drawn(seed, lod), "off")[0]
    assert min(replaced) > 0



def test_a_wider_template_is_compiled_anew() -> None:
    flags.values["native"] = "auto"
    x = L.data("x", [24])
    out = L.softmax(L.tanh(L.scale(x, 2.0)))
    exe = fluid.Executor()

    def run(n: int) -> None:
        given = np.linspace(-1, 1, 24 * n, dtype="float32").reshape(n, 24)
        flags.values["native"] = "auto"
        (got,) = exe.run(feed={"x": given}, fetch_list=[out])
        flags.values["native"] = "off"
        np.testing.assert_array_equal(got, exe.run(feed={"x": given}, fetch_list=[out])[0])

    for n in (*FIRST, 200, *range(41, 80)):
        run(n)
        wait_for_native_code()
    flags.values["native"] = "auto"
    run(150)
    assert native_calls(fluid.default_main_program())


def test_the_flag_and_observers_see_numpys_calls() -> None:
    flags.values["native"] = "auto"
    x = L.data("x", [24])
    out = L.softmax(L.tanh(L.scale(x, 2.0)))
    exe = fluid.Executor()
    for n in FIRST:
        exe.run(feed={"x": np.ones((n, 24), "f")}, fetch_list=[out])
    wait_for_native_code()
    given = np.full((37, 24), np.inf, "f")
    with np.errstate(all="raise"):
        (got,) = exe.run(feed={"x": given}, fetch_list=[out])
    assert native_calls(fluid.default_main_program())
    flags.values["native"] = "off"
    np.testing.assert_array_equal(exe.run(feed={"x": given}, fetch_list=[out])[0], got)
    interpreted = exe.interpret(feed={"x": given}, fetch_list=[out]).run().fetch()[0]
    np.testing.assert_array_equal(interpreted, got)


@given(
    st.integers(-20, 20), st.integers(-99, 99), st.integers(-(10**6), 1 << 48),
    st.lists(st.integers(2, 5000), min_size=4, max_size=6, unique=True), st.integers(2, 5000),
)  # fmt: skip
def test_polynomials(a: int, b: int, c: int, sizes: list[int], size: int) -> None:
    def at(n: int) -> int:
        return a * n * n + b * n + c

    assert polynomial([at(n) for n in sizes], sizes).at(size) == at(size)


@pytest.mark.parametrize("values", [[1, 8, 27, 64], [0, 1, 3, 7], [1, 2, 4, 7 + (1 << 40)]], ids=str)
def test_other_numbers_are_refused(values: Any) -> None:
    with pytest.raises(sized_code.Differs):
        polynomial(values, [1, 2, 3, 4])
    assert polynomial([0, 1, 3, 6], [1, 2, 3, 4]).at(9) == int(Fraction(9 * 8, 2))
