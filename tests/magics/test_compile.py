"""``%fluid compile``: the program of a notebook as C source."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_a_notebook(session, tmp_path):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\ny = layers.fc(x, 3, act='softmax')")
    session.run("exe = fluid.Executor(fluid.CPUPlace()); done = exe.run(fluid.default_startup_program())")
    shown = session.run(f"%fluid compile {tmp_path / 'code'} --feed x --fetch {{y.name}} --batch 2 --build")
    assert f"written   {tmp_path / 'code' / 'model.c'}" in shown and f"built     {tmp_path / 'code' / 'model'}" in shown
    text = (tmp_path / "code" / "model.c").read_text()
    assert "static void op_softmax(const float *X, float *Out)" in text
    assert "cell net, line 3: y = layers.fc(x, 3, act='softmax')" in text
    error, _ = session.fail(f"%fluid compile {tmp_path / 'code'} --feed x --fetch {{y.name}}")
    assert "is not empty" in str(error)
    error, _ = session.fail(f"%fluid compile {tmp_path / 'other'} --feed x --fetch {{y.name}} --batch 0")
    assert "--batch is a number from 1 on" in str(error)
