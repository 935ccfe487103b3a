"""Loops, branches, gradients and readers."""

import unittest

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.layers as layers
from decorators import prog_scope
from paddle.fluid.backward import append_backward, calc_gradient
from paddle.fluid.executor import Executor
from paddle.fluid.layers.control_flow import (
    ConditionalBlock,
    array_to_lod_tensor,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    shrink_memory,
)


def constant(value, dtype="float32"):
    return layers.fill_constant(shape=[1], dtype=dtype, value=value)


class TestLoops(unittest.TestCase):
    @prog_scope()
    def test_a_loop_in_a_loop(self):
        data = [layers.data("d" + str(k), shape=[10], append_batch_size=False, dtype="float32") for k in range(3)]
        i = layers.zeros(shape=[1], dtype="int64")
        memory = layers.array_write(x=layers.zeros(shape=[10], dtype="float32"), i=i)
        parts = layers.array_write(x=data[0], i=i)
        for each in data[1:]:
            i = layers.increment(i)
            layers.array_write(each, i, array=parts)
        i, j = layers.zeros(shape=[1], dtype="int64"), constant(1, "int64")
        ends = constant(1, "int64"), constant(3, "int64")
        conds = layers.less_than(x=i, y=ends[0]), layers.less_than(x=j, y=ends[1])
        outer, inner = layers.While(cond=conds[0]), layers.While(cond=conds[1])

        def add(k):
            total = layers.sums(input=[layers.array_read(array=parts, i=k), layers.array_read(array=memory, i=k)])
            k = layers.increment(x=k, in_place=True)
            layers.array_write(total, i=k, array=memory)

        with outer.block():
            add(i)
            layers.less_than(x=i, y=ends[0], cond=conds[0])
            with inner.block():
                add(j)
                layers.less_than(x=j, y=ends[1], cond=conds[1])
        total = layers.array_read(array=memory, i=j)
        append_backward(layers.mean(total))
        given = [np.random.random(size=[10]).astype("float32") for _ in range(3)]
        exe = Executor(core.CPUPlace())
        got, = exe.run(feed=dict(("d" + str(k), v) for k, v in enumerate(given)), fetch_list=[total])
        self.assertTrue(np.allclose(got, sum(given), rtol=1e-5))

    @prog_scope()
    def test_words_step_by_step(self):
        """What DynamicRNN does, by hand; its first state has gradients that go nowhere."""
        words = layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
        embedded = layers.embedding(input=words, size=[30, 8])
        table = lod_rank_table(x=embedded)
        steps = lod_tensor_to_array(x=embedded, table=table)
        length = max_sequence_len(rank_table=table)
        i = constant(0, "int64")
        i.stop_gradient = False
        boot = layers.fill_constant_batch_size_like(
            input=layers.array_read(array=steps, i=i), value=0, shape=[-1, 6], dtype="float32"
        )
        boot.stop_gradient = False
        memory, out = layers.array_write(x=boot, i=i), layers.create_array(dtype="float32")
        cond = layers.less_than(x=i, y=length)
        cond.stop_gradient = False
        with layers.While(cond=cond).block():
            before = shrink_memory(x=layers.array_read(array=memory, i=i), i=i, table=table)
            hidden = layers.fc(input=[before, layers.array_read(array=steps, i=i)], size=6, act="tanh")
            layers.array_write(x=hidden, i=i, array=out)
            layers.increment(x=i, in_place=True)
            layers.array_write(x=hidden, i=i, array=memory)
            layers.less_than(x=i, y=length, cond=cond)
        states = array_to_lod_tensor(x=out, table=table)
        self.assertEqual(states.lod_level, embedded.lod_level)
        loss = layers.mean(layers.fc(input=layers.sequence_last_step(input=states), size=1))
        fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        exe = Executor(core.CPUPlace())
        exe.run(fluid.default_startup_program())
        ids = fluid.create_lod_tensor(np.array([[1], [2], [3], [4], [5]], "int64"), [[2, 3]], core.CPUPlace())
        first, second = (
            exe.run(feed={"words": ids}, fetch_list=[loss, states], return_numpy=False) for _ in range(2)
        )
        self.assertEqual(first[1].recursive_sequence_lengths(), [[2, 3]])
        self.assertLess(np.array(second[0])[0], np.array(first[0])[0])

    @prog_scope()
    def test_dynamic_rnn_in_dynamic_rnn(self):
        words = layers.data(name="words", shape=[1], dtype="int64", lod_level=2)
        label = layers.data(name="label", shape=[1], dtype="float32", lod_level=1)
        outer = layers.DynamicRNN()
        with outer.block():
            sentence = outer.step_input(words)
            self.assertEqual(sentence.lod_level, 1)
            embedded = layers.embedding(input=sentence, size=[30, 8])
            inner = layers.DynamicRNN()
            with inner.block():
                inner.output(layers.fc(input=inner.step_input(embedded), size=5, act="tanh"))
            outer.output(layers.sequence_last_step(input=inner()))
        logits = layers.fc(input=outer(), size=1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(x=logits, label=label))
        fluid.optimizer.Adam(learning_rate=0.05).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        batch = [([[1, 2], [3, 4]], [0, 1]), ([[5, 6], [7, 8]], [0, 1])]
        feeder = fluid.DataFeeder(feed_list=[words, label], place=fluid.CPUPlace())
        losses = [float(exe.run(feed=feeder.feed(batch), fetch_list=[loss])[0]) for _ in range(12)]
        self.assertLess(losses[-1], losses[0])

    @prog_scope()
    def test_static_rnn(self):
        x = layers.data(name="x", shape=[4, 2, 3], append_batch_size=False)
        rnn = layers.StaticRNN()
        with rnn.step():
            total = rnn.memory(shape=[-1, 3], batch_ref=x)
            added = layers.elementwise_add(x=total, y=rnn.step_input(x))
            rnn.update_memory(total, added)
            rnn.step_output(added)
        given = np.random.random((4, 2, 3)).astype("float32")
        got, = Executor(core.CPUPlace()).run(feed={"x": given}, fetch_list=[rnn()])
        self.assertTrue(np.allclose(got, given.cumsum(0), rtol=1e-5))


class TestBranches(unittest.TestCase):
    def chosen(self, value):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x = constant(value)
            result = layers.create_global_var(shape=[1], value=-1.0, dtype="float32", persistable=True)
            with layers.Switch() as switch:
                for limit in (0.0, 1.0, 2.0):
                    with switch.case(layers.less_than(x, constant(limit))):
                        layers.assign(constant(limit), result)
                with switch.default():
                    layers.assign(constant(9.0), result)
            exe = Executor(core.CPUPlace())
            exe.run(fluid.default_startup_program())
            return float(exe.run(fetch_list=[result])[0])

    @prog_scope()
    def test_switch(self):
        self.assertEqual([self.chosen(v) for v in (-0.5, 0.5, 1.5, 2.5)], [0.0, 1.0, 2.0, 9.0])

    @prog_scope()
    def test_if_else(self):
        x = layers.data(name="x", shape=[1])
        ie = layers.IfElse(layers.less_than(x=x, y=constant(0.0)))
        with ie.true_block():
            ie.output(layers.scale(ie.input(x), scale=-1.0))
        with ie.false_block():
            ie.output(ie.input(x))
        out = ie()
        out = out[0] if isinstance(out, list) else out
        given = np.array([[-2.0], [3.0], [-4.0]], "float32")
        got, = Executor(core.CPUPlace()).run(feed={"x": given}, fetch_list=[out])
        self.assertTrue(np.array_equal(got, np.abs(given)))

    @prog_scope()
    def test_conditional_block(self):
        x = layers.data(name="X", shape=[1], dtype="float32")
        x.stop_gradient = False
        cond = ConditionalBlock(inputs=[x])
        out = layers.create_tensor(dtype="float32")
        with cond.block():
            layers.assign(layers.fc(input=x, size=10), out)
        append_backward(loss=layers.mean(out))
        exe = Executor(core.CPUPlace())
        exe.run(fluid.default_startup_program())
        slope = fluid.default_main_program().block(0).var(x.name + "@GRAD")
        values = exe.run(feed={"X": np.ones((4, 1), "float32")}, fetch_list=[out, slope])
        self.assertEqual([v.shape for v in values], [(4, 10), (4, 1)])


class TestGradients(unittest.TestCase):
    @prog_scope()
    def test_calc_gradient(self):
        x = layers.create_parameter(shape=[5, 10], dtype="float32")
        y = layers.create_parameter(shape=[10, 8], dtype="float32")
        product = layers.mul(x=x, y=y)
        mean = layers.mean(product)
        of_product, of_x = calc_gradient(mean, product), calc_gradient(mean, x)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        got = exe.run(feed={}, fetch_list=[of_product, of_x, y])
        self.assertTrue(np.allclose(got[0], 1.0 / 40))
        self.assertTrue(np.allclose(got[1], np.tile(got[2].sum(1) / 40, (5, 1)), rtol=1e-4))

    @prog_scope()
    def test_gradient_of_a_gradient(self):
        x = layers.create_parameter(shape=[1], dtype="float32", default_initializer=fluid.initializer.Constant(3))
        first, = fluid.gradients(x * x, x)
        moved = x - first
        second, = fluid.gradients(moved * moved, x)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        self.assertEqual([float(v) for v in exe.run(fetch_list=[first.name, second.name])], [6.0, 6.0])

    @prog_scope()
    def test_descs_of_gradients(self):
        x = layers.data(name="x", shape=[3])
        layers.relu(x)
        block = fluid.default_main_program().desc.block(0)
        grads, names = core.get_grad_op_desc(block.op(block.op_size() - 1), set(), [])
        self.assertEqual([op.type() for op in grads], ["relu_grad"])
        self.assertEqual(names, {"x@GRAD": "x"})
        self.assertEqual(grads[0].output("X@GRAD"), ["x@GRAD"])


class TestReaders(unittest.TestCase):
    def test_what_wraps_them(self):
        reader = paddle.reader.shuffle(lambda: iter(range(10)), buf_size=5)
        batches = list(paddle.batch(reader, batch_size=4)())
        self.assertEqual([len(b) for b in batches], [4, 4, 2])
        self.assertEqual(sorted(sum(batches, [])), list(range(10)))


if __name__ == "__main__":
    unittest.main()
