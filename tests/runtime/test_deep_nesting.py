"""Fifty blocks inside each other: built, run, differentiated, printed and drawn far from Python's recursion limit."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import debugger, viz
from fluidnb.passes.diff import diff
from fluidnb.passes.lint import lint

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
DEPTH = 50
#: Frames that may be on Python's stack beside those of the test; a fresh interpreter allows 1000 in all.
MARGIN = 400
X = np.array([[1.0, 2.0]], "float32")


@contextmanager
def shallow(margin: int = MARGIN) -> Iterator[None]:
    """Inside, Python allows so many frames more than there are."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + margin)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def loop(count: int) -> Iterator[None]:
    """A while that runs so often."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", count)
    more = L.less_than(i, n)
    with L.While(more).block():
        yield
        L.increment(i)
        L.less_than(i, n, cond=more)


@contextmanager
def branch() -> Iterator[None]:
    """A branch that is taken."""
    holds = L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))
    with L.control_flow.ConditionalBlock([holds], is_scalar_condition=True).block():
        yield


def nested(kinds: str) -> tuple[Any, Any]:
    """total += x^2 in blocks inside each other: w is a while, W one of two iterations, b a branch. x and the loss."""
    x = L.data("x", [2], stop_gradient=False)
    total = L.scale(x, scale=0.0)
    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(branch() if kind == "b" else loop(2 if kind == "W" else 1))
        L.sums([total, L.square(x)], out=total)
    return x, L.mean(total)


@pytest.fixture(params=["w" * DEPTH, "b" * DEPTH, "wb" * (DEPTH // 2), "W" * 4 + "w" * (DEPTH - 4)])
def kinds(request: pytest.FixtureRequest) -> str:
    """The nested blocks."""
    return str(request.param)


def test_build_run_and_differentiate(kinds: str) -> None:
    runs = 2 ** kinds.count("W")
    with shallow():
        x, loss = nested(kinds)
        program = fluid.default_main_program()
        assert program.num_blocks == DEPTH + 1 and [b.parent_idx for b in program.blocks] == list(range(-1, DEPTH))
        for machine in (False, True, False):
            (value,) = EXE.run(feed={"x": X}, fetch_list=[loss], keep_scopes=machine)
            np.testing.assert_allclose(value, [runs * 2.5])
        fluid.append_backward(loss)
        assert program.num_blocks == 2 * DEPTH + 1
        for machine in (False, True, False):
            (gradient,) = EXE.run(feed={"x": X}, fetch_list=[x.grad], keep_scopes=machine)
            np.testing.assert_allclose(gradient, runs * X)
        fluid.global_scope().drop_kids()


def test_rewrite_print_and_draw(kinds: str, tmp_path: Path) -> None:
    x, loss = nested(kinds)
    before = fluid.default_main_program().clone()
    fluid.append_backward(loss)
    program = fluid.default_main_program()
    (want,) = EXE.run(feed={"x": X}, fetch_list=[x.grad])
    with shallow():
        assert lint(program) == []
        assert program.clone().desc.serialize_to_string() == program.desc.serialize_to_string()
        assert program.prune(loss).num_blocks == DEPTH + 1
        assert program.prune(x.grad).num_blocks == 2 * DEPTH + 1
        assert "block" in str(diff(before, program)) and str(program).count("blocks {") == 2 * DEPTH + 1
        faces: list[Callable[[], Any]] = [
            lambda: program.to_string(True), lambda: debugger.pprint_program_codes(program.desc),
            lambda: viz.plain(viz.program_lines(viz.read_program(program))), lambda: viz.repr_html(program),
            lambda: viz.program_svg(viz.read_program(program)), lambda: viz.dot_text(viz.read_program(program)),
            lambda: viz.program_html(viz.read_program(program)),
            lambda: viz.program_html(viz.select(viz.read_program(program), "op:w*", fold="blocks,layers")),
            lambda: viz.plain(viz.graph_lines(viz.level(viz.read_program(program), 20))),
            lambda: viz.plain(viz.tree_lines(viz.read_tree(program))),
        ]  # fmt: skip
        assert all(len(str(face())) > 100 for face in faces)
        debugger.draw_block_graphviz(program.global_block(), path=str(tmp_path / "block.dot"))
        fluid.memory_optimize(program)
        for machine in (False, True):
            (got,) = EXE.run(feed={"x": X}, fetch_list=[x.grad], keep_scopes=machine)
            assert got.tobytes() == want.tobytes()
        fluid.global_scope().drop_kids()
