"""``%fluid compile``: the program of a notebook as C source."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

NET = """%%fluid net
x = layers.data('x', shape=[4])
y = layers.fc(x, 3, act='softmax')
label = layers.data('label', shape=[1], dtype='int64')
loss = layers.mean(layers.cross_entropy(y, label))
fluid.optimizer.SGD(0.1).minimize(loss);
"""


def test_inference(session, tmp_path):
    session.run(NET)
    shown = session.run(f"%fluid compile {tmp_path / 'code'} --fetch y --inference --batch 2 --build")
    assert f"written   {tmp_path / 'code' / 'model.c'}" in shown and f"built     {tmp_path / 'code' / 'model'}" in shown
    text = (tmp_path / "code" / "model.c").read_text()
    assert "static void op_softmax(const float *X, float *Out)" in text
    assert "cell net, line 3: y = layers.fc(x, 3, act='softmax')" in text
    assert "float32[2, 4]" in (tmp_path / "code" / "model.h").read_text()
    error, _ = session.fail(f"%fluid compile {tmp_path / 'code'} --fetch y --inference")
    assert "is not empty" in str(error)


def test_a_training_step_with_sizes_of_feeds(session, tmp_path):
    session.run(NET)
    session.run(f"%fluid compile {tmp_path / 'code'} --fetch loss --feed x=(5, 4) label=(5, 1) --embed-weights")
    header = (tmp_path / "code" / "model.h").read_text()
    assert "model_train_step(const float *x, const int64_t *label, float *loss_out)" in header
    assert "float32[5, 4]" in header and not (tmp_path / "code" / "weights.bin").exists()


def test_what_is_refused(session, tmp_path):
    session.run(NET)
    error, _ = session.fail(f"%fluid compile {tmp_path / 'code'}")
    assert "--fetch NAME" in str(error)
    error, _ = session.fail(f"%fluid compile {tmp_path / 'code'} --fetch y --batch 0")
    assert "1 or more is expected" in str(error)
    assert not (tmp_path / "code").exists()
