"""1.x: a program meant for several devices, fed as such."""

import numpy as np
import paddle
import paddle.fluid as fluid

x = fluid.layers.data(name="x", shape=[13])
y = fluid.layers.data(name="y", shape=[1])
cost = fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))
fluid.optimizer.Adam(learning_rate=0.5).minimize(cost)
place = fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())

feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
batches = paddle.batch(paddle.dataset.uci_housing.train(), batch_size=50, drop_last=True)
feeds = feeder.decorate_reader(batches, multi_devices=True)
train = fluid.ParallelExecutor(use_cuda=False, loss_name=cost.name)
costs = []
for _ in range(5):
    for feed in feeds():
        (value,) = train.run(fetch_list=[cost.name], feed=feed)
        costs.append(np.array(value).mean())
print(costs[0], costs[-1])
assert np.mean(costs[-8:]) < np.mean(costs[:8])

strategy = fluid.BuildStrategy()
compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
    loss_name=cost.name, build_strategy=strategy
)
for feed in feeds():
    (value,) = exe.run(compiled, feed=feed, fetch_list=[cost.name])
for batch in batches():
    (value,) = exe.run(compiled, feed=feeder.feed(batch), fetch_list=[cost])
assert np.isfinite(value).all()
print("done")
