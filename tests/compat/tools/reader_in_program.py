"""1.x: a program that reads by itself, the variable of its learning rate, and how full the queue is."""

import numpy as np
import paddle
import paddle.fluid as fluid

reader = fluid.layers.py_reader(capacity=4, shapes=[(-1, 13), (-1, 1)], dtypes=["float32", "float32"])
x, y = fluid.layers.read_file(reader)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
optimizer = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9)
optimizer.minimize(loss)
rate = optimizer._global_learning_rate()

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
reader.decorate_paddle_reader(paddle.batch(paddle.dataset.uci_housing.train(), batch_size=50.0))
losses = []
for pass_id in range(3):
    reader.start()
    try:
        while True:
            assert 0 <= reader.queue.size() <= 5
            value, used = exe.run(fetch_list=[loss.name, rate.name])
            losses.append(value)
            assert "%.2f" % used == "0.01"  # noqa: UP031
    except fluid.core.EOFException:
        reader.reset()
    print(pass_id, "%.3f" % losses[-1])  # noqa: UP031
assert len(losses) == 27 and np.mean(losses[-9:]) < np.mean(losses[:9])
print("done")
