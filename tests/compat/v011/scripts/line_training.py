"""A line fitted as the first chapters of the Book fitted it in version 0.11, with programs switched by hand."""


import numpy as np
import paddle.v2 as paddle
import paddle.v2.fluid as fluid
import paddle.v2.fluid.core as core
import paddle.v2.fluid.framework as framework

main, startup = framework.Program(), framework.Program()
framework.switch_main_program(main)
framework.switch_startup_program(startup)

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y_predict = fluid.layers.fc(input=x, size=1, act=None)
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
cost = fluid.layers.square_error_cost(input=y_predict, label=y)
avg_cost = fluid.layers.mean(x=cost)
fluid.optimizer.SGD(learning_rate=0.01).minimize(avg_cost)

reader = paddle.batch(paddle.dataset.uci_housing.train(), batch_size=20)
place = fluid.CPUPlace()
feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
costs = []
for pass_id in range(4):
    print("pass", pass_id)
    for data in reader():
        costs.append(exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])[0][0])
assert core.Scope is not None
assert np.mean(costs[-5:]) < np.mean(costs[:5]) / 2, costs
print("cost", costs[-1])
print("done")
