"""`fluidnb cost`: costs on a terminal and as HTML."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidnb.cli import main

SCRIPT = """
import paddle.fluid as fluid
x = fluid.layers.data("x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(x, 3, act="relu"))
fluid.optimizer.SGD(0.1).minimize(loss)
"""


def test_a_script_by_operator_and_by_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    assert main(["cost", str(file), "--batch", "10"]) == 0
    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in shown.splitlines()[1:]}
    assert rows["mul"][1:3] == ["1", "120"] and rows["mul_grad"][1:3] == ["1", "120"], "x needs no gradient"
    assert rows["sgd"][1:3] == ["2", "15"] and "op/byte" in shown
    page = tmp_path / "cost.html"
    assert main(["cost", str(file), "--by", "role", "--html", str(page)]) == 0
    assert all(role in page.read_text() for role in ("forward", "backward", "optimizer"))
    assert main(["cost", str(tmp_path / "nothing.py")]) == 1
