"""1.x: what is at each pixel, with VOC2012, edges left out of the loss, and the mean of intersection over union."""

import numpy as np
import paddle
import paddle.fluid as fluid

SIZE, CLASSES = 16, 21

image = fluid.layers.data(name="image", shape=[3, SIZE, SIZE], dtype="float32")
label = fluid.layers.data(name="label", shape=[SIZE * SIZE, 1], dtype="int64")
hidden = fluid.layers.conv2d(image, num_filters=4, filter_size=3, padding=1, act="relu")
scores = fluid.layers.conv2d(hidden, num_filters=CLASSES, filter_size=1)
rows = fluid.layers.reshape(fluid.layers.transpose(scores, [0, 2, 3, 1]), shape=[-1, CLASSES])
truth = fluid.layers.reshape(label, shape=[-1, 1])
loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(rows, truth, ignore_index=255))
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Adam(learning_rate=0.03).minimize(loss)


def patches(reader):
    def read():
        for picture, what in reader():
            picture = paddle.dataset.image.to_chw(picture[:SIZE, :SIZE])
            yield picture.astype("float32") / 255, what[:SIZE, :SIZE].astype("int64").reshape(-1, 1)

    return read


exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([image, label], fluid.CPUPlace())
first = paddle.reader.firstn(patches(paddle.dataset.voc2012.train()), 60)
train = paddle.batch(paddle.reader.shuffle(first, 60), batch_size=20)
costs = []
for epoch in range(8):
    costs.append(np.mean([exe.run(feed=feeder.feed(batch), fetch_list=[loss])[0] for batch in train()]))
    print(epoch, costs[-1])
assert costs[-1] < costs[0] * 0.7, costs
(test,) = exe.run(
    test_program,
    feed=feeder.feed(next(paddle.batch(patches(paddle.dataset.voc2012.val()), batch_size=30)())),
    fetch_list=[loss],
)
assert test[0] < costs[0] * 0.8
print("done")
