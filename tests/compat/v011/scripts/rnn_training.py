"""A network over sequences as scripts of version 0.11 wrote it: programs by keyword, StaticRNN, LoDTensors by hand."""


import numpy as np
import paddle.v2.fluid.core as core
import paddle.v2.fluid.layers as layers
from paddle.v2.fluid.backward import append_backward
from paddle.v2.fluid.executor import Executor
from paddle.v2.fluid.framework import Program, grad_var_name

main, startup = Program(), Program()
where = {"main_program": main, "startup_program": startup}
x = layers.data(name="x", shape=[3, 4, 2], dtype="float32", append_batch_size=False, **where)
x.stop_gradient = False
h_boot = layers.data(name="h_boot", shape=[2], dtype="float32", **where)
h_boot.stop_gradient = False
rnn = layers.StaticRNN(main_program=main)
with rnn.step():
    before = rnn.memory(init=h_boot)
    now = rnn.step_input(x)
    h = layers.scale(x=layers.elementwise_add(x=before, y=now, **where), scale=0.5, **where)
    rnn.update_memory(before, h)
    rnn.output(h)
loss = layers.mean(x=rnn(), **where)
append_backward(loss)

values = {"x": np.random.normal(size=(3, 4, 2)), "h_boot": np.random.normal(size=(4, 2))}
feed = {}
for name in values:
    feed[name] = core.LoDTensor()
    feed[name].set(values[name].astype("float32"), core.CPUPlace())
exe = Executor(core.CPUPlace())
exe.run(startup)
found = exe.run(main, feed=feed, fetch_list=[loss, main.global_block().var(grad_var_name("h_boot"))])

state, steps = values["h_boot"], []
for row in values["x"]:
    state = (state + row) * 0.5
    steps.append(state)
assert np.allclose(found[0], np.mean(steps), atol=1e-5)
assert np.allclose(found[1], (0.5 + 0.25 + 0.125) / 24, atol=1e-6)
print("loss", found[0])
print("done")
