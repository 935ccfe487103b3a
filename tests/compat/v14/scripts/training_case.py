"""Schedules, optimizers, decay, clips and initializers."""

import math
import unittest

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.framework as framework
import paddle.fluid.initializer as initializer
import paddle.fluid.layers as layers
import paddle.fluid.optimizer as optimizer
import paddle.fluid.regularizer as regularizer
from decorators import prog_scope
from paddle.fluid.backward import append_backward


def mean_of_product(**kwargs):
    """A program with one parameter, without layers."""
    program = framework.Program()
    block = program.global_block()
    x = block.create_parameter(name="mul.x", shape=[5, 10], dtype="float32", lod_level=0, **kwargs)
    y = block.create_var(name="mul.y", shape=[10, 8], dtype="float32", lod_level=0)
    out = block.create_var(name="mul.out", shape=[5, 8], dtype="float32", lod_level=0)
    block.append_op(type="mul", inputs={"X": x, "Y": y}, outputs={"Out": out}, attrs={"x_num_col_dims": 1})
    mean = block.create_var(name="mean.out", shape=[1], dtype="float32", lod_level=0)
    block.append_op(type="mean", inputs={"X": out}, outputs={"Out": mean})
    return program, x, mean


class TestSchedules(unittest.TestCase):
    def check(self, schedule, expected, first=0, **kwargs):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            rate = schedule(**kwargs)
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(core.Scope()):
            exe.run(startup)
            for step in range(first, first + 12):
                got, = exe.run(main, feed={}, fetch_list=[rate])
                self.assertAlmostEqual(expected(step), got[0], places=5, msg=str(step))

    def test_exponential(self):
        def check(staircase, cut):
            kwargs = dict(learning_rate=1.0, decay_steps=5, decay_rate=0.5, staircase=staircase)
            self.check(layers.exponential_decay, lambda step: 0.5 ** cut(step / 5.0), **kwargs)
            self.check(layers.natural_exp_decay, lambda step: math.exp(-0.5 * cut(step / 5.0)), **kwargs)
            self.check(layers.inverse_time_decay, lambda step: 1.0 / (1 + 0.5 * cut(step / 5.0)), **kwargs)

        check(True, math.floor)
        check(False, float)

    def test_polynomial(self):
        def expected(step):
            return (1.0 - 0.1) * (1 - min(step, 5) / 5.0) ** 2 + 0.1

        self.check(
            layers.polynomial_decay, expected, learning_rate=1.0, decay_steps=5, end_learning_rate=0.1, power=2.0
        )

    def test_piecewise(self):
        def expected(step):
            return 0.1 if step < 3 else 0.2 if step < 6 else 0.3

        self.check(layers.piecewise_decay, expected, boundaries=[3, 6], values=[0.1, 0.2, 0.3])

    def test_noam(self):
        def expected(step):
            return 16 ** -0.5 * min(step ** -0.5, step * 4 ** -1.5)

        self.check(layers.noam_decay, expected, first=1, d_model=16, warmup_steps=4)

    @prog_scope()
    def test_a_schedule_in_an_optimizer(self):
        rate = layers.exponential_decay(learning_rate=0.5, decay_steps=1, decay_rate=0.5)
        loss = layers.mean(layers.fc(input=layers.data(name="x", shape=[2]), size=1))
        fluid.optimizer.SGD(learning_rate=rate).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        rates = [float(exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[rate])[0]) for _ in range(3)]
        self.assertEqual(rates, [0.5, 0.25, 0.125])


class TestOptimizers(unittest.TestCase):
    class Momentum(optimizer.MomentumOptimizer):
        def get_accumulators(self):
            return self._accumulators

        def get_velocity_str(self):
            return self._velocity_acc_str

    def test_sgd(self):
        program, _, mean = mean_of_product(optimize_attr={"learning_rate": 1.1})
        init_program = framework.Program()
        with framework.program_guard(program, init_program):
            opts, params_grads = optimizer.SGDOptimizer(learning_rate=0.01).minimize(mean, init_program)
        self.assertEqual([op.type for op in opts], ["scale", "sgd"])
        self.assertEqual([(p.name, g.name) for p, g in params_grads], [("mul.x", "mul.x@GRAD")])

    def test_momentum_keeps_a_velocity(self):
        program, x, mean = mean_of_product()
        init_program = framework.Program()
        momentum = self.Momentum(learning_rate=0.01, momentum=0.2, use_nesterov=True)
        params_grads = append_backward(mean)
        self.assertEqual(len(momentum.get_accumulators()), 0)
        with framework.program_guard(program, init_program):
            opts = momentum.apply_gradients(params_grads)
        self.assertEqual(opts[-1].type, "momentum")
        self.assertTrue(opts[-1].attr("use_nesterov"))
        velocity = momentum.get_accumulators()[momentum.get_velocity_str()]
        self.assertEqual(list(velocity), [x.name])
        first = init_program.global_block().ops
        self.assertEqual([op.type for op in first], ["fill_constant", "fill_constant"])
        self.assertAlmostEqual(first[0].attr("value"), 0.01)

    def test_what_others_keep(self):
        for made, kept in (
            (optimizer.AdagradOptimizer(0.1), 1),
            (optimizer.AdamOptimizer(0.1), 4),
            (optimizer.AdamaxOptimizer(0.1), 3),
            (optimizer.DecayedAdagradOptimizer(0.1), 1),
            (optimizer.FtrlOptimizer(0.1), 2),
            (optimizer.RMSPropOptimizer(0.1), 3),
            (optimizer.AdadeltaOptimizer(0.1), 2),
        ):
            program, x, mean = mean_of_product()
            with framework.program_guard(program, framework.Program()):
                made.apply_gradients(append_backward(mean))
            self.assertEqual([list(each) for each in made._accumulators.values()], [[x.name]] * kept)


class TestDecay(unittest.TestCase):
    def appended(self, decay):
        program, x, mean = mean_of_product(regularizer=decay)
        self.assertIs(x.regularizer, decay)
        params_grads = append_backward(mean)
        before = len(program.global_block().ops)
        params_grads = optimizer.append_regularization_ops(params_grads)
        self.assertEqual(len(params_grads), 1)
        return [op.type for op in program.global_block().ops[before:]]

    def test_of_squares(self):
        self.assertEqual(self.appended(regularizer.L2DecayRegularizer(0.5)), ["scale", "sum"])

    def test_of_sizes(self):
        self.assertEqual(self.appended(regularizer.L1DecayRegularizer(0.5)), ["sign", "scale", "sum"])


class TestClips(unittest.TestCase):
    def net(self):
        x = layers.data(name="x", shape=[3])
        hidden = layers.fc(input=x, size=4, act="tanh")
        return hidden, layers.mean(layers.fc(input=hidden, size=1))

    @prog_scope()
    def test_the_global_norm(self):
        _, loss = self.net()
        plain, clipped = fluid.default_main_program(), fluid.default_main_program().clone()
        pairs = append_backward(loss=loss)
        pairs_clipped = append_backward(loss=clipped.block(0).var(loss.name))
        with fluid.program_guard(main_program=clipped, startup_program=fluid.default_startup_program()):
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(clip_norm=0.01))
            pairs_clipped = fluid.clip.append_gradient_clip_ops(pairs_clipped)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feed = {"x": np.random.random((4, 3)).astype("float32")}
        before = exe.run(plain, feed=feed, fetch_list=[g for _, g in pairs])
        after = exe.run(clipped, feed=feed, fetch_list=[g for _, g in pairs_clipped])
        norm = math.sqrt(sum((v ** 2).sum() for v in before))
        for u, v in zip(before, after, strict=True):
            self.assertTrue(np.allclose(u * 0.01 / max(norm, 0.01), v, rtol=1e-4, atol=1e-7))

    @prog_scope()
    def test_errors_on_the_way(self):
        hidden, loss = self.net()
        hidden._set_error_clip(fluid.clip.ErrorClipByValue(max=2e-6, min=-1e-6))
        append_backward(loss=loss, callbacks=[fluid.clip.error_clip_callback])
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        slope = fluid.default_main_program().block(0).var(hidden.name + "@GRAD")
        got, = exe.run(feed={"x": np.random.random((4, 3)).astype("float32")}, fetch_list=[slope])
        self.assertLess(got.max(), 2.01e-6)
        self.assertGreater(got.min(), -1.01e-6)


class TestInitializers(unittest.TestCase):
    def op(self, init, shape=(5, 10)):
        program = framework.Program()
        block = program.global_block()
        for _ in range(2):
            block.create_parameter(
                dtype="float32", shape=list(shape), lod_level=0, name="param", initializer=init
            )
        op, = block.ops
        return op

    def test_their_operators(self):
        self.assertAlmostEqual(self.op(initializer.ConstantInitializer(2.3)).attr("value"), 2.3, delta=1e-6)
        uniform = self.op(initializer.UniformInitializer(-4.2, 3.1, 123))
        self.assertEqual((uniform.type, uniform.attr("seed")), ("uniform_random", 123))
        xavier = self.op(initializer.XavierInitializer(), (5, 10, 15, 20))
        self.assertAlmostEqual(xavier.attr("max"), math.sqrt(6.0 / (15 * 300)), delta=1e-6)
        normal = self.op(initializer.MSRAInitializer(uniform=False))
        self.assertAlmostEqual(normal.attr("std"), math.sqrt(2.0 / 5), delta=1e-6)
        self.assertEqual(self.op(initializer.BilinearInitializer(), (8, 1, 3, 3)).type, "assign_value")
        values = np.random.random(6).astype("float32")
        stored = self.op(initializer.NumpyArrayInitializer(values), (6,)).attr("fp32_values")
        self.assertTrue((np.array(stored, "float32") == values).all())


if __name__ == "__main__":
    unittest.main()
