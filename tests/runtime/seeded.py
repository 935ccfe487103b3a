"""A training whose every random number depends on one seed; run as a script it prints a digest of all it made."""

from __future__ import annotations

import hashlib
import sys

import numpy as np

import fluidnb as fluid


def digest(seed: int, machine: bool = False) -> str:
    """Train with dropout on shuffled data, and hash programs, parameters, losses, random tensors and draws.

    Args:
        seed: for `fluid.seed`.
        machine: walk operator by operator.

    Returns:
        A hexadecimal text.
    """
    found = hashlib.sha256()
    with fluid.fresh() as (main, startup):
        fluid.seed(seed)
        x, y = fluid.layers.data("x", shape=[13]), fluid.layers.data("y", shape=[1])
        h = fluid.layers.dropout(fluid.layers.fc(x, size=8, act="relu"), dropout_prob=0.3)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, size=1), y))
        noise = fluid.layers.gaussian_random([3], mean=0.0, std=1.0)
        fluid.optimizer.Adam(0.01).minimize(loss)
        for program in (main, startup):
            found.update(program.desc.serialize_to_string())
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        reader = fluid.batch(fluid.reader.shuffle(fluid.dataset.uci_housing.train(), 500), 64)
        feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
        for batch in reader():
            for value in exe.run(main, feed=feeder.feed(batch), fetch_list=[loss, noise], keep_scopes=machine):
                found.update(value.tobytes())
        fluid.global_scope().drop_kids()
        for name in fluid.global_scope().local_var_names():
            found.update(np.array(fluid.global_scope().find_var(name).get_tensor()).tobytes())
        words = fluid.create_random_int_lodtensor([[2, 3]], [1], fluid.CPUPlace(), 0, 9)
        found.update(np.array(words).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(int(sys.argv[1])))
