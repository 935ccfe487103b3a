"""Bindings for sizes between those that were bound: the same bits as when every size is bound by the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.memory import flags
from fluidnb.op import Attr, op
from fluidnb.op.binder import Binder
from fluidnb.op.define import remove_op
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.runtime.native.sized_code import Differs
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay import size_templates
from fluidnb.runtime.replay.size_template import SizeTemplate
from fluidnb.runtime.replay.size_templates import SizeTemplates
from fluidnb.runtime.replay.sized_values import linear
from fluidnb.values import LoDTensor
from fluidnb_kernels.math import matmul
from tests.ops.goldens import cases
from tests.runtime.sized_networks import NETWORKS, SIZES, L, Network, drawn

CASES = {case.id: case for case in cases()}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that were given up."""
    plans: list[Any] = []
    drop = SizeTemplates.drop

    def noted(self: SizeTemplates, plan: Any) -> None:
        plans.append(plan)
        drop(self, plan)

    monkeypatch.setattr(SizeTemplates, "drop", noted)
    return plans


def found(program: Any = None) -> list[SizeTemplate]:
    """The templates of a program."""
    desc = (program or fluid.default_main_program()).desc
    every = [one.templates for one in program_state(desc).lowered_programs.values()]
    return [template for one in every if one is not None for template in one.found]


def trained(network: Network, sizes: Any = SIZES) -> tuple[list[bytes], int]:
    """The losses of a training with the parameters behind it, and how many templates there were."""
    with fluid.fresh():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 3
        loss, feed = network()
        fluid.optimizer.Adam(1e-2).minimize(loss)
        exe, r = Executor(), np.random.RandomState(0)
        exe.run(fluid.default_startup_program())
        results = [exe.run(feed=feed(n, r), fetch_list=[loss])[0].tobytes() for n in sizes]
        names = [p.name for p in fluid.default_main_program().all_parameters()]
        results += [np.array(fluid.global_scope().find_var(n).get_tensor()).tobytes() for n in names]
        return results, len(found())


def bound_anew(network: Network, monkeypatch: pytest.MonkeyPatch, sizes: Any = SIZES) -> list[bytes]:
    """The same with every size bound by the kernels."""
    with monkeypatch.context() as patch:
        patch.setattr(size_templates, "_FAILURES", 0)
        results, templates = trained(network, sizes)
    assert templates == 0
    return results


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_train_to_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flags.values, "native", "off")
    assert trained(NETWORKS[name]) == (bound_anew(NETWORKS[name], monkeypatch), 1)


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_train_to_the_same_bits(
    seed: int, monkeypatch: pytest.MonkeyPatch, dropped: list[Any]
) -> None:
    monkeypatch.setitem(flags.values, "native", "off")
    assert trained(drawn(seed)) == (bound_anew(drawn(seed), monkeypatch), 1)
    assert not dropped


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_over_sequences_train_to_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The LoDs of two feeds are the same in most batches."""
    monkeypatch.setitem(flags.values, "native", "off")
    results, templates = trained(drawn(seed, lod=True), [n + 3 for n in SIZES])
    assert results == bound_anew(drawn(seed, lod=True), monkeypatch, [n + 3 for n in SIZES]) and templates < 3


def resized(array: np.ndarray, size: int, count: int) -> np.ndarray:
    """An array whose dimensions of a size have another one; its rows come again."""
    for axis, n in enumerate(array.shape):
        if n == size:
            array = np.take(array, np.arange(count) % size, axis)
    return np.ascontiguousarray(array)


@pytest.mark.parametrize("id", CASES)
def test_recorded_programs_in_other_sizes(id: str) -> None:
    """Each program that real Paddle has run, with each of its sizes changed: as the interpreter, which binds anew."""
    case = CASES[id]
    if any(tensor.lod() for tensor in case.feed().values()):
        return  # sizes and lengths change together
    feed = {name: np.asarray(tensor) for name, tensor in case.feed().items()}
    names = [row["var"] for row in case.fetches]
    for size in sorted({n for array in feed.values() for n in array.shape if n > 1}):
        program, scope, exe = Program.parse_from_string(case.program), Scope(), Executor()
        try:
            for count in (2, 13, 4, 5, 12, 3, 7, 11):
                given = {name: resized(array, size, count) for name, array in feed.items()}
                rows = [
                    exe.run(program, given, names, scope=scope, return_numpy=False, keep_scopes=keep)
                    for keep in (False, True)
                ]
                for name, *pair in zip(names, *rows, strict=True):
                    if all(isinstance(value, LoDTensor) for value in pair):
                        compiled, interpreted = map(np.asarray, pair)
                        assert compiled.dtype == interpreted.dtype, (name, size, count)
                        np.testing.assert_array_equal(compiled, interpreted, f"{name}, {size} as {count}")
        except FluidError:
            continue  # the program needs this size


def test_kernels_are_not_called_for_a_size_between(bound: Counter[str]) -> None:
    loss, feed = NETWORKS["attention"]()
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, r = Executor(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program())
    for n in (9, 4, 12, 20, 6, 30):  # the first three as ever, then three that are compared
        exe.run(feed=feed(n, r), fetch_list=[loss])
    (template,) = found()
    assert (template.low, template.high) == (6, 30)
    bound.clear()
    for n in range(7, 30):
        exe.run(feed=feed(n, r), fetch_list=[loss])
    assert not bound
    exe.run(feed=feed(60, r), fetch_list=[loss])
    assert bound.total() > 100, "much larger than all before"
    for n, ends in ((5, (6, 60)), (61, (6, 60)), (62, (6, 60)), (63, (6, 63)), (1, (6, 63)), (2, (2, 63))):
        bound.clear()
        exe.run(feed=feed(n, r), fetch_list=[loss])
        assert bound["matmul"] == 4
        assert [(one.low, one.high) for one in found()] == [ends], f"{n}: one row is another case than several"


def test_one_arena_serves_all_sizes() -> None:
    loss, feed = NETWORKS["clicks"]()
    exe, r = Executor(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program())
    for n in (4, 5, 3, 200, 100, *range(20, 50)):
        exe.run(feed=feed(n, r), fetch_list=[loss])
    (one,) = [each for each in program_state(fluid.default_main_program().desc).lowered_programs.values()]
    (template,) = found()
    assert template.arena is not None and one.nbytes < one.bytes + 4 * template.arena.nbytes


def test_a_choice_by_a_range_of_sizes_is_made_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """mul_grad takes other calls for some numbers of rows than for fewer and for more."""
    monkeypatch.setattr(matmul, "_WIDE", True)
    monkeypatch.setattr(matmul, "_ROWS", range(20, 30))
    monkeypatch.setattr(matmul, "_ELEMENTS", 0)
    monkeypatch.setattr(matmul, "_PRODUCTS", 0)

    def network() -> Any:
        h = L.data("x", [16])
        for width in (12, 10, 16):
            h = L.fc(h, width, act="tanh")
        return L.mean(h), lambda n, r: {"x": r.rand(n, 16).astype("f")}

    sizes = (5, 6, 8, 4, 40, 33, 7, 25, 29, 30, 19, 20, 9)
    assert trained(network, sizes) == (bound_anew(network, monkeypatch, sizes), 1)
    loss, feed = network()
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, r = Executor(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program())
    for n in sizes:
        exe.run(feed=feed(n, r), fetch_list=[loss])
    (template,) = found()
    decisions = [row.decisions for row in template.ops if row.op.desc.optype == "mul_grad"]
    assert len(decisions) == 3 and all(decisions), "they are part of the template"


@pytest.fixture
def odd_sizes() -> Iterator[None]:
    """An operator whose output is a view of its input for some sizes, and a copy for others."""

    @op("odd_copy", inputs={"X": "float"}, outputs={"Out": "the same"}, attrs={"at": Attr("int", 7, "size")})
    def odd_copy(b: Binder) -> None:
        """A copy, except for one size."""
        x = b["X"]
        if x.shape[0] == b.attr("at"):
            b.alias("Out", x)
        else:
            out = b.set("Out", x.shape, x.dtype)
            b(lambda source, target: np.copyto(target, source), x, out)

    yield
    remove_op("odd_copy")


def test_a_kernel_that_does_something_unexpected_is_bound_from_the_start(odd_sizes: None, dropped: list[Any]) -> None:
    x = L.data("x", [4])
    block = fluid.default_main_program().global_block()
    h = L.scale(x, 2.0)
    out = block.create_var(name="out", dtype="float32", shape=[-1, 4])
    block.append_op(type="odd_copy", inputs={"X": h}, outputs={"Out": out}, attrs={"at": 7})
    y = L.relu(out)
    z = L.elementwise_add(L.scale(y, 3.0), h)
    exe = Executor()
    for n in (3, 4, 5, 2, 20, 10, 6, 7, 8, 7):
        given = np.arange(4.0 * n, dtype="float32").reshape(n, 4) - 5
        (got,) = exe.run(feed={"x": given}, fetch_list=[z])
        np.testing.assert_array_equal(got, np.maximum(2 * given, 0) * 3 + 2 * given)
        assert len(dropped) == (n == 7 or bool(dropped)), n


def test_parameters_that_the_user_replaced() -> None:
    x = L.data("x", [3])
    y = L.fc(x, 3, bias_attr=False, param_attr=fluid.ParamAttr(name="w"))
    exe = Executor()
    exe.run(fluid.default_startup_program())
    for n in (3, 4, 5, 2, 20, 10):
        exe.run(feed={"x": np.ones((n, 3), "f")}, fetch_list=[y])
    assert len(found()) == 1
    for value in (2.0, 3.0):
        fluid.global_scope().erase(["w"])
        fluid.global_scope().var("w").get_tensor().set(np.full((3, 3), value, "f"), fluid.CPUPlace())
        for n in (11, 12):
            (got,) = exe.run(feed={"x": np.ones((n, 3), "f")}, fetch_list=[y])
            np.testing.assert_array_equal(got, np.full((n, 3), 3 * value))


def test_two_sizes_that_change_by_themselves_are_bound_each_time(bound: Counter[str]) -> None:
    x = L.data("x", [-1, -1, 4], append_batch_size=False)
    y = L.reduce_sum(L.tanh(x), dim=1)
    exe, r = Executor(), np.random.RandomState(0)
    for n in range(2, 14):
        given = r.rand(n, 30 - 2 * n, 4).astype("f")
        (got,) = exe.run(feed={"x": given}, fetch_list=[y])
        np.testing.assert_array_equal(got, np.tanh(given).sum(1))
    assert not found() and bound["tanh"] == 12


def test_numbers_that_grow_linearly() -> None:
    assert linear([3, 5, 11], [1, 2, 5]).at(10) == 21
    assert linear([7, 7, 7], [1, 2, 5]).at(10) == 7
    for values in ([1, 4, 25], [0, 1, 2], [2, 3, 5]):
        with pytest.raises(Differs):
            linear(values, [1, 2, 5] if values != [0, 1, 2] else [1, 3, 5])
