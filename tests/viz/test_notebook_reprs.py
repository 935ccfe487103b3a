"""Every object shows itself: HTML in a notebook after `import fluidnb` alone, short text in a terminal."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.lib.pretty import pretty

import fluidnb as fluid
from fluidnb import viz
from fluidnb.passes.diff import diff
from fluidnb.program.cost import program_cost
from fluidnb.values import SelectedRows

#: What a notebook's process does: only fluidnb is imported, and no extension is loaded.
NOTEBOOK = """
import sys
import fluidnb as fluid
assert not any(name.startswith(("fluidnb.viz", "IPython")) for name in sys.modules)
y = fluid.layers.fc(fluid.layers.data("z", shape=[3]), 2)
print(y._repr_html_())
"""


@pytest.fixture
def things() -> dict[str, Any]:
    """An object of each class that a notebook shows, after one training step."""
    x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
    predict = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
    adam = fluid.optimizer.Adam(0.01)
    minimized = adam.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((4, 13), "float32"), "y": np.ones((4, 1), "float32")}
    tensor = exe.run(feed=feed, fetch_list=[loss], return_numpy=False)[0]
    program = fluid.default_main_program()
    accuracy = fluid.metrics.Accuracy()
    accuracy.update(value=0.5, weight=4)
    average = fluid.average.WeightedAverage()
    average.add(2.0, 4)
    array = fluid.LoDTensorArray()
    array.append(tensor)
    return {
        "program": program, "block": program.global_block(), "operator": predict.op, "variable": loss,
        "parameter": predict.param, "scope": fluid.global_scope(), "tensor": tensor, "array": array,
        "rows": SelectedRows([1], 4), "scope variable": fluid.global_scope().find_var(predict.param.name),
        "executor": exe, "optimizer": adam, "minimized": minimized, "cpu": fluid.CPUPlace(),
        "gpu": fluid.CUDAPlace(0), "pinned": fluid.CUDAPinnedPlace(), "metric": accuracy, "average": average,
        "cost": program_cost(program), "diff": diff(fluid.Program(), program),
        "compiled": fluid.CompiledProgram(program),
    }  # fmt: skip


def test_import_alone_is_enough() -> None:
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'class="fluidnb"' in done.stdout and "float32[-1, 2]" in done.stdout


def test_a_notebook_gets_html_and_text_of_everything(things: dict[str, Any]) -> None:
    formatter = DisplayFormatter()
    for name, thing in things.items():
        data, _ = formatter.format(thing)
        assert 'class="fluidnb"' in data["text/html"], name
        assert "object at 0x" not in data["text/plain"] and len(data["text/plain"]) < 5000, name


def test_repr_is_one_short_line(things: dict[str, Any]) -> None:
    for name, thing in things.items():
        assert "object at 0x" not in repr(thing) and "\n" not in repr(thing) and len(repr(thing)) < 120, name


def text_of(thing: object) -> str:
    """The HTML rendering without its tags."""
    html = viz.repr_html(thing)
    assert html is not None
    body = html.partition(">")[2]
    for tag in ("<span", "</span", "</pre"):
        body = "".join(part.partition(">")[2] if i else part for i, part in enumerate(body.split(tag)))
    return body


def test_an_executor_shows_its_last_run(things: dict[str, Any]) -> None:
    exe = things["executor"]
    shown = text_of(exe)
    assert "CPUPlace" in shown and "x float32[4, 13], y float32[4, 1]" in shown and things["variable"].name in shown
    exe.close()
    assert repr(exe) == "Executor(CPUPlace, closed)" and "closed" in text_of(exe)


def test_an_optimizer_shows_its_arguments_and_accumulators(things: dict[str, Any]) -> None:
    shown = text_of(things["optimizer"])
    assert "beta1" in shown and "0.9" in shown and "moment1" in shown and "fc_0.w_0" in shown


OTHERS = ("Optimizer", "RecomputeOptimizer")
OPTIMIZERS = sorted(name for name in fluid.optimizer.__all__ if name.endswith("Optimizer") and name not in OTHERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_repr_of_an_optimizer_makes_the_same_one(name: str) -> None:
    kind = getattr(fluid.optimizer, name)
    more = {"momentum": 0.8} if "Momentum" in name else {"rho": 0.7} if name == "RMSPropOptimizer" else {}
    made = kind(0.25, regularization=fluid.regularizer.L2Decay(0.1), **more)
    again = eval(repr(made), {**vars(fluid.optimizer), "L2DecayRegularizer": fluid.regularizer.L2DecayRegularizer})
    assert repr(again) == repr(made) and "learning_rate=0.25" in repr(made)
    assert all(f"{key}={value}" in repr(made) for key, value in more.items())


def test_an_optimizer_around_another_one() -> None:
    made = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.25))
    assert repr(eval(repr(made), {**vars(fluid.optimizer)})) == repr(made)
    assert "SGDOptimizer" in text_of(made) and "SGDOptimizer" in made._repr_html_()


def test_a_schedule_is_shown_by_its_variable_and_value() -> None:
    rate = fluid.layers.piecewise_decay([10], [0.1, 0.01])
    sgd = fluid.optimizer.SGD(rate)
    assert repr(sgd) == f"SGDOptimizer(learning_rate={rate.name})" and f"{rate.name}" in text_of(sgd)


def test_a_metric_shows_its_value_and_never_raises(things: dict[str, Any]) -> None:
    assert repr(things["metric"]) == "Accuracy(value=2.0, weight=4.0)" and "0.5" in text_of(things["metric"])
    assert "none yet" in text_of(fluid.metrics.Accuracy())

    class Broken(fluid.metrics.MetricBase):
        def eval(self) -> float:
            return 1 / 0

    assert "raises ZeroDivisionError" in text_of(Broken())


def test_a_place_is_shown_without_its_device() -> None:
    assert "not in use yet" in text_of(fluid.CUDAPlace(7))
    assert "used" in text_of(fluid.create_lod_tensor(np.ones(3, "float32"), [], fluid.CPUPlace()).place)


def test_tables_in_a_terminal_are_printed_whole(things: dict[str, Any]) -> None:
    for name in ("cost", "diff"):
        assert pretty(things[name]) == str(things[name]) and "\n" in pretty(things[name]), name


def test_other_objects_have_no_html() -> None:
    assert viz.repr_html(object()) is None
