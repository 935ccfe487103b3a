"""0.11: an evaluator for training and another in an inference program, which is made from its variables."""

import paddle.v2 as paddle
import paddle.v2.fluid as fluid

image = fluid.layers.data(name="x", shape=[784], dtype="float32")
label = fluid.layers.data(name="y", shape=[1], dtype="int64")
predict = fluid.layers.fc(input=image, size=10, act="softmax")
avg_cost = fluid.layers.mean(x=fluid.layers.cross_entropy(input=predict, label=label))
fluid.optimizer.Adam(learning_rate=0.002).minimize(avg_cost)
accuracy = fluid.evaluator.Accuracy(input=predict, label=label)

inference_program = fluid.default_main_program().clone()
with fluid.program_guard(inference_program):
    test_accuracy = fluid.evaluator.Accuracy(input=predict, label=label)
    test_target = [avg_cost] + test_accuracy.metrics + test_accuracy.states
    inference_program = fluid.io.get_inference_program(test_target)

train_reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 640), batch_size=64)
test_reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.test(), 128), batch_size=64)
place = fluid.CPUPlace()
exe = fluid.Executor(place)
feeder = fluid.DataFeeder(feed_list=[image, label], place=place)
exe.run(fluid.default_startup_program())
passes = []
for pass_id in range(4):
    accuracy.reset(exe)
    for data in train_reader():
        out, acc = exe.run(
            fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost] + accuracy.metrics
        )
    pass_acc = accuracy.eval(exe)
    test_accuracy.reset(exe)
    for data in test_reader():
        exe.run(inference_program, feed=feeder.feed(data), fetch_list=[avg_cost] + test_accuracy.metrics)
    passes.append((float(pass_acc[0]), float(test_accuracy.eval(exe)[0])))
    print("pass_id=" + str(pass_id) + " pass_acc=" + str(pass_acc) + " test_acc=" + str(passes[-1][1]))
assert passes[-1][0] > 0.5 > passes[0][0], passes
assert passes[-1][1] > 0.3, passes
assert not [op.type for op in inference_program.global_block().ops if op.type in ("adam", "mul_grad")]
print("done")
