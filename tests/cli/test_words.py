"""The command line itself, and the words that start other programs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fluidnb
from fluidnb import extras
from fluidnb.cli import bench, demo, lab, main, test, version
from fluidnb.cli.entry import COMMANDS
from fluidnb.errors import EnforceNotMet
from fluidnb.values.device_context import DeviceContext

ROOT = Path(__file__).parents[2]
Started = list[tuple[str, ...]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The process that would be started: module, arguments, folder. Every optional package counts as installed."""
    seen: Started = []

    def start(module: str, *arguments: str, folder: Path | None = None) -> int:
        seen.append((module, *arguments, str(folder)))
        return 3

    for word in (test, demo, lab, bench):
        monkeypatch.setattr(word, "start", start)
    monkeypatch.setattr(extras, "find_spec", lambda name: ModuleSpec(name, None))
    return seen


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """fluidnb as pip installs it: without tests, notebooks and benchmarks."""
    monkeypatch.setattr(fluidnb, "__file__", str(tmp_path / "fluidnb" / "__init__.py"))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is optional is installed."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)


def test_without_a_word_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {word} " in shown for word in COMMANDS)


@pytest.mark.parametrize("word", COMMANDS)
def test_every_word_has_help_that_fits_a_terminal(word: str, capsys: pytest.CaptureFixture[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([word, "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: fluidnb {word} ") and COMMANDS[word].summary in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shwo"], 'there is no shwo. Did you mean "show"?'),
        (["xyzzy"], f"there is no xyzzy. There is {', '.join(COMMANDS)}."),
        (["version", "--long"], "version does not take --long. It has --help, --short."),
        (["show", "x", "--limt", "3"], 'show does not take --limt 3. Did you mean "--limit"?'),
        (["show", "x", "--block", "one"], "argument --block: one is not a number from 0 on"),
    ],
)
def test_a_line_that_makes_no_sense(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--short"]) == 0 and capsys.readouterr().out == fluidnb.__version__ + "\n"
    assert main(["version"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["numpy"] == np.__version__ and rows["protobuf"] == importlib.metadata.version("protobuf")
    assert rows["python"].split()[0] == sys.version.split()[0] and "CUDA" in rows


def test_cuda(monkeypatch: pytest.MonkeyPatch, bare: None) -> None:
    monkeypatch.delenv("FLAGS_cuda_backend", raising=False)
    assert version.cuda() == "no: cupy is not installed"
    assert version._version("no_such_package") == "not installed"
    monkeypatch.setattr(extras, "find_spec", lambda name: ModuleSpec(name, None))
    place = fluidnb.CUDAPlace(0)
    refusal = EnforceNotMet(f"Cannot run operator on place {place}: no driver is there.")

    def refuse(asked: object) -> None:
        raise refusal

    monkeypatch.setattr(DeviceContext, "get", refuse)
    assert version.cuda() == "no: no driver is there"
    monkeypatch.setattr(
        DeviceContext, "get", lambda asked: SimpleNamespace(backend="cupy 13.6", devices=2, name=f"H{asked.device}")
    )
    assert version.cuda() == "cupy 13.6: H0; H1"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["test", "-R", "test_mul_op", "-V"], ("pytest", "-R", "test_mul_op", "-v", "-s", str(ROOT))),
        (["test", "-j", "2", "--full", "-x"], ("pytest", "-n", "2", "--full", "-x", str(ROOT))),
        (["test", "-N"], ("pytest", "--collect-only", "-q", str(ROOT))),
        (["demo"], ("fluidnb_magics.demo", "None")),
        (["demo", "--stay"], ("fluidnb_magics.demo", "--stay", "None")),
        (["lab"], ("jupyterlab", str(ROOT / "notebooks" / "00_tour.ipynb"), "None")),
        (["lab", str(ROOT), "--no-browser"], ("jupyterlab", str(ROOT), "--no-browser", "None")),
        (["bench", "fit_a_line"], ("tests.benchmarks", "fit_a_line", "--peers", "fluidnb", str(ROOT))),
        (["bench", "--peers", "fluidnb,torch", "--json", "a.json"],
         ("tests.benchmarks", "--peers", "fluidnb,torch", "--json", str(Path("a.json").absolute()), str(ROOT))),
    ],
)  # fmt: skip
def test_what_is_started(words: list[str], expected: tuple[str, ...], started: Started) -> None:
    assert main(words) == 3, "the status is that of what was started"
    assert started == [expected]


@pytest.mark.parametrize(("word", "what"), [("test", "tests/"), ("lab", "notebooks/"), ("bench", "tests/benchmarks/")])
def test_a_package_has_no_tests(word: str, what: str, packaged: None, started: Started,
                                capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    assert main([word]) == 1 and started == []
    said = capsys.readouterr().err
    assert said.startswith(f"fluidnb {word}: There is no {what} beside this fluidnb") and "clone the project" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [("test", "fluidnb[test]"), ("demo", "fluidnb[terminal]"), ("lab", "fluidnb[notebook]")],
)
def test_what_is_missing_is_told(word: str, said: str, started: Started, bare: None,
                                 capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    assert main([word]) == 1 and started == []
    assert said in capsys.readouterr().err


def test_a_notebook_that_is_not_there(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", str(ROOT / "notebooks" / "tour.ipynb")]) == 1 and started == []
    assert "00_tour.ipynb" in capsys.readouterr().err


MANY = """
import paddle.fluid as fluid
x = fluid.layers.data("x", [2])
for _ in range(600):
    x = fluid.layers.relu(x)
"""


def test_the_command_in_processes_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(MANY)
    run = f"{sys.executable} -m fluidnb"
    done = subprocess.run(f"{run} version --short; {run} show long.py --dot - | head -1", shell=True, cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{fluidnb.__version__}\ndigraph program {{\n", "")
    scripts = importlib.metadata.entry_points(group="console_scripts", name="fluidnb")
    assert [script.load() for script in scripts] == [main]


def test_version_imports_nothing_slow() -> None:
    code = (
        "import sys; sys.modules['cupy'] = None\nfrom fluidnb.cli import main; main(['version']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seen = set(done.stdout.splitlines()[-1].split())
    assert "fluidnb.cli" in seen
    assert not seen & {"numpy", "google.protobuf", "IPython", "rich", "fluidnb.program", "fluidnb.compat"}
