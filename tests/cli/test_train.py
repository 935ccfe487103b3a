"""``fluidnb train``: a script's program by several roles; its lines, its result, its errors."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli import main

SCRIPT = """
import sys
import numpy as np
import paddle.fluid as fluid

x = fluid.layers.data("x", shape=[4])
y = fluid.layers.data("y", shape=[1])
rows = int(sys.argv[1]) if len(sys.argv) > 1 else 8
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.SGD(0.1).minimize(loss)

def train_reader():
    draws = np.random.default_rng(0)
    for _ in range(10):
        values = draws.normal(size=(rows, 4)).astype("float32")
        yield [(row, row.sum(keepdims=True)) for row in values]

def backwards():
    for batch in train_reader():
        yield [(y, x) for x, y in batch]

if __name__ == "__main__":
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
    for batch in train_reader():
        exe.run(feed=feeder.feed(batch))
    fluid.io.save_persistables(exe, "alone")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script, where the command runs; no role is left at the end."""
    (tmp_path / "fit.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(folder: Path) -> dict[str, np.ndarray]:
    """The values of a folder of ``save_persistables`` of the default program."""
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(fluid.Executor(), str(folder), fluid.default_main_program())
        scope = fluid.global_scope()
        return {path.name: np.array(scope.find_var(path.name).get_tensor()) for path in folder.iterdir()}


def test_the_parameters_are_those_of_the_script_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fluid.fresh():
        assert main(["run", "--seed", "3", "fit.py"]) == 0
    assert main(["train", "fit.py", "--seed", "3", "--trainers", "4", "--pservers", "3", "--save", "together"]) == 0
    shown = capsys.readouterr().out
    assert "trainer3  ended" in shown and "pserver2  ended" in shown
    assert "10 steps in " in shown and " → " in shown and "parameters in together" in shown
    alone, together = saved(folder / "alone"), saved(folder / "together")
    assert alone.keys() == together.keys()
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def test_arguments_of_the_script_come_after_two_dashes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--trainers", "3", "fit.py", "--", "6"]) == 0
    assert "10 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.py"], "There is no none.py"),
        (["fit.py", "--trainers", "3"], "A batch of 8 rows cannot be shared equally by 3 trainers"),
        (["fit.py", "--reader", "train_raeder"], 'Did you mean "train_reader"'),
        (["fit.py", "--engine", "local", "--address", "here:1"], "Only Ray's engine has an address"),
        (["fit.py", "--watch", "los"], "los"),
        (["fit.py", "--reader", "backwards"], "y"),
    ],
)
def test_errors_are_sentences_and_the_status_is_1(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words]) == 1
    shown = capsys.readouterr().err
    assert message in shown and "Traceback" not in shown and "__main__.py" not in shown


def test_a_script_without_an_optimizer_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "fit.py").write_text(SCRIPT.replace("fluid.optimizer", "# fluid.optimizer"))
    assert main(["train", "fit.py"]) == 1
    assert "has no optimizer" in capsys.readouterr().err


def test_a_reader_that_fails_ends_the_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "fit.py").write_text(SCRIPT.replace("        yield [(row", "        1 / 0\n        yield [(row"))
    assert main(["train", "fit.py"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--trainers", "0"], ["--pservers", "x"], ["--trainer", "2"]])
def test_unknown_options_are_refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "fit.py", *words])
    assert ended.value.code == 2 and words[0] in capsys.readouterr().err
