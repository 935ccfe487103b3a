"""Three cells in JupyterLab: the second is edited and run again, one is deleted; program, values and display follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = "%load_ext fluidnb\nimport numpy as np\nX = np.ones((8, 4), 'float32'); Y = np.ones((8, 1), 'float32')"
DATA = "%%fluid\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])"
NET = "%%fluid\nh = layers.fc(x, size=10)\npred = layers.fc(h, size=1)"
LOSS = (
    "%%fluid\nloss = layers.mean(layers.square_error_cost(pred, y))\n"
    "ops, grads = fluid.optimizer.SGD(0.01).minimize(loss)"
)
TRAIN = "%fluid run --feed x=X y=Y --fetch loss --steps 5"
LOOK = (
    "main = fluid.default_main_program(); scope = fluid.global_scope()\n"
    "def shape(n):\n    v = scope.find_var(n)\n    return None if v is None else v.get_tensor().shape()\n"
    "print(len(main.global_block().ops), main.global_block().var('h').shape, shape('h.w_0'), shape('pred.b_0'))\n"
    "print(np.asarray(scope.find_var('pred.b_0').get_tensor())[0])"
)


def test_edit_and_run_again(notebook: Callable[[list[str]], Notebook]) -> None:
    nb = notebook([LOAD, DATA, NET, LOSS, TRAIN, LOOK])
    for i in range(4):
        nb.run(i)
    assert nb.text(3).split() == ["In[4]", "15", "ops", "program:", "19", "ops"]
    nb.run(4)
    first = nb.run(5).split()
    assert first[:6] == ["19", "(-1,", "10)", "[4,", "10]", "[1]"], first
    nb.set(2, NET.replace("size=10", "size=20"))
    report = nb.run(2)
    assert "built again: In[4]" in report, report
    assert "will be initialized on the next run: h.w_0, h.b_0, pred.w_0" in report
    kept = nb.run(5).split()
    assert kept[:3] == ["19", "(-1,", "20)"]
    assert kept[-1] == first[-1], "a parameter whose shape stayed lost its trained value"
    assert "loss" in nb.run(4)
    after = nb.run(5).split()
    assert after[:6] == ["19", "(-1,", "20)", "[4,", "20]", "[1]"], after
    nb.delete(3)
    nb.run(4)
    said = nb.text(4).splitlines()
    assert said[0].strip() == "removed: In[4]"
    assert said[1].split()[0] == "4", "the operators of the deleted cell are still there"
    assert not nb.errors
