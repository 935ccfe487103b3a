"""``import paddle`` under fluidnb: the same objects, refused beside a real one, gone without a trace."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import compat, errors


@pytest.fixture
def installed() -> Iterator[None]:
    """Paddle's names for the length of a test."""
    compat.install(force=True)
    yield
    compat.uninstall()


@pytest.mark.usefixtures("installed")
def test_the_names_of_paddle_are_our_modules() -> None:
    paddle, old = importlib.import_module("paddle"), importlib.import_module("paddle.v2")
    assert importlib.import_module("paddle.fluid") is importlib.import_module("paddle.v2.fluid") is fluid
    assert paddle.fluid is old.fluid is fluid
    assert paddle.batch is old.batch is fluid.batch
    assert paddle.reader.shuffle is fluid.reader.shuffle
    assert paddle.dataset.uci_housing is fluid.dataset.uci_housing


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "name", ["layers", "core", "framework", "executor", "unique_name", "proto.framework_pb2", "debuger"]
)
@pytest.mark.parametrize("root", ["paddle.fluid", "paddle.v2.fluid", "paddle.v2.framework"])
def test_a_module_inside_is_never_a_second_copy(root: str, name: str) -> None:
    ours = importlib.import_module(f"fluidnb.{name}")
    spec = ours.__spec__
    assert importlib.import_module(f"{root}.{name}") is ours
    assert ours.__spec__ is spec and ours.__name__ == f"fluidnb.{name}"


@pytest.mark.usefixtures("installed")
def test_import_statements_of_old_scripts() -> None:
    lines = """
import paddle.v2 as paddle
import paddle.v2.fluid as fluid
import paddle.v2.fluid.core as core
import paddle.dataset.uci_housing as housing
from paddle.batch import batch
from paddle.v2.fluid import debuger, framework
from paddle.fluid.framework import Program
from paddle.fluid.layers import fc
import paddle.fluid.layers.nn as nn
from paddle.fluid.layers import ops, tensor
from paddle.v2.fluid.layers.ops import sigmoid
from paddle.fluid.layers.tensor import concat
"""
    space: dict[str, object] = {}
    exec(lines, space)
    assert space["core"] is fluid.core and space["Program"] is fluid.Program and space["fc"] is fluid.layers.fc
    assert space["batch"] is fluid.batch
    assert space["nn"] is space["ops"] is fluid.layers and space["sigmoid"] is fluid.layers.sigmoid
    assert space["concat"] is fluid.layers.concat and fluid.layers.nn.fc is fluid.layers.fc
    with pytest.raises(AttributeError, match="layers has no fcc"):
        fluid.layers.tensor.fcc  # noqa: B018


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("paddle.nn", "belongs to Paddle 2 and later. fluidnb runs Fluid: layers are in paddle.fluid.layers"),
        ("paddle.v2.layer", "is not part of fluidnb"),
        ("paddle.fluid.layers.nothing", "is not part of fluidnb"),
    ],
)
def test_what_is_not_there_is_named(name: str, told: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"{name} {told}"):
        importlib.import_module(name)


def test_nothing_stays_behind() -> None:
    before = dict(sys.modules), list(sys.meta_path)
    compat.install(force=True)
    compat.install()  # a second time is nothing
    importlib.import_module("paddle.fluid.layers")
    assert hasattr(fluid.Variable, "as_step_input")
    compat.uninstall()
    compat.uninstall()
    assert {n for n in sys.modules if n.startswith("paddle")} == {n for n in before[0] if n.startswith("paddle")}
    assert sys.meta_path == before[1] and not compat.is_installed()
    assert not hasattr(fluid.Variable, "as_step_input")


FAKE = """
import sys
sys.path.insert(0, {folder!r})
{before}
from fluidnb import compat, errors
try:
    compat.install()
except errors.FluidError as e:
    print(str(e).splitlines()[0])
compat.install(force=True)
import paddle, paddle.fluid, fluidnb
print(paddle.fluid is fluidnb)
compat.uninstall()
import paddle
print(paddle.real)
"""


@pytest.mark.parametrize("before", ["", "import paddle"])
def test_a_real_paddle_is_not_pushed_aside_unasked(tmp_path: Path, before: str) -> None:
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("real = 'the real one'\n")
    code = FAKE.format(folder=str(tmp_path), before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "A real paddle is installed here, and scripts would no longer find it.", "True", "the real one",
    ]  # fmt: skip


def test_the_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidnb.compat.aliases._real_paddle", lambda: "/somewhere/paddle/__init__.py")
    with pytest.raises(errors.FluidError, match=r"hint: +compat.install\(force=True\)") as caught:
        compat.install()
    assert caught.value.received == "paddle in /somewhere/paddle/__init__.py" and not compat.is_installed()


@pytest.mark.usefixtures("installed")
def test_the_version_of_fluid_is_told() -> None:
    version = importlib.import_module("paddle.version")
    assert version.full_version == importlib.import_module("paddle").__version__ == "1.4.0"
    assert ".".join((version.major, version.minor, version.patch)) == version.full_version


@pytest.mark.usefixtures("installed")
def test_sizes_that_are_fed_are_the_scripts_business() -> None:
    x = fluid.layers.data("x", [3])
    y = fluid.layers.scale(x, scale=2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    assert exe.run(feed={"x": np.ones((2, 5), "float32")}, fetch_list=[y])[0].shape == (2, 5)
    compat.uninstall()
    with pytest.raises(errors.OpValueError, match="should have dimensions"):
        exe.run(feed={"x": np.ones((2, 6), "float32")}, fetch_list=[y])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("module", ["dygraph", "contrib.slim", "concurrency", "incubate.fleet"])
def test_a_star_import_of_what_there_is_not_says_so(module: str) -> None:
    with pytest.raises(errors.NotBuiltYet, match=rf"from fluid\.{module} import \* has nothing to bring") as caught:
        exec(f"from paddle.fluid.{module} import *", {})
    assert caught.value.hint


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("package", ["paddle.fluid", "paddle.fluid.contrib"])
def test_trainer_and_inferencer_are_imported_as_the_book_does(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package}.trainer import *\nfrom {package}.inferencer import *", names)
    assert names["Trainer"] is fluid.Trainer and names["EndStepEvent"] is fluid.contrib.trainer.EndStepEvent
    assert names["Inferencer"] is fluid.contrib.inferencer.Inferencer
