"""On a device the buffers of a plan are placed in one arena per block, as they are on the host."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers, memory, viz
from fluidnb.backward import append_backward
from fluidnb.memory import flags, root
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay.buffer_placement import _Mover
from fluidnb.runtime.replay.segment import Segment
from fluidnb.values import DeviceContext, LoDTensor, VarType
from fluidnb.values.copies import is_on_device
from fluidnb.viz.memory.model import MemoryPicture
from fluidnb.viz.memory.reader import _arrays
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device.context import CUDADeviceContext
from tests.fuzz.nests import Nest, feed, weights
from tests.ops.goldens import Case, cases
from tests.tools.sampling import SEED, sample
from tests.transpiler.test_any_program import Maker
from tests.viz import memory_models

CASES = {case.id: case for case in cases()}
MODELS = ["lenet", "lstm", "views", "recurrent", "small"]


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill new memory with NaN and 0xAA."""
    monkeypatch.setitem(flags.values, "init_allocated_mem", True)


def plan_of(program: fluid.Program) -> LoweredProgram:
    """The plan of a program's last run."""
    plan: LoweredProgram = program_state(program.desc).recent[-1]
    return plan


def nodes(plan: LoweredProgram) -> Iterator[Segment]:
    """The bound segments."""
    left = [e.root for e in plan.specializations.values()] + list(plan.bodies.values())
    while left:
        node = left.pop()
        left += node.next.values()
        yield node


def strangers(plan: LoweredProgram) -> list[str]:
    """Device arrays outside of the pool, in calls and in variables."""
    found = []
    for node in nodes(plan):
        held = [("a call", x) for function, args in node.calls for x in _arrays(function, args)]
        held += [(n, v.value.array) for n, v in node.scope.vars.items() if type(v.value) is LoDTensor]
        found += [name for name, x in held if is_on_device(x) and memory.owner(x) is None]
    return found


def used(place: Any) -> int:
    """Number of bytes in use."""
    gc.collect()
    return memory.used(place)


def ran(model: str, place: Any) -> tuple[MemoryPicture, float]:
    """The memory of a model after three steps, and the loss."""
    with fluid.fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        fed, loss = getattr(memory_models, model)()
        main.random_seed = startup.random_seed = 7
        exe = fluid.Executor(place)
        exe.run(startup)
        for _ in range(3):
            (value,) = exe.run(main, feed=fed, fetch_list=[loss])
        assert strangers(plan_of(main)) == []
        return viz.read_memory(main), float(value.reshape(-1)[0])


# ---- numbers


def through_the_arena(case: Case) -> tuple[fluid.Program, list[str]]:
    """A recorded program with copies of its feeds and fetches around it, and the names to fetch."""
    program = fluid.Program.parse_from_string(case.program)
    block, names = program.global_block(), []
    inside = {row["var"]: row["var"] + ".inside" for row in case.feeds}
    for name, twin in inside.items():
        var = block.var(name)
        block.create_var(name=twin, dtype=var.dtype, shape=var.shape, lod_level=var.lod_level)
        for op in block.ops:
            op.rename_input(name, twin)
            op.rename_output(name, twin)
    for name, twin in inside.items():
        block._prepend_op(type="assign", inputs={"X": [name]}, outputs={"Out": [twin]})
    for row in case.fetches:
        name = inside.get(row["var"], row["var"])
        var = block.var(name)
        if var.type == VarType.LOD_TENSOR:
            block.create_var(name=name + ".outside", dtype=var.dtype, shape=var.shape)
            block.append_op(type="assign", inputs={"X": [name]}, outputs={"Out": [name + ".outside"]})
            name += ".outside"
        names.append(name)
    return program, names


@pytest.mark.parametrize("id", sample(list(CASES), 20))
def test_recorded_programs_run_in_the_arena(id: str, cuda: fluid.CUDAPlace, poisoned: None) -> None:
    case = CASES[id]
    program, names = through_the_arena(case)
    exe, scope = fluid.Executor(cuda), fluid.Scope()
    for _ in range(2):
        got = exe.run(program, feed=case.feed(cuda), fetch_list=names, scope=scope, return_numpy=False)
        for value, row in zip(got, case.fetches, strict=True):
            case.compare(value, row)
    assert strangers(plan_of(program)) == []


@pytest.mark.parametrize("number", sample(range(300), 8))
def test_buffers_that_share_bytes_hold_what_those_of_their_own_do(
    number: int, cuda: fluid.CUDAPlace, poisoned: None
) -> None:
    """Random programs, some of them with variables that are used again: every buffer of the machine is a new one."""
    rng = np.random.default_rng([SEED, number])
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    maker, main.random_seed, startup.random_seed = Maker(rng), 5, 5
    trained = bool(rng.random() < 0.7)
    loss = maker.make(int(rng.integers(4, 14)), trained)
    if trained:
        fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    names = [v.name for v in maker.values[1:] if rng.random() < 0.2] + [loss.name]
    if rng.random() < 0.5:
        fluid.memory_optimize(main, names)

    def run(place: Any, machine: bool = False) -> list[np.ndarray[Any, Any]]:
        exe, scope = fluid.Executor(place), fluid.Scope()
        exe.run(startup, scope=scope)
        out = []
        for rows in (3, 2, 5, 3):
            x = np.linspace(-1, 1, 4 * rows, dtype="float32").reshape(rows, 4)
            out += exe.run(main, feed={"x": x}, fetch_list=names, scope=scope, keep_scopes=machine)
        return out

    placed, apart, host = run(cuda), run(cuda, machine=True), run(fluid.CPUPlace())
    assert [x.tobytes() for x in placed] == [x.tobytes() for x in apart]
    for one, other in zip(placed, host, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("number", sample(range(300), 6))
def test_loops_and_branches_give_the_numbers_of_the_host(number: int, cuda: fluid.CUDAPlace, poisoned: None) -> None:
    rng = np.random.default_rng([SEED, number])
    nest = Nest(lambda n: int(rng.integers(n)), array_style=True)
    main, loss = nest.build()
    main.random_seed = 5
    fetch = [loss.name, *(g.name for _, g in append_backward(loss)), "x@GRAD"]
    held, feeds = weights(rng), [feed(rng) for _ in range(3)]
    got = []
    for place in (fluid.CPUPlace(), cuda):
        exe, scope = fluid.Executor(place), fluid.Scope()
        for name, array in held.items():
            scope.var(name).get_tensor().set(array, place)
        got.append([exe.run(main, feed=fed, fetch_list=fetch, scope=scope) for fed in (*feeds, feeds[0])])
    assert strangers(plan_of(main)) == []
    for host, device in zip(*got, strict=True):
        for one, other in zip(device, host, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_an_arena_that_was_too_small_serves_who_is_bound_to_it(cuda: fluid.CUDAPlace, poisoned: None) -> None:
    """The arena grows when segments behind the guard need more; segments and results bound before stay valid."""
    x, mask = layers.data("x", shape=[64]), layers.data("mask", shape=[1], dtype="bool")
    before = layers.scale(layers.tanh(layers.scale(x, scale=0.5)), scale=2.0)
    yes, no = layers.split_lod_tensor(before, mask)
    yes = layers.fc(layers.tanh(layers.scale(yes, scale=2.0)), 512, param_attr=fluid.ParamAttr(name="w"), act="tanh")
    out = layers.reduce_sum(layers.square(yes))
    exe, cpu = fluid.Executor(cuda), fluid.Executor(fluid.CPUPlace())
    scopes = [fluid.Scope(), fluid.Scope()]
    fluid.default_startup_program().random_seed = 3
    for e, scope in zip((cpu, exe), scopes, strict=True):
        e.run(fluid.default_startup_program(), scope=scope)
    values = np.linspace(-1, 1, 8 * 64, dtype="float32").reshape(8, 64)
    sizes = []
    for marked in (1, 4, 8, 1, 8, 4, 1):
        fed = {"x": values, "mask": np.arange(8).reshape(8, 1) < marked}
        want, got = (e.run(feed=fed, fetch_list=[out], scope=s)[0] for e, s in zip((cpu, exe), scopes, strict=True))
        np.testing.assert_allclose(got, want, rtol=1e-4)
        (entry,) = plan_of(fluid.default_main_program()).specializations.values()
        assert entry.scope is scopes[1]
        sizes.append(entry.bound.arenas[0].nbytes)
    assert sizes == sorted(sizes) and sizes[0] < sizes[1] < sizes[2]


# ---- memory


@pytest.mark.parametrize("model", MODELS)
def test_pictures_show_the_arenas_of_a_device(model: str, cuda: fluid.CUDAPlace) -> None:
    there, loss = ran(model, cuda)
    here, want = ran(model, fluid.CPUPlace())
    assert loss == pytest.approx(want, rel=1e-3)
    assert [(m.block, len(m.steps)) for m in there.maps] == [(m.block, len(m.steps)) for m in here.maps]
    for arena, on_host in zip(there.maps, here.maps, strict=True):
        names = {n for b in arena.buffers for n in b.names}
        assert names == {n for b in on_host.buffers for n in b.names}
        assert 0 < arena.peak <= arena.size
        for i, one in enumerate(arena.buffers):
            assert 0 <= one.offset and one.offset + one.size <= arena.size
            assert not any(one.meets(other) for other in arena.buffers[i + 1 :])
    assert there.maps[0].size < there.maps[0].unshared
    assert "arena" in {h.kind for h in there.holders}


def test_a_view_takes_no_memory_and_what_is_in_place_neither(cuda: fluid.CUDAPlace) -> None:
    h = layers.scale(layers.data("x", shape=[8]), scale=2.0)
    flat = layers.reshape(h, [-1])
    layers.relu(flat)
    again = layers.scale(layers.data("y", shape=[8]), scale=-2.0)
    block = fluid.default_main_program().global_block()
    block.append_op("relu", {"X": [again]}, {"Out": [again]})
    out = layers.elementwise_add(layers.reshape(flat, [-1, 8]), again)
    exe, x = fluid.Executor(cuda), np.linspace(-1, 1, 16, dtype="float32").reshape(2, 8)
    for sign in (1, -1):
        (got,) = exe.run(feed={"x": sign * x, "y": sign * x}, fetch_list=[out])
        np.testing.assert_allclose(got, sign * 2 * x + np.maximum(sign * -2 * x, 0), rtol=1e-6)
    scopes = [node.scope for node in nodes(plan_of(fluid.default_main_program()))]
    held = {name: v.value.array for scope in scopes for name, v in scope.vars.items()}
    assert held[flat.name].data.ptr == held[h.name].data.ptr
    buffers = viz.read_memory().maps[0].buffers
    assert sum(again.name in b.names for b in buffers) == 1
    assert [b.names for b in buffers if h.name in b.names][0][:2] == (h.name, flat.name)


def test_one_block_of_the_pool_holds_what_a_run_needs(cuda: fluid.CUDAPlace) -> None:
    out = layers.data("x", shape=[1024])
    for _ in range(20):
        out = layers.tanh(layers.scale(out, scale=1.1))
    out = layers.mean(out)
    before = used(cuda)
    exe, fed = fluid.Executor(cuda), {"x": np.ones((64, 1024), "float32")}
    exe.run(feed=fed, fetch_list=[out])
    taken = used(cuda) - before
    assert taken <= 3.2 * fed["x"].nbytes  # the feed, and two buffers that take turns
    for _ in range(3):
        exe.run(feed=fed, fetch_list=[out])
    assert used(cuda) - before == taken


# ---- stand-ins


def test_a_stand_in_is_refused_by_the_device(cuda: fluid.CUDAPlace) -> None:
    context = DeviceContext.get(cuda)
    sketch = context.sketch((4, 8), np.dtype("float32"))
    assert sketch.shape == (4, 8) and memory.owner(sketch) is None
    assert root(sketch[1:].T) is root(sketch) is not root(context.sketch((4, 8), np.dtype("float32")))
    for touch in (context.clear, context.to_host):
        with pytest.raises(RuntimeError, match="cudaErrorInvalidValue"):
            touch(sketch)


def test_arrays_of_cupy_are_moved_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    monkeypatch.setattr(backend, "cupy", lambda: cupy)
    context = object.__new__(CUDADeviceContext)
    context.place = fluid.CUDAPlace(0)
    sketch, arena = (context.sketch(shape, np.dtype("float32")) for shape in ((4, 8), (1000,)))
    owner = root(sketch)
    mover = _Mover(arena, {id(owner): 256}, type(sketch), {id(owner): (owner, sketch.nbytes)}, {})
    for view in (sketch, sketch[1:, 2:4], sketch.T, sketch.reshape(-1)[5:], sketch.view("int16"), sketch[:, ::-1]):
        moved = mover(view)
        assert type(moved) is cupy.ndarray and moved.data.mem is arena.data.mem
        assert (moved.shape, moved.dtype, moved.strides) == (view.shape, view.dtype, view.strides)
        assert moved.data.ptr - arena.data.ptr == 256 + view.data.ptr - sketch.data.ptr
        assert moved.flags.c_contiguous == view.flags.c_contiguous
    assert mover([sketch, (sketch, 3)])[1][0] is mover(sketch)
    assert mover(arena) is arena
