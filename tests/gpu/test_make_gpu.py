"""`make test-gpu` without a GPU: what it asks for, what it leaves out and tells, and the kernels that it compiles."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fluidnb.errors import OpTypeError
from fluidnb.memory import flags
from fluidnb.op import all_ops
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import sources
from fluidnb_kernels.cuda_emulator_backend.streams import Graph
from tests.gpu import compiled, plugin
from tests.gpu.emulator_backend_tests import is_about_the_emulator_backend

ROOT = Path(__file__).parents[2]
needs_emulator = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run something at the top of the checkout, outside any make and any run of pytest around this test."""
    mine = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "CUDA_VISIBLE_DEVICES")
    kept = {n: v for n, v in os.environ.items() if n not in mine and not n.startswith(("PYTEST", "FLAGS_"))}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=kept | env)


def pytest_on(backend: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as `make test-gpu` does."""
    command = (sys.executable, "-m", "pytest", "-c", "tests/gpu/gpu.ini", "--rootdir", ".", "-p", "no:cacheprovider")
    return run(*command, *args, FLAGS_cuda_backend=backend, CUDA_VISIBLE_DEVICES="")


# ---- the run


@needs_emulator
def test_a_run_names_its_device_and_what_it_leaves_out() -> None:
    done = pytest_on("emulator", "tests/device/test_looking.py", "tests/cuda/test_catalog.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "device: emulator, sm_90, emulator in place of cupy" in done.stdout
    assert "left out: tests/cuda/test_mutants.py (needs no device)" in done.stdout
    assert " passed" in done.stdout


def test_without_a_device_one_sentence_says_so() -> None:
    done = pytest_on("cupy", "tests/device")
    assert done.returncode == 2
    assert "make test-gpu: " in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_modules_that_need_other_packages_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError("no", name="hypothesis")

    said: list[str] = []
    config: Any = SimpleNamespace(stash={plugin._REPORT: said}, rootpath=ROOT)
    path = ROOT / "tests" / "cuda" / "test_gemm.py"
    assert plugin.pytest_ignore_collect(path, config) is None
    monkeypatch.setattr(importlib, "import_module", absent)
    assert plugin.pytest_ignore_collect(path, config) is True
    assert plugin.pytest_ignore_collect(path.with_name("twins.py"), config) is None
    assert said == ["left out: tests/cuda/test_gemm.py (needs hypothesis)"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ModuleNotFoundError("no", name="nobodys_package.part"), "skipped"),
        (OpTypeError("bfloat16 needs a package."), "failed"),
        (ModuleNotFoundError("no", name="tests.nothing"), "failed"),
    ],
)
def test_tests_that_need_other_packages_are_skipped(error: Exception, outcome: str) -> None:
    for value in (error, caused(error)):
        report = SimpleNamespace(outcome="failed", longrepr="a traceback")
        call: Any = SimpleNamespace(excinfo=SimpleNamespace(value=value))
        steps = plugin.pytest_runtest_makereport(cast(Any, SimpleNamespace(path=ROOT)), call)
        next(steps)
        with pytest.raises(StopIteration):
            steps.send(cast(Any, report))
        assert report.outcome == outcome
        assert outcome == "failed" or report.longrepr[-1] == "Skipped: needs nobodys_package.part"


def caused(error: Exception) -> Exception:
    """An OpTypeError whose context is another error."""
    try:
        try:
            raise error
        except Exception:
            raise OpTypeError("something else.") from None
    except OpTypeError as other:
        return other


# ---- tests of the emulator backend


def names_it() -> Any:
    """Looks into the emulator backend."""
    return Graph


def in_a_helper() -> Any:
    """Lets another function look."""
    return [names_it() for _ in range(2)]


def expects_its_name(shown: str) -> None:
    """Does not say so here."""
    assert "emulator" in shown


def about_a_device(shown: str) -> None:
    """Whatever the emulator is: this only speaks of it."""
    assert "CUDAPlace(0)" in shown


@pytest.mark.parametrize(
    ("function", "given", "fixture", "marks", "about"),
    [
        (about_a_device, "cuda", about_a_device, (), False),
        (names_it, "", about_a_device, (), True),
        (in_a_helper, "", about_a_device, (), True),
        (expects_its_name, "", about_a_device, (), True),
        (about_a_device, Graph, about_a_device, (), True),
        (about_a_device, "", in_a_helper, (), True),
        (about_a_device, "", about_a_device, ("emulator_backend",), True),
    ],
)
def test_which_tests_look_into_the_backend(function: Any, given: Any, fixture: Any, marks: Any, about: bool) -> None:
    item: Any = SimpleNamespace(
        function=function, callspec=SimpleNamespace(params={"given": given}), get_closest_marker=marks.__contains__,
        _fixtureinfo=SimpleNamespace(name2fixturedefs={"it": [SimpleNamespace(func=fixture)]}),
    )  # fmt: skip
    assert is_about_the_emulator_backend(item) is about


# ---- kernels that are compiled first


class Broken:
    """A file of kernels of which one cannot be compiled."""

    path, kernels = Path("broken.cu"), ("fine", "wrong")

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(on=getattr(self, name))

    def fine(self, backend: str) -> None:
        """Is compiled."""

    def wrong(self, backend: str) -> None:
        """Is not."""
        raise ValueError("line 3")


@needs_emulator
def test_kernels_are_compiled_and_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(flags.values, "cuda_backend", "emulator")
    all_ops()
    (file,) = [source for source in sources if source.path.stem == "counts"]
    assert compiled.main(["counts"]) == 0
    assert f"compiled {len(file.kernels)} of {len(file.kernels)} kernels in " in capsys.readouterr().out
    assert all("emulator device" in file[name]._compiled for name in file.kernels)
    monkeypatch.setattr(compiled, "sources", [Broken()])
    assert compiled.main([]) == 1
    assert "cannot be compiled: wrong of broken.cu: line 3\n" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no file of kernels called nothing"):
        compiled.main(["nothing"])


# ---- the targets


@pytest.mark.parametrize(
    ("args", "there", "gone"),
    [
        ((), ("-m tests.gpu.compiled", "--full tests/device tests/ops tests/cuda", "import xdist"), ("sanitizer",)),
        (("ARGS=-R mul_op -V",), ("-R mul_op -v --full tests/device",), ("tests.gpu.compiled",)),
        (("SANITIZER=compute-sanitizer",),
         ("compute-sanitizer --error-exitcode 1 --report-api-errors no python3 -m pytest",),
         ("tests.gpu.compiled", "--full", "xdist")),
    ],
)  # fmt: skip
def test_what_make_runs(args: tuple[str, ...], there: tuple[str, ...], gone: tuple[str, ...]) -> None:
    shown = run("make", "-n", "test-gpu", *args).stdout
    assert all(part in shown for part in there), shown
    assert not any(part in shown for part in gone), shown


def test_parts_reach_the_benchmark() -> None:
    assert "-m tests.gpu.bench models --rounds 3" in run("make", "-n", "bench-gpu", "ARGS=models --rounds 3").stdout
