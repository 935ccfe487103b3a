"""`fluidnb run --on-error-html` and `fluidnb show --html`: pages from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidnb.cli import main
from tests.viz.saved_page.test_recording import data_of

HEAD = "import numpy as np\nimport paddle.fluid as fluid\nx = fluid.layers.data('x', [4])\n"
RUN = "exe = fluid.Executor(fluid.CPUPlace())\nexe.run(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[y])\n"
FAILS = HEAD + "y = fluid.layers.reshape(fluid.layers.scale(x, 2.0), [3, -1])\n" + RUN


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(text: str) -> int:
    Path("train.py").write_text(text)
    return main(["run", "--on-error-html", "failed.html", "train.py"])


def test_an_operator_that_fails_is_shown_with_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FAILS) == 1
    error = capsys.readouterr().err
    assert "reshape" in error and "writes failed.html: " in error.splitlines()[-1]
    text = Path("failed.html").read_text()
    assert "<title>train.py: RuleError</title>" in text
    data = data_of(text, "steps")
    position = data["steps"][data["here"]]["position"]
    assert "reshape" in str(data_of(text, "listing")["rows"][position["here"][1]])
    assert position["error"] and position["reads"] == ["scale_0.tmp_0"]
    written = {name: data["values"][value] for step in data["steps"] for _, name, value in step["wrote"]}
    assert written["scale_0.tmp_0"]["cells"] == " ".join(["2"] * 8)


def test_an_error_beside_any_run_leaves_the_program_and_the_error() -> None:
    assert (
        run(
            HEAD
            + "y = fluid.layers.scale(x, 2.0)\ntry:\n    fluid.layers.concat([x, 3])\nexcept TypeError:\n    pass\n"
            "raise ValueError('too <b>late</b>')\n"
        )
        == 1
    )
    text = Path("failed.html").read_text()
    assert "too &lt;b&gt;late&lt;/b&gt;" in text and 'id="data-steps"' not in text
    assert "scale" in data_of(text, "table")["words"]


def test_a_failed_run_that_was_handled_is_not_the_one_that_is_shown() -> None:
    handled = FAILS.replace("exe.run(", "try:\n    exe.run(") + "except Exception:\n    pass\nraise KeyError('other')\n"
    assert run(handled) == 1
    assert 'id="data-steps"' not in Path("failed.html").read_text()


def test_no_file_without_an_error_and_none_where_it_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(HEAD) == 0 and not Path("failed.html").exists()
    Path("failed.html").mkdir()
    assert run(FAILS) == 1 and "no failed.html: " in capsys.readouterr().err


def test_show_as_html(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(FAILS)
    assert main(["show", "train.py", "--html", "net.html"]) == 0
    assert "writes net.html: " in capsys.readouterr().out
    assert {"scale", "reshape2"} & set(data_of(Path("net.html").read_text(), "table")["words"])
