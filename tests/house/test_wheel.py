"""The wheel has the three packages with their data, and nothing else; installed alone, it does what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import google.protobuf
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]

#: A program is built, trained, printed, saved, loaded and shown as text.
TRAINING = """
import sys
import numpy as np
import fluidnb as fluid
assert "site-packages" in fluid.__file__, fluid.__file__
x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
predict = fluid.layers.fc(x, 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feed = {"x": np.ones((4, 13), "float32"), "y": np.full((4, 1), 50.0, "float32")}  # far from what it begins with
losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(20)]
assert losses[-1] < losses[0]
print(fluid.default_main_program(), repr(exe), repr(fluid.global_scope()), loss)
assert "<svg" in fluid.default_main_program()._repr_html_()
fluid.io.save_inference_model(sys.argv[1], ["x"], [predict], exe)
program, feeds, targets = fluid.io.load_inference_model(sys.argv[1], exe)
assert exe.run(program, {"x": feed["x"]}, targets)[0].shape == (4, 1)
others = {name.partition(".")[0] for name in sys.modules} & {"IPython", "rich", "ml_dtypes", "graphviz", "traitlets"}
assert not others, others
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("fluidnb-*-py3-none-any.whl")
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("fluidnb-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """The files of the wheel."""
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


def environment(folder: Path, wheel: Path) -> tuple[Path, Path]:
    """A new virtual environment with the wheel, numpy and protobuf alone: its Python, and where packages are."""
    venv.EnvBuilder(with_pip=False).create(folder)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    numpy = Path(np.__file__).parent
    for path in (numpy, numpy.with_name("numpy.libs"), Path(google.protobuf.__file__).parents[1]):
        if path.exists():
            (site / path.name).symlink_to(path)
    return python, site


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python outside of the checkout, with nothing of this process's paths."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([str(python), *arguments], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, numpy and protobuf alone."""
    return environment(tmp_path_factory.mktemp("bare") / "env", wheel)[0]


def test_every_file_of_the_packages_is_in_it(names: set[str]) -> None:
    done = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {line for line in done.stdout.splitlines() if (ROOT / line).exists()}
    assert {line.removeprefix("kernels/").removeprefix("magics/") for line in files} <= names
    assert {"fluidnb/proto/framework.desc", "fluidnb/proto/framework.proto", "fluidnb_magics/py.typed"} <= names


def test_nothing_else_is_in_it(names: set[str]) -> None:
    assert {name.partition("/")[0] for name in names} == {Path(p).name for p in PACKAGES} | {"fluidnb-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_sdist_has_what_a_checkout_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {line for line in done.stdout.splitlines() if (ROOT / line).exists()}
    assert files - names <= {".pre-commit-config.yaml"}


def test_it_trains_saves_and_shows_with_numpy_and_protobuf_alone(bare: Path, tmp_path: Path) -> None:
    done = run(bare, "-c", TRAINING, str(tmp_path / "model"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Executor(CPUPlace)" in done.stdout and "last value" in done.stdout
    shown = run(bare, "-m", "fluidnb", "show", str(tmp_path / "model"), cwd=tmp_path)
    assert shown.returncode == 0 and "mul" in shown.stdout, shown.stderr
    for words in (["version"], ["cost", str(tmp_path / "model")], ["show", str(tmp_path / "model"), "--svg", "a.svg"]):
        done = run(bare, "-m", "fluidnb", *words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import fluidnb.values.dtypes as d; d.np_dtype('bfloat16')", "bfloat16"),
        ("import fluidnb as fluid; next(fluid.dataset.digits.train()())", "data"),
        ("import sys, fluidnb.cli; sys.exit(fluidnb.cli.main(['demo']))", "terminal"),
        ("import sys, fluidnb.cli; sys.exit(fluidnb.cli.main(['lab']))", "notebook"),
        ("import fluidnb as fluid; fluid.Executor(fluid.CUDAPlace(0))", "cuda12"),
    ],
)
def test_what_is_missing_names_its_extra(bare: Path, tmp_path: Path, code: str, extra: str) -> None:
    done = run(bare, "-c", code, cwd=tmp_path)
    assert done.returncode == 1 and f"pip install 'fluidnb[{extra}]'" in done.stderr, done.stderr


@pytest.mark.slow
def test_the_demonstration_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """IPython and scikit-learn are those of this environment; fluidnb is the wheel's."""
    python, site = environment(tmp_path / "env", wheel)
    here = Path(np.__file__).parents[1]
    (site / "others.pth").write_text(f"{here}\n", "utf-8")
    widgets = (
        "import fluidnb, pkgutil, importlib, fluidnb_magics.widgets as w, fluidnb_kernels.cuda.source as s\n"
        f"assert fluidnb.__file__.startswith({str(site)!r}), fluidnb.__file__\n"
        "[importlib.import_module(f'fluidnb_magics.widgets.{m.name}') for m in pkgutil.iter_modules(w.__path__)]"
    )
    done = run(python, "-c", widgets, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(python, "-m", "fluidnb", "demo", cwd=tmp_path)
    assert done.returncode == 0 and "test accuracy 0.9" in done.stdout, done.stdout[-2000:] + done.stderr


@pytest.mark.slow
def test_package_indexes_accept_both(wheel: Path, sdist: Path) -> None:
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", wheel, sdist]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout
