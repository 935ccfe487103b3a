"""`fluidnb run`: old scripts unchanged, their arguments, their errors, their exit status."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.cli import main, script

OLD = """
import sys
import numpy
import helper  # beside the script
import paddle.v2 as paddle
import paddle.v2.fluid as fluid

x = fluid.layers.data(name="x", shape=[helper.WIDTH], dtype="float32")
cost = fluid.layers.mean(x=fluid.layers.fc(input=x, size=1, act=None))
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
outs = exe.run(feed={"x": numpy.zeros((2, helper.WIDTH), "float32")}, fetch_list=[cost])
print(__name__, sys.argv, float(outs[0]), __file__)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a test is."""
    monkeypatch.chdir(tmp_path)
    Path("helper.py").write_text("WIDTH = 3\n")
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    yield tmp_path
    sys.modules.pop("helper", None)


def failing(capsys: pytest.CaptureFixture[str], text: str, *words: str) -> tuple[int, str]:
    """The exit status of a script, and what is on stderr."""
    Path("train.py").write_text(text)
    status = main(["run", "train.py", *words])
    return status, capsys.readouterr().err


def test_an_old_script_runs_as_python_runs_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(OLD)
    argv, places, main_module = sys.argv, list(sys.path), sys.modules["__main__"]
    assert main(["run", "train.py", "--epochs", "3", "-h"]) == 0
    assert capsys.readouterr().out == "__main__ ['train.py', '--epochs', '3', '-h'] 0.0 train.py\n"
    assert (sys.argv, sys.path, sys.modules["__main__"]) == (argv, places, main_module)
    assert not compat.is_installed() and "paddle" not in sys.modules


def test_names_of_paddle_that_were_on_stay_on() -> None:
    compat.install(force=True)
    try:
        Path("train.py").write_text(OLD)
        assert main(["run", "train.py"]) == 0 and compat.is_installed()
    finally:
        compat.uninstall()


def test_a_real_paddle_is_not_hidden_unless_forced(folder: Path, capsys: pytest.CaptureFixture[str],
                                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    Path("paddle.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(str(folder))
    status, said = failing(capsys, OLD)
    assert status == 1 and said.startswith("fluidnb run: A real paddle is installed here")
    assert "--force" in said and main(["run", "--force", "train.py"]) == 0


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [("sys.exit()", 0, ""), ("sys.exit(7)", 7, ""), ("sys.exit('too late')", 1, "too late\n"), ("exit(True)", 1, "")],
)
def test_the_exit_status_is_the_scripts(end: str, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, f"import sys\n{end}\n") == (status, said)


WRONG = """
import numpy as np
import paddle.fluid as fluid

def feed():
    return {"x": np.ones((4, 12), "float32")}

def train(exe, out):
    exe.run(feed=feed(), fetch_list=[out])

h = fluid.layers.fc(fluid.layers.data("x", shape=[-1, 13], append_batch_size=False), size=4)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
train(exe, h)
"""
SAID = """\
Traceback (most recent call last):
  File "train.py", line 14, in <module>
    train(exe, h)
  File "train.py", line 9, in train
    exe.run(feed=feed(), fetch_list=[out])
"""


def test_an_error_of_a_program_is_told_without_frames_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = failing(capsys, WRONG)
    assert status == 1 and said.startswith(SAID)
    first, *rest = said[len(SAID) :].splitlines()
    assert first.split(":")[0].isidentifier(), "the name of the error alone, without its module"
    assert "  received: [4, 12]" in said or "received: width 12" in said
    assert not [line for line in rest if "fluidnb" in line]


def test_other_errors_are_told_as_python_does(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = failing(capsys, "def f(n):\n    return 1 / n\n\nf(0)\n")
    assert status == 1
    assert [line for line in said.splitlines() if "^" not in line and "~" not in line] == [
        "Traceback (most recent call last):", '  File "train.py", line 4, in <module>', "    f(0)",
        '  File "train.py", line 2, in f', "    return 1 / n", "ZeroDivisionError: division by zero",
    ]  # fmt: skip
    _, said = failing(capsys, "x = (1,\nimport os\n")
    assert 'File "train.py", line 1' in said and "SyntaxError" in said and "runpy" not in said
    _, said = failing(capsys, "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('so') from e\n")
    assert "KeyError: 'a'" in said and "direct cause" in said and said.endswith("ValueError: so\n")


def test_an_error_whose_causes_go_in_a_circle(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a, b = ValueError('a'), ValueError('b')\na.__context__, b.__context__ = b, a\nraise a\n"
    assert failing(capsys, text)[0] == 1


def test_an_interrupt_names_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, "\nraise KeyboardInterrupt\n") == (130, "\ninterrupted at train.py:2\n")


def test_what_is_no_script_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "train.py"]) == 1
    assert capsys.readouterr().err == "fluidnb run: There is no train.py.\n  hint:     scripts there: helper.py\n"
    assert main(["run", "."]) == 1 and "is a folder without a model" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["run"])
    assert capsys.readouterr().err.endswith("the following arguments are required: SCRIPT\n")


def test_a_seed_makes_runs_alike(capsys: pytest.CaptureFixture[str]) -> None:
    text = OLD.replace("numpy.zeros", "numpy.ones").replace("sys.argv, ", "")
    said = set()
    for seed in ("3", "3", "4"):
        Path("train.py").write_text(text)
        with fluid.fresh():
            assert main(["run", "--seed", seed, "train.py"]) == 0
        said.add(capsys.readouterr().out)
    assert len(said) == 2


def test_frames_before_the_script_are_not_the_users() -> None:
    try:
        script.check(Path("nowhere.py"))
    except fluid.errors.FluidError as error:
        assert script.user_frames(error.__traceback__, "train.py") is None
        kept = script.user_frames(error.__traceback__, __file__)
        assert kept is not None and kept.tb_next is None


def test_pythons_own_frames_are_not_the_users_where_this_project_calls_them() -> None:
    ours = {"__name__": "fluidnb.example"}
    exec("import json\ndef read(): json.loads('{')", ours)
    try:
        ours["read"]()  # type: ignore[operator]
    except ValueError as error:
        kept = script.user_frames(error.__traceback__, __file__)
        assert kept is not None and kept.tb_next is None
    path = Path("own.py")
    path.write_text("import json\njson.loads('{')\n")
    try:
        script.run(path)
    except ValueError as error:
        kept = script.user_frames(error.__traceback__, "own.py")
        assert kept is not None and kept.tb_next is not None, "the script called json itself"
