"""Random networks of convolutions, normalisations and activations have numpy's bits, in new memory that holds NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.runtime import native_calls, wait_for_native_code
from fluidnb.runtime.native import many_calls, segment_code
from fluidnb.runtime.native.many_calls import taken_apart
from fluidnb_kernels.one_call import OneCall
from tests.runtime.random_networks import network

#: Seeds, and those of networks in which one nest used memory that another had written.
SEEDS = (*range(24), 100019, 200043, 400001, 500141)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    fluid.set_flags({"FLAGS_init_allocated_mem": True})
    yield
    fluid.set_flags({"FLAGS_init_allocated_mem": False})


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks(seed: int) -> None:
    fluid.default_startup_program().random_seed = seed + 1
    fetches, feed = network(seed)
    exe, main = fluid.Executor(), fluid.default_main_program()
    fluid.set_flags({"FLAGS_native": "off"})
    exe.run(fluid.default_startup_program())
    kept = {p.name: np.array(fluid.fetch_var(p.name)) for p in main.list_vars() if p.persistable}

    def run() -> list[np.ndarray]:
        for name, value in kept.items():  # running moments move
            fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
        return exe.run(main, feed, fetches)  # type: ignore[no-any-return]

    wanted = run()
    fluid.set_flags({"FLAGS_native": "auto"})
    for _ in range(segment_code.OFTEN + 2):
        run()
    assert wait_for_native_code()
    for got, value in zip(run(), wanted, strict=True):
        np.testing.assert_array_equal(got, value)
    assert native_calls(main)


def test_no_buffer_of_an_array_that_is_gone() -> None:
    x, out = np.ones(3), np.empty(3)

    def apart(emit: Any, scratch: Any, a: Any, b: Any) -> None:
        used = scratch(a.shape, a.dtype)
        scratch(a.shape, a.dtype)  # which no call has
        emit(np.square, a, used)
        emit(np.sqrt, used, b)

    one = OneCall(lambda emit, a, b: emit(np.copyto, b, a), apart)
    calls, lives = taken_apart(segment_code.Calls([(one, (x, out))], [None], [None]), {})
    arrays = {id(array) for _, operands in calls.calls for array in operands}
    assert len(calls.calls) == 2 and lives.keys() <= arrays and len(lives) == 1
    assert many_calls.any_of(segment_code.Calls([(one, (x, out))], [None], [None]))
