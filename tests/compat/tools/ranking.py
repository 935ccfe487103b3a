"""1.x: documents in order, learnt from pairs, with MQ2007."""

from functools import partial
from itertools import islice

import numpy as np
import paddle
import paddle.fluid as fluid

FEATURES = 46

label = fluid.layers.data("label", shape=[1])
left = fluid.layers.data("left", shape=[FEATURES])
right = fluid.layers.data("right", shape=[FEATURES])
shared = fluid.ParamAttr(name="score.w")
scores = [fluid.layers.fc(side, size=1, param_attr=shared, bias_attr=False) for side in (left, right)]
cost = fluid.layers.mean(fluid.layers.rank_loss(label, *scores))
fluid.optimizer.Adagrad(learning_rate=0.1).minimize(cost)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([label, left, right], fluid.CPUPlace())
train = paddle.reader.firstn(partial(paddle.dataset.mq2007.train, format="pairwise"), 2000)
pairs = paddle.batch(paddle.reader.shuffle(train, 1000), 100)
for pass_id in range(3):
    print(pass_id, np.mean([exe.run(feed=feeder.feed(batch), fetch_list=[cost])[0] for batch in pairs()]))

weights = np.array(fluid.global_scope().find_var("score.w").get_tensor()).ravel()
hits = [np.dot(better - other, weights) > 0 for _, better, other in islice(paddle.dataset.mq2007.test(), 1000)]
assert np.mean(hits) > 0.75, np.mean(hits)
for relevance, documents in paddle.dataset.mq2007.test(format="listwise"):
    assert len(relevance) == len(documents) and documents.shape[1] == FEATURES
print("done")
