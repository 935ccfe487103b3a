"""1.x: flowers as a script prepares them itself, written into files of records and read again."""

import glob
import os

import numpy as np
import paddle
import paddle.dataset.flowers as flowers
import paddle.dataset.image as image
import paddle.fluid as fluid


def small(sample):
    data, label = sample
    picture = image.simple_transform(image.load_image_bytes(data), 20, 16, False, mean=[103.94, 116.78, 123.68])
    return picture.flatten().astype("float32") / 128, label


reader = paddle.reader.cache(paddle.reader.firstn(flowers.valid(mapper=small, use_xmap=False), 50))
paddle.dataset.common.convert("./records", reader, 20, "flowers-valid")
files = sorted(glob.glob("./records/flowers-valid-*"))
assert [os.path.basename(name) for name in files] == ["flowers-valid-0000" + str(i) for i in range(3)]
again = paddle.reader.creator.recordio(",".join(files))
stored = list(again())
assert len(stored) == 50
for (pixels, label), (same, other) in zip(reader(), stored):  # noqa: B905
    assert (pixels == same).all() and label == other

x = fluid.layers.data("x", shape=[3 * 16 * 16])
y = fluid.layers.data("y", shape=[1], dtype="int64")
predict = fluid.layers.fc(x, size=102, act="softmax")
cost = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))
fluid.optimizer.Adam(learning_rate=0.01).minimize(cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
train = paddle.batch(paddle.reader.buffered(again, 30), batch_size=16, drop_last=True)
costs = [exe.run(feed=feeder.feed(batch), fetch_list=[cost])[0][0] for _ in range(5) for batch in train()]
print(costs[0], costs[-1])
assert np.mean(costs[-3:]) < np.mean(costs[:3]) / 2
print("done")
