"""Executors of descriptions, errors, the profiler, several devices, files."""

import math
import os
import shutil
import tempfile
import unittest
from importlib import reload

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.executor as executor
import paddle.fluid.io as io
import paddle.fluid.layers as layers
import paddle.fluid.profiler as profiler
from decorators import prog_scope
from paddle.fluid.framework import Program, program_guard


class TestExecutorOfDescs(unittest.TestCase):
    def test_feed_and_fetch_by_columns(self):
        program = Program()
        with program_guard(program, Program()):
            y = layers.scale(layers.data(name="x", shape=[2]), scale=3.0)
        block = program.global_block()
        feed = block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH, persistable=True)
        fetch = block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST, persistable=True)
        block._prepend_op(type="feed", inputs={"X": [feed]}, outputs={"Out": ["x"]}, attrs={"col": 0})
        block.append_op(type="fetch", inputs={"X": [y]}, outputs={"Out": [fetch]}, attrs={"col": 0})
        scope, tensor = core.Scope(), core.LoDTensor()
        tensor.set(np.array([[1, 2]], "float32"), core.CPUPlace())
        core.set_feed_variable(scope, tensor, "feed", 0)
        core.Executor(core.CPUPlace()).run(program.desc, scope, 0, True, True)
        self.assertEqual(np.array(core.get_fetch_variable(scope, "fetch", 0)).tolist(), [[3, 6]])


class TestErrors(unittest.TestCase):
    @prog_scope()
    def test_before_the_startup_program(self):
        out = layers.fc(input=layers.data(name="x", shape=[2]), size=1)
        exe = fluid.Executor(fluid.CPUPlace())
        with self.assertRaises(core.EnforceNotMet):
            exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[out])

    @prog_scope()
    def test_shapes_that_do_not_fit(self):
        x, w = layers.data(name="x", shape=[2]), layers.create_parameter(shape=[3, 4], dtype="float32")
        with self.assertRaises(core.EnforceNotMet):
            layers.mul(x, w)
        self.assertTrue(issubclass(core.EOFException, core.EnforceNotMet))

    @prog_scope()
    def test_what_only_a_run_can_see(self):
        """A program that could not run is built all the same."""
        x = layers.data(name="x", shape=[10, 10], lod_level=1)
        layers.sequence_softmax(layers.fc(input=x, size=20))
        layers.mean_iou(layers.data(name="p", shape=[16]), layers.data(name="l", shape=[1], dtype="int64"), 2)


class TestProfiler(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    @prog_scope()
    def test_states_and_keys(self):
        out = layers.fc(input=layers.data(name="x", shape=[2]), size=1)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feed, path = {"x": np.ones((1, 2), "float32")}, os.path.join(self.folder, "profile")
        core.enable_profiler(core.ProfilerState.kCPU)
        self.assertTrue(core.is_profiler_enabled())
        exe.run(feed=feed, fetch_list=[out])
        core.reset_profiler()
        for key in (core.EventSortingKey.kTotal, core.EventSortingKey.kDefault):
            core.enable_profiler(core.ProfilerState.kAll)
            core.disable_profiler(key, path)
        self.assertFalse(core.is_profiler_enabled())
        self.assertTrue(os.path.exists(path))
        with profiler.profiler("CPU", "calls", path):
            exe.run(feed=feed, fetch_list=[out])
        with self.assertRaises(ValueError):
            profiler.start_profiler("Fast")


class TestSeveralDevices(unittest.TestCase):
    @prog_scope()
    def test_they_are_one(self):
        loss = layers.mean(layers.fc(input=layers.data(name="x", shape=[3]), size=1))
        fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        strategies = fluid.ExecutionStrategy(), fluid.BuildStrategy()
        strategies[0].num_threads = 1
        strategies[1].reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        several = fluid.ParallelExecutor(
            use_cuda=False, loss_name=loss.name, exec_strategy=strategies[0], build_strategy=strategies[1]
        )
        feed = {"x": np.ones((2, 3), "float32")}
        losses = [several.run(fetch_list=[loss.name], feed=feed)[0]]
        compiled = fluid.compiler.CompiledProgram(fluid.default_main_program()).with_data_parallel(
            loss_name=loss.name, build_strategy=strategies[1], exec_strategy=strategies[0]
        )
        losses += [exe.run(compiled, feed=feed, fetch_list=[loss.name])[0] for _ in range(2)]
        values = [float(each) for each in losses]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertFalse(math.isnan(losses[0]))


class TestFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def trained(self):
        x, y = layers.data(name="x", shape=[2]), layers.data(name="y", shape=[1])
        predicted = layers.fc(input=x, size=1, act=None)
        cost = layers.mean(layers.square_error_cost(input=predicted, label=y))
        fluid.optimizer.SGDOptimizer(learning_rate=0.01).minimize(cost, fluid.default_startup_program())
        exe = executor.Executor(core.CPUPlace())
        exe.run(fluid.default_startup_program(), feed={}, fetch_list=[])
        feed = {"x": np.array([[1, 1], [1, 2], [3, 4]], "float32"), "y": np.array([[-2], [-3], [-7]], "float32")}
        for _ in range(5):
            exe.run(feed=feed, fetch_list=[cost])
        return exe, feed, predicted, cost

    @prog_scope()
    def test_an_inference_model_in_another_scope(self):
        exe, feed, predicted, cost = self.trained()
        io.save_inference_model(self.folder, ["x", "y"], [cost], exe)
        expected = exe.run(fluid.default_main_program(), feed=feed, fetch_list=[cost])[0]
        reload(executor)
        exe = executor.Executor(core.CPUPlace())
        with fluid.scope_guard(core.Scope()):
            program, feeds, fetches = io.load_inference_model(self.folder, exe)
            got, = exe.run(program, feed=dict((name, feed[name]) for name in feeds), fetch_list=fetches)
        self.assertEqual(feeds, ["x", "y"])
        self.assertEqual(expected, got)

    @prog_scope()
    def test_a_whole_program_without_ends(self):
        exe, feed, predicted, cost = self.trained()
        io.save_inference_model(
            self.folder, [], [], exe, model_filename="model", params_filename="params", export_for_deployment=False
        )
        program, feeds, fetches = io.load_inference_model(self.folder, exe, "model", "params")
        self.assertEqual((feeds, fetches), ([], []))
        self.assertIn("sgd", [op.type for op in program.global_block().ops])

    @prog_scope()
    def test_parameters(self):
        exe, feed, predicted, cost = self.trained()
        weight = fluid.default_main_program().global_block().all_parameters()[0]
        before = np.array(fluid.global_scope().find_var(weight.name).get_tensor())
        io.save_params(exe, self.folder)
        io.save_persistables(executor=exe, dirname=self.folder, main_program=None, filename="all")
        for load in (
            lambda: io.load_params(exe, self.folder),
            lambda: io.load_persistables(exe, self.folder, filename="all"),
            lambda: io.load_vars(exe, self.folder, fluid.default_main_program(), vars=[weight]),
        ):
            fluid.global_scope().find_var(weight.name).get_tensor().set(np.zeros_like(before), core.CPUPlace())
            load()
            self.assertTrue((np.array(io.get_parameter_value(weight, exe)) == before).all())
        self.assertTrue(io.is_parameter(weight) and io.is_persistable(weight))


if __name__ == "__main__":
    unittest.main()
