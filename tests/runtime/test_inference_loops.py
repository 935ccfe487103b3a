"""Inference models of programs with loops, branches and recurrent networks: saved and loaded, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.passes.lint import lint
from fluidnb.program.sub_blocks import own_blocks
from tests.paddle.programs_control_flow import PROGRAMS, SHAPE

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
X = np.linspace(-1, 1, SHAPE[0] * SHAPE[1], dtype="float32").reshape(SHAPE)


def fetched(program: fluid.Program, targets: list[Any], scope: fluid.Scope, **feed: Any) -> list[bytes]:
    """The bytes of the targets; the same by both walkers."""
    runs = [
        EXE.run(program, feed=feed, fetch_list=targets, scope=scope, return_numpy=False, keep_scopes=machine)
        for machine in (False, True, False)
    ]
    scope.drop_kids()
    got = [[np.array(t).tobytes() for t in run] for run in runs]
    assert got[0] == got[1] == got[2]
    return got[0]


def loaded(folder: Path, **feed: Any) -> tuple[fluid.Program, list[bytes]]:
    """An inference model from its files, and what it computes."""
    with fluid.scope_guard(fluid.Scope()) as _:
        program, names, targets = fluid.io.load_inference_model(str(folder), EXE)
        assert lint(program) == [] and set(names) == set(feed)
        return program, fetched(program, targets, fluid.global_scope(), **feed)


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_saved_in_the_middle_of_training(build: Callable[[], Any], tmp_path: Path) -> None:
    out = build()
    fluid.optimizer.SGD(0.1).minimize(L.mean(L.square(out)))
    main = fluid.default_main_program()
    EXE.run(fluid.default_startup_program())
    for _ in range(2):
        EXE.run(feed={"x": X})
    before = main.desc.serialize_to_string()
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], EXE)
    assert main.desc.serialize_to_string() == before
    want = fetched(fluid.io.get_inference_program(out), [out.name], fluid.global_scope(), x=X)
    program, got = loaded(tmp_path, x=X)
    assert got == want
    types = [op.type for block in program.blocks for op in block.ops]
    assert not [t for t in types if t.endswith("_grad") or t == "sgd"]
    run = [i for block in program.blocks for op in block.ops for i in own_blocks(op.desc)]
    assert sorted(run) == list(range(1, len(program.blocks)))
    tests = [op for b in program.blocks for op in b.ops if op.desc.has_attr("is_test")]
    assert all(op.attr("is_test") for op in tests)
    saved = {p.name for p in tmp_path.iterdir()} - {"__model__"}
    assert saved == {v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")}


def test_after_memory_optimize(tmp_path: Path) -> None:
    for build in PROGRAMS:
        main, startup, folder = fluid.Program(), fluid.Program(), tmp_path / build.__name__
        with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            out = build()
            fluid.optimizer.SGD(0.1).minimize(L.mean(L.square(out)))
            EXE.run(startup)
            want = fetched(fluid.io.get_inference_program(out), [out.name], fluid.global_scope(), x=X)
            fluid.memory_optimize(main, skip_opt_set=[out])
            fluid.io.save_inference_model(str(folder), ["x"], [out], EXE, main)
        program, got = loaded(folder, x=X)
        assert got == want
        assert not [op for block in program.blocks for op in block.ops if op.type == "delete_var"]


def test_a_loaded_model_can_be_rewritten(tmp_path: Path) -> None:
    for build in PROGRAMS:
        folder = tmp_path / build.__name__
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            out = build()
            EXE.run(fluid.default_startup_program())
            fluid.io.save_inference_model(str(folder), ["x"], [out], EXE)
        _, want = loaded(folder, x=X)
        with fluid.scope_guard(fluid.Scope()):
            program, _, targets = fluid.io.load_inference_model(str(folder), EXE)
            fluid.memory_optimize(program)
            assert any(op.type == "delete_var" for block in program.blocks for op in block.ops)
            assert fetched(program, targets, fluid.global_scope(), x=X) == want
            assert EXE.run(program, feed={"x": X}, return_numpy=False)  # by its own fetch operators


def test_a_target_that_memory_optimize_has_dropped_is_refused(tmp_path: Path) -> None:
    out = L.fc(L.data("x", [4]), 2)
    loss = L.mean(out)
    EXE.run(fluid.default_startup_program())
    fluid.memory_optimize(fluid.default_main_program())
    for export in (True, False):
        with pytest.raises(EnforceNotMet, match=r"is a target, but op .* drops it.*") as error:
            fluid.io.save_inference_model(str(tmp_path), ["x"], [out], EXE, export_for_deployment=export)
        assert f'skip_opt_set=["{out.name}"]' in str(error.value) and not list(tmp_path.iterdir())
    with pytest.raises(EnforceNotMet, match="is wanted, but"):
        fluid.default_main_program().prune(out)
    with pytest.raises(EnforceNotMet, match="is wanted, but"):
        fluid.io.get_inference_program(out)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [loss], EXE)


def test_data_that_only_a_block_reads_must_be_fed(tmp_path: Path) -> None:
    x, step, count = L.data("x", [4]), L.data("step", [4]), L.data("count", [1], False, "int64")
    total, i = L.scale(x, scale=1.0), L.zeros([1], "int64")
    more = L.less_than(i, count)
    with L.While(more).block():
        L.sums([total, step], out=total)
        L.increment(i)
        L.less_than(i, count, cond=more)
    op = fluid.default_main_program().desc.block(0).ops[-1]
    op.set_input("X", [n for n in op.input("X") if n != "step"])  # as in programs that list less
    with pytest.raises(OpValueError, match="it also needs step"):
        fluid.io.save_inference_model(str(tmp_path), ["x", "count"], [total], EXE)
    fluid.io.save_inference_model(str(tmp_path), ["x", "count", "step"], [total], EXE)
    feed = {"x": np.ones((2, 4), "float32"), "step": np.full((2, 4), 2.0, "float32")}
    for n in (3, 0, 5):
        _, (got,) = loaded(tmp_path, count=np.array([n]), **feed)
        assert np.frombuffer(got, "float32").tolist() == [1 + 2 * n] * 8


def test_what_computes_a_fed_variable_is_left_out(tmp_path: Path) -> None:
    x, i = L.data("x", [4]), L.zeros([1], "int64")
    hidden = L.scale(x, scale=1.0)
    more = L.less_than(i, L.fill_constant([1], "int64", 3))
    with L.While(more).block():
        L.sums([hidden, x], out=hidden)
        L.increment(i)
        L.less_than(i, L.fill_constant([1], "int64", 3), cond=more)
    out = L.scale(hidden, scale=2.0)
    fluid.io.save_inference_model(str(tmp_path), [hidden.name], [out], EXE)
    program, (got,) = loaded(tmp_path, **{hidden.name: np.ones((1, 4), "float32")})
    assert [op.type for op in program.global_block().ops] == ["feed", "scale", "fetch"] and program.num_blocks == 1
    assert np.frombuffer(got, "float32").tolist() == [2.0] * 4
