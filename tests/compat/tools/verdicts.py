"""1.x: praise or blame, with the data set sentiment and metrics on the Python side."""

import numpy as np
import paddle
import paddle.fluid as fluid

words = paddle.dataset.sentiment.get_word_dict()
assert [number for _, number in words] == list(range(len(words)))

data = fluid.layers.data("words", shape=[1], dtype="int64", lod_level=1)
label = fluid.layers.data("label", shape=[1], dtype="int64")
embedding = fluid.layers.embedding(input=data, size=[len(words), 8])
prediction = fluid.layers.fc(fluid.layers.sequence_pool(embedding, "sum"), size=2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
batch_accuracy = fluid.layers.accuracy(input=prediction, label=label)
test = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Adam(learning_rate=0.05).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([data, label], fluid.CPUPlace())
metric = fluid.metrics.Accuracy("train")
for pass_id in range(4):
    metric.reset()
    for batch in paddle.batch(paddle.reader.firstn(paddle.dataset.sentiment.train, 160), batch_size=16)():
        value, cost = exe.run(feed=feeder.feed(batch), fetch_list=[batch_accuracy, loss])
        metric.update(value=value, weight=len(batch))
    print(pass_id, metric.eval(), cost)
assert metric.eval() > 0.9

both, auc = fluid.metrics.CompositeMetric(), fluid.metrics.Auc(name="auc")
both.add_metric(fluid.metrics.Precision("precision"))
both.add_metric(fluid.metrics.Recall("recall"))
average = fluid.average.WeightedAverage()
for batch in paddle.batch(paddle.reader.firstn(paddle.dataset.sentiment.test, 40), batch_size=10)():
    found, cost = exe.run(test, feed=feeder.feed(batch), fetch_list=[prediction, loss])
    labels = np.array([[label] for _, label in batch])
    both.update(preds=found[:, 1:], labels=labels)
    auc.update(preds=found, labels=labels)
    average.add(value=cost, weight=len(batch))
precision, recall = both.eval()
print(precision, recall, auc.eval(), average.eval())
assert min(precision, recall) > 0.7 and auc.eval() > 0.8 and average.eval() < 0.7
print("done")
