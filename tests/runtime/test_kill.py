"""A save that is killed leaves the old file or the new one, never half of one."""

import os
import signal
import time

import numpy as np
import pytest

import fluidnb as fluid
from tests.tools.sampling import sample

TIMES = 200


def saver(folder, number):
    """In a child: save a parameter full of ``number`` for ever."""
    program = fluid.Program()
    program.global_block().create_var(name="w", shape=[300, 300], dtype="float32", persistable=True)
    tensor = fluid.global_scope().var("w").get_tensor()
    exe = fluid.Executor(fluid.CPUPlace())
    while True:
        number += 1
        tensor.set(np.full((300, 300), number, "float32"), fluid.CPUPlace())
        fluid.io.save_persistables(exe, folder, program)


def written(folder):
    """When the parameter was last written; None before the first time."""
    file = os.path.join(folder, "w")
    return os.stat(file).st_mtime_ns if os.path.exists(file) else None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # a child that runs no thread
def test_killed_at_any_moment(tmp_path, rng):
    folder = str(tmp_path / "model")
    program = fluid.Program()
    program.global_block().create_var(name="w", shape=[300, 300], dtype="float32", persistable=True)
    exe, newest, left = fluid.Executor(fluid.CPUPlace()), 0.0, 0
    for kill in sample(range(TIMES), 30):
        last = written(folder)
        child = os.fork()
        if child == 0:
            try:
                saver(folder, kill * 1000)
            finally:
                os._exit(1)
        while written(folder) == last:  # a busy machine lets the child wait
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        fluid.io.load_persistables(exe, folder, program)
        w = np.array(fluid.global_scope().find_var("w").get_tensor())
        assert (w == w[0, 0]).all() and w[0, 0] >= newest, kill
        newest = w[0, 0]
        left += len(os.listdir(folder)) > 1
    assert newest > 0 and left > 0, "no save was ever interrupted in the middle: the test shows nothing"
    fluid.io.save_persistables(exe, folder, program)
    assert os.listdir(folder) == ["w"], "the next save removes what a killed one left"
