"""The Book's last chapter in small: sentences are turned around, then found by beam search."""

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.framework as framework
import paddle.fluid.layers as pd
from paddle.fluid.executor import Executor

words, size, longest, beam, end = 12, 8, 5, 2, 1


def encoder():
    source = pd.data(name="source", shape=[1], dtype="int64", lod_level=1)
    embedded = pd.embedding(input=source, size=[words, size], param_attr=fluid.ParamAttr(name="vemb"))
    hidden, _ = pd.dynamic_lstm(input=pd.fc(input=embedded, size=size * 4, act="tanh"), size=size * 4)
    return pd.sequence_last_step(input=hidden)


def step(state, embedded):
    state = pd.fc(input=[state, embedded], size=size, act="tanh",
                  param_attr=["step.w0", "step.w1"], bias_attr="step.b")
    return state


def score(state):
    return pd.fc(input=state, size=words, act="softmax", param_attr="out.w", bias_attr="out.b")


def trainer(context):
    target = pd.data(name="target", shape=[1], dtype="int64", lod_level=1)
    embedded = pd.embedding(input=target, size=[words, size], param_attr=fluid.ParamAttr(name="vemb"))
    rnn = pd.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(embedded)
        before = rnn.memory(init=context, need_reorder=True)
        state = step(before, word)
        rnn.update_memory(before, state)
        rnn.output(score(state))
    label = pd.data(name="label", shape=[1], dtype="int64", lod_level=1)
    return pd.mean(pd.cross_entropy(input=rnn(), label=label))


def decoder(context):
    last = pd.fill_constant(shape=[1], dtype="int64", value=longest)
    i = pd.zeros(shape=[1], dtype="int64", force_cpu=True)
    states, ids, scores = pd.create_array("float32"), pd.create_array("int64"), pd.create_array("float32")
    first_ids = pd.data(name="first_ids", shape=[1], dtype="int64", lod_level=2)
    first_scores = pd.data(name="first_scores", shape=[1], dtype="float32", lod_level=2)
    for value, array in ((context, states), (first_ids, ids), (first_scores, scores)):
        pd.array_write(value, array=array, i=i)
    cond = pd.less_than(x=i, y=last)
    with pd.While(cond=cond).block():
        before_ids, before_scores = pd.array_read(array=ids, i=i), pd.array_read(array=scores, i=i)
        state = pd.sequence_expand(pd.array_read(array=states, i=i), before_scores)
        embedded = pd.embedding(input=before_ids, size=[words, size], param_attr=fluid.ParamAttr(name="vemb"))
        state = step(state, embedded)
        top_scores, top_ids = pd.topk(score(pd.lod_reset(x=state, y=before_scores)), k=beam)
        sums = pd.elementwise_add(x=pd.log(top_scores), y=pd.reshape(before_scores, shape=[-1]), axis=0)
        found_ids, found_scores = pd.beam_search(before_ids, before_scores, top_ids, sums, beam, end_id=end, level=0)
        pd.increment(x=i, value=1, in_place=True)
        for value, array in ((state, states), (found_ids, ids), (found_scores, scores)):
            pd.array_write(value, array=array, i=i)
        more = pd.logical_not(pd.is_empty(x=found_ids))
        pd.logical_and(x=pd.less_than(x=i, y=last), y=more, out=cond)
    return pd.beam_search_decode(ids=ids, scores=scores, beam_size=beam, end_id=end)


def main():
    place = fluid.CPUPlace()
    exe = Executor(place)
    loss = trainer(encoder())
    fluid.optimizer.Adagrad(
        learning_rate=0.1, regularization=fluid.regularizer.L2DecayRegularizer(regularization_coeff=0.001)
    ).minimize(loss)
    exe.run(framework.default_startup_program())
    batch = [([2, 3, 4], [0, 4, 3, 2], [4, 3, 2, end]), ([5, 6], [0, 6, 5], [6, 5, end])]
    names = ["source", "target", "label"]
    feeder = fluid.DataFeeder([framework.default_main_program().global_block().var(n) for n in names], place)
    losses = [exe.run(feed=feeder.feed(batch), fetch_list=[loss])[0] for _ in range(60)]
    print("loss", losses[0], "then", losses[-1])
    assert losses[-1] < 0.5 * losses[0]

    decoding = fluid.Program()
    with fluid.program_guard(decoding, fluid.Program()):
        with fluid.unique_name.guard():
            results = decoder(encoder())
    lengths = [[1] * 2, [1] * 2]
    feed = fluid.DataFeeder([decoding.global_block().var("source")], place).feed([[each[0]] for each in batch])
    feed["first_ids"] = fluid.create_lod_tensor(np.zeros((2, 1), "int64"), lengths, place)
    feed["first_scores"] = fluid.create_lod_tensor(np.ones((2, 1), "float32"), lengths, place)
    found, _ = exe.run(decoding, feed=feed, fetch_list=list(results), return_numpy=False)
    sources, candidates = found.recursive_sequence_lengths()
    print("sentences", sources, "of lengths", candidates)
    assert len(sources) == 2 and sum(sources) == len(candidates)


if __name__ == "__main__":
    main()
    print("done")
