"""The Book's first chapter: a line through houses."""

import shutil
import tempfile

import numpy
import paddle
import paddle.fluid as fluid


def train(folder):
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    predicted = fluid.layers.fc(input=x, size=1, act=None)
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=0.001).minimize(avg_cost)

    reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
    place = fluid.CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else fluid.CPUPlace()
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    batch = next(paddle.batch(paddle.dataset.uci_housing.test(), batch_size=50)())
    first, = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[avg_cost])
    for _ in range(3):
        for data in reader():
            exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])
    last, = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[avg_cost])
    print(f"cost {float(first):.1f}, then {float(last):.1f}")
    assert last < first
    fluid.io.save_inference_model(folder, ["x"], [predicted], exe)


def infer(folder):
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.core.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        assert feeds[0] == "x"
        rows = numpy.random.uniform(0, 10, [10, 13]).astype("float32")
        results = exe.run(program, feed={feeds[0]: rows}, fetch_list=fetches)
        assert results[0].shape == (10, 1)


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    try:
        train(folder)
        infer(folder)
    finally:
        shutil.rmtree(folder)
    print("done")
