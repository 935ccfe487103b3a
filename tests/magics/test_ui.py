"""Cells in plain Python, and widgets without a shell, as marimo has them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers, ui
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb_magics import extension


@pytest.fixture(autouse=True)
def no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test runs in IPython, even where an earlier one has started it."""
    monkeypatch.setattr(extension, "get_ipython", lambda: None)


def ops() -> list[str]:
    return [op.type for op in fluid.default_main_program().global_block().ops]


def test_a_cell_that_runs_again_replaces_what_it_built_and_what_reads_from_it_follows() -> None:
    space: dict[str, Any] = {"ui": ui, "layers": layers, "fluid": fluid, "act": "relu"}

    def run(text: str) -> None:
        exec(compile(text, "<a cell>", "exec"), space)

    net = "@ui.cell\ndef net():\n    x = layers.data('x', [4])\n    h = layers.fc(x, {}, act={})\n    return locals()"
    run(net.format(3, "'relu'"))
    run("@ui.cell\ndef loss():\n    return layers.mean(net.h)")
    run("@ui.cell\ndef alone():\n    return layers.fill_constant([1], 'float32', 1.0)")
    run("@ui.cell\ndef train():\n    fluid.optimizer.SGD(0.1).minimize(*loss)")
    built = ops()
    assert built[:5] == ["mul", "elementwise_add", "relu", "mean", "fill_constant"] and built[-1] == "sgd"
    first = space["net"]
    run(net.format(3, "'relu'"))
    assert ops() == built and space["net"] is first, "the same cell changes nothing"

    run(net.format(5, "'tanh'"))
    assert ops() == [op.replace("relu", "tanh") for op in built]
    assert space["net"].h.shape == (-1, 5)
    exe = fluid.Executor(fluid.CPUPlace())  # no startup program was run: the session initializes parameters
    feed = {"x": np.ones((2, 4), "float32")}
    values = [exe.run(feed=feed, fetch_list=[*space["loss"]])[0].item() for _ in range(3)]
    assert len(set(values)) == 3

    run(net.format(5, "act"))
    space["act"] = "relu"
    run("@ui.cell\ndef loss():\n    return layers.mean(net.h)")
    assert ops() == built

    with pytest.raises(OpValueError):
        run(net.format(0, "'relu'"))
    assert ops() == built and space["net"].h.shape == (-1, 5), "an error leaves everything as it was"
    assert "net" in repr(space["net"]) and "<" in space["net"]._repr_html_()

    ui.drop("train")
    assert ops() == built[:5]


def test_a_front_end_that_removes_names_and_runs_the_cells_below_heals_the_program() -> None:
    space: dict[str, Any] = {"ui": ui, "layers": layers, "fluid": fluid}
    cells = {
        "net": "@ui.cell\ndef net():\n    x = layers.data('x', [4])\n    h = layers.fc(x, 3)\n    return locals()",
        "loss": "@ui.cell\ndef loss():\n    return layers.mean(net.h)",
        "train": "@ui.cell\ndef train():\n    fluid.optimizer.SGD(0.1).minimize(*loss)",
    }

    def run(*names: str) -> None:  # as marimo does: the names of all cells that run go first
        for name in names:
            space.pop(name, None)
        for name in names:
            exec(compile(cells[name], f"<{name}>", "exec"), space)

    run(*cells)
    before = ops()
    cells["net"] = cells["net"].replace("fc(x, 3)", "fc(x, 3, act='relu')")
    run(*cells)
    fresh = fluid.Program()
    with fluid.program_guard(fresh, fluid.Program()), fluid.unique_name.guard():
        h = layers.fc(layers.data("x", [4]), 3, act="relu")
        fluid.optimizer.SGD(0.1).minimize(layers.mean(h))
    assert ops() == [op.type for op in fresh.global_block().ops] != before
    assert all(not placed.stale for placed in extension.session_of({}).cells)


def test_widgets_follow_cells_and_runs() -> None:
    @ui.cell
    def net() -> dict[str, Any]:
        x = layers.data("x", shape=[4])
        loss = layers.mean(layers.fc(x, 3))
        return {"x": x, "loss": loss}

    explorer, live = ui.explorer(), [ui.scope(), ui.memory(), ui.timeline(), ui.builder("fc")]
    explorer.do_shown()
    table = explorer.table

    @ui.cell(name="more")
    def _more() -> None:
        layers.relu(net.x)

    assert explorer.table != table and b"relu" in explorer.table
    fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[net.loss])
    session = fluid.debug(feed={"x": np.ones((2, 4), "float32")})
    panel = ui.panel()
    panel.controls.do_move("step")
    session.do(lambda debugger: None)
    assert panel.position["at"] == 1
    lessons = [ui.lesson(name) for name in ("backward", "lod", "optimizer")]
    for widget in [explorer, panel, *live, *lessons]:
        widget.close()
    session.close()


def test_mistakes_are_named() -> None:
    with pytest.raises(OpTypeError, match="@ui.cell above a def"):
        ui.cell(lambda x: x)

    @ui.cell
    def net() -> dict[str, Any]:
        return {"hidden": layers.data("x", shape=[4])}

    with pytest.raises(AttributeError, match='Did you mean "hidden"'):
        _ = net.hiden
    with pytest.raises(OpValueError, match="lod"):
        ui.lesson("lods")


def test_it_works_in_a_script_without_a_shell() -> None:
    script = (
        "from fluidnb import layers, ui\nimport fluidnb as fluid\n@ui.cell\ndef net():\n"
        "    h = layers.fc(layers.data('x', [2]), 3)\n    return h,\n(h,) = net\nprint(h.shape, h.name)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "(-1, 3) h\n", done.stderr
