"""0.11 to 1.4: the profiler as a context and by hand, reset while it runs, with every order of the table."""

import os

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.profiler as profiler

x = fluid.layers.data(name="x", shape=[8], dtype="float32")
counter = fluid.layers.zeros(shape=[1], dtype="int64", force_cpu=True)
until = fluid.layers.fill_constant([1], dtype="int64", value=3)
array = fluid.layers.array_write(fluid.layers.fc(input=x, size=4, act="relu"), counter)
cond = fluid.layers.less_than(x=counter, y=until)
while_op = fluid.layers.While(cond=cond)
with while_op.block():
    hidden = fluid.layers.fc(input=x, size=4, act="relu")
    fluid.layers.increment(x=counter, value=1, in_place=True)
    fluid.layers.array_write(hidden, counter, array)
    fluid.layers.less_than(x=counter, y=until, cond=cond)
last = fluid.layers.array_read(array, counter)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def run():
    return exe.run(feed={"x": np.ones((2, 8), "float32")}, fetch_list=[last])


for key in (None, "default", "calls", "total", "max", "min", "ave"):
    with profiler.profiler("CPU", key, "./profile"):
        for i in range(4):
            if i == 2:
                profiler.reset_profiler()
            run()
    assert os.path.getsize("./profile") > 0
profiler.start_profiler("All")
run()
profiler.stop_profiler(sorted_key="total", profile_path="./other")
assert os.path.exists("./other")
for wrong in (lambda: profiler.start_profiler("TPU"), lambda: profiler.stop_profiler("longest")):
    try:
        wrong()
    except ValueError as error:
        print(error)
    else:
        raise AssertionError(wrong)
profiler.stop_profiler()
try:
    with profiler.cuda_profiler("cuda.txt", "csv"):
        pass
except NotImplementedError as error:
    print(error)
print("done")
