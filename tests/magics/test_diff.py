"""``%fluid diff``: what a rewrite or a change of a cell did."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid


def test_what_append_backward_added(session):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nloss = layers.mean(layers.fc(x, 3, act='relu'))")
    session.run("import fluidnb as fluid; before = fluid.default_main_program().clone()")
    session.run("%%fluid goal\nfluid.optimizer.SGD(0.1).minimize(loss);")
    shown = session.run("%fluid diff before")
    assert "before → now  added: 7 ops (5 backward, 2 optimizer)" in shown
    assert "… 2 ops the same" in shown and "mean_grad" in shown and "+ " in shown
    assert "+ x" not in shown and "w_0@GRAD" in shown


def test_what_the_last_change_of_a_cell_changed(session):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 3)")
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 5, act='tanh')")
    shown = session.run("%fluid diff")
    assert "before the last change → now" in shown and "tanh" in shown
    assert "~ h.w_0" in shown and "float32[4, 3] → float32[4, 5]" in shown
    session.run("%fluid undo")
    assert "tanh" not in session.run("%fluid show")


def test_files_and_mistakes(session, tmp_path):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.relu(x)")
    file = tmp_path / "program"
    file.write_bytes(fluid.default_main_program().desc.serialize_to_string())
    assert "no difference" in session.run(f"%fluid diff {file} {file}")
    error, _ = session.fail("%fluid diff 5")
    assert "5 is not a program" in str(error)
    session.fail("%fluid diff a b c")


def test_parameters_of_files(session, tmp_path):
    for name, last in (("a", 3.0), ("b", 4.0)):
        np.savez(tmp_path / f"{name}.npz", w=np.array([1.0, 2.0, last]))
    shown = session.run(f"%fluid diff {tmp_path / 'a.npz'} {tmp_path / 'b.npz'} --values")
    assert "1 of 3 numbers, by up to 1 at [2]: 3 and 4" in shown
    assert "The parameters agree." in session.run(f"%fluid diff {tmp_path / 'a.npz'} {tmp_path / 'a.npz'} --values")
