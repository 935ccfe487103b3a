"""`import fluidnb` is quick, and the core runs with numpy and protobuf alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: What the core may not import: the faces, the shell, and what is only for some dtypes or data sets.
FACES = ["IPython", "anywidget", "cupy", "graphviz", "ipywidgets", "ml_dtypes", "paddle", "rich", "scipy", "sklearn"]

TRAINING = """
import numpy as np
import fluidnb as fluid
fluid.seed(1)
x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
losses = [exe.run(feed={"x": np.ones((4, 13), "f4"), "y": np.ones((4, 1), "f4")}, fetch_list=[loss])[0] for _ in "ab"]
assert losses[1] < losses[0]
"""


def python(code: str) -> str:
    """The output of a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_trains_without_the_faces() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({FACES!r}))\n"  # None: importing it fails
    python(blocked + TRAINING)


def test_nothing_but_numpy_and_protobuf_is_imported() -> None:
    seen = python(TRAINING + "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))").split()
    others = set(seen) - set(sys.stdlib_module_names) - set(sys.builtin_module_names)
    allowed = {"cython_runtime", "fluidnb", "fluidnb_kernels", "google", "numpy"}
    assert {name for name in others if not name.startswith(("_", "sitecustomize"))} <= allowed


@pytest.mark.parametrize(("code", "most"), [("import fluidnb", 3), ("import fluidnb; fluidnb.Executor", 141)])
def test_few_modules_are_imported_before_they_are_needed(code: str, most: int) -> None:
    """Python takes about a millisecond for each module; tests/benchmarks has the time."""
    count = f"{code}; import sys; print(sum(name.startswith('fluidnb') for name in sys.modules))"
    assert int(python(count)) <= most
