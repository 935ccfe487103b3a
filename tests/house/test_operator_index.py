"""The index of operators is what the registry gives, and look-ups import what they need."""

from __future__ import annotations

import subprocess
import sys

from tests.house.operator_index import FILE, text


def test_it_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == text(), "python -m tests.house.operator_index writes it"


def child(code: str) -> str:
    """The output of a new process."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{code}"
    return subprocess.run([sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def test_a_first_run_imports_few_kernels() -> None:
    code = """
import numpy as np, fluidnb as fluid
x = fluid.layers.data("x", [13])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
exe.run(feed={"x": np.zeros((2, 13), "float32")}, fetch_list=[loss])
families = {name.split(".")[1] for name in sys.modules if name.startswith("fluidnb_kernels.")}
print(sorted(families & {"conv", "rnn", "vision", "detection", "norm", "pool"}))
"""
    assert child(code) == "[]"


def test_an_operator_that_the_index_lacks_is_found() -> None:
    code = """
from fluidnb_kernels import index
del index._MODULES["conv2d"]
from fluidnb.op import get_op, has_op
print(get_op("conv2d").type, has_op("absent"))
"""
    assert child(code) == "conv2d False"


def test_a_second_definition_is_refused_before_the_first_is_imported() -> None:
    code = """
from fluidnb.errors import OpValueError
from fluidnb.op import op, registry
assert "relu" not in registry.ops
try:
    op("relu")(print)
except OpValueError as error:
    print("registered more than once" in str(error))
"""
    assert child(code) == "True"


def test_a_late_import_leaves_programs_lowered() -> None:
    code = """
import fluidnb as fluid
from fluidnb.op import all_ops, get_op, registry
out = fluid.layers.fill_constant([1], "float32", 1.0)
exe = fluid.Executor()
exe.run(fetch_list=[out])
hot, version = exe._hot, registry.version
get_op("conv2d"), list(all_ops())
exe.run(fetch_list=[out])
print(exe._hot is hot, registry.version == version)
"""
    assert child(code) == "True True"
