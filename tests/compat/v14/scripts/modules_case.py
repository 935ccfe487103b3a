"""Modules by the names that the versions gave them."""

import importlib
import unittest

import paddle
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.framework as framework

THERE = """average backward clip compiler contrib contrib.decoder.beam_search_decoder
core data_feeder debugger default_scope_funcs evaluator executor framework
graphviz inferencer initializer install_check io layer_helper layer_helper_base layers layers.control_flow
layers.detection layers.io layers.learning_rate_scheduler layers.metric_op layers.nn layers.ops layers.tensor
lod_tensor metrics
net_drawer nets op optimizer parallel_executor param_attr profiler proto.framework_pb2 regularizer trainer transpiler
transpiler.inference_transpiler transpiler.memory_optimization_transpiler unique_name
distribute_transpiler transpiler.distribute_transpiler transpiler.ps_dispatcher"""

TO_COME = """annotations async_executor contrib.quantize contrib.slim
data_feed_desc device_worker distribute_lookup_table dygraph dygraph.nn dygraph.base dygraph_grad_clip imperative
incubate.fleet layers.layer_function_generator layers.math_op_patch log_helper recordio_writer
trainer_desc transpiler.details wrapped_decorator"""


class TestModules(unittest.TestCase):
    def test_those_that_are_there(self):
        for name in THERE.split():
            self.assertIsNotNone(importlib.import_module("paddle.fluid." + name))
        self.assertIs(importlib.import_module("paddle.fluid.data_feeder").DataFeeder, fluid.DataFeeder)
        self.assertIs(importlib.import_module("paddle.fluid.lod_tensor").create_lod_tensor, fluid.create_lod_tensor)

    def test_those_that_are_to_come_say_so(self):
        for name in TO_COME.split():
            module = importlib.import_module("paddle.fluid." + name)
            with self.assertRaises(NotImplementedError) as caught:
                module.anything(1, two=2)
            self.assertIn(f"fluid.{name}.anything is not part of fluidnb", str(caught.exception))

    def test_they_are_used_in_other_ways(self):
        from paddle.fluid.layers.device import get_places

        self.assertEqual(4, len(get_places(device_count=4)))
        self.assertIs(fluid.layers.device.get_places, get_places)
        self.assertEqual(core.is_compiled_with_cuda(), core.op_support_gpu("sum"))
        with self.assertRaises(NotImplementedError):
            with fluid.dygraph.guard():
                pass
        with self.assertRaises(NotImplementedError):
            class Net(fluid.dygraph.Layer):
                pass
        with self.assertRaises(NotImplementedError):
            fluid.DatasetFactory().create_dataset("InMemoryDataset")

    def test_names_of_the_core(self):
        for name in "AnalysisConfig NativeConfig PaddleTensor Graph get_pass Reader VarBase".split():
            with self.assertRaises(NotImplementedError):
                getattr(core, name)()
        with self.assertRaises(AttributeError):
            getattr(core, "NothingLikeIt" + "")
        with self.assertRaises(NotImplementedError):
            framework.IrGraph(None)

    def test_names_of_the_package(self):
        self.assertIs(paddle.fluid, fluid)
        for name in "Tensor LoDTensor CPUPlace CUDAPlace CUDAPinnedPlace Scope ParamAttr DataFeeder Executor".split():
            self.assertTrue(callable(getattr(fluid, name)), name)
        self.assertIs(core._Scope, core.Scope)
        self.assertFalse(core.is_compiled_with_ngraph() or core.is_compiled_with_dist())
        core.print_mem_usage()
        fluid.install_check.run_check()


if __name__ == "__main__":
    unittest.main()
