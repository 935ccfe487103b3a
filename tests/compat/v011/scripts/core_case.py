"""Random operators, flags, names, memory, feeds and fetches: what scripts asked of the core."""

import unittest

import numpy as np
import paddle.v2.fluid as fluid
import paddle.v2.fluid.core as core
from paddle.v2.fluid.op import Operator


class TestRandom(unittest.TestCase):
    def run_once(self, op_type, **attrs):
        scope, place = core.Scope(), core.CPUPlace()
        scope.var("X").get_tensor()
        op = Operator(op_type, Out="X", shape=[100, 50], **attrs)
        op.infer_shape(scope)
        self.assertEqual([100, 50], scope.find_var("X").get_tensor().get_dims())
        op.run(scope, core.DeviceContext.create(place))
        return np.array(scope.find_var("X").get_tensor())

    def test_uniform(self):
        found = self.run_once("uniform_random", min=-5.0, max=10.0, seed=10)
        self.assertAlmostEqual(found.mean(), 2.5, delta=0.3)
        self.assertTrue((found == self.run_once("uniform_random", min=-5.0, max=10.0, seed=10)).all())

    def test_gaussian(self):
        found = self.run_once("gaussian_random", mean=0.0, std=1.0, seed=10)
        self.assertAlmostEqual(found.mean(), 0.0, delta=0.1)
        self.assertAlmostEqual(found.std(), 1.0, delta=0.1)


class TestCore(unittest.TestCase):
    def test_flags_and_devices(self):
        core.init_gflags(["test", "--check_nan_inf=false"])
        core.init_glog("test")
        core.init_devices(False)
        self.assertFalse(core.is_compile_gpu() and not core.op_support_gpu("mul"))
        self.assertTrue(isinstance(core.GPUPlace(0), core.CUDAPlace))
        self.assertIsNotNone(core.DeviceContext.create(core.CPUPlace()))

    def test_names(self):
        self.assertEqual("@EMPTY@", core.empty_var_name())
        self.assertEqual("@GRAD", core.grad_var_suffix())
        first = core.unique_integer("a prefix of its own")
        self.assertEqual(first + 1, core.unique_integer("a prefix of its own"))

    def test_an_exception(self):
        try:
            core.__unittest_throw_exception__()
        except core.EnforceNotMet as error:
            self.assertTrue("test exception" in str(error))
        else:
            self.fail("nothing was raised")

    def test_feed_and_fetch_variables(self):
        scope = core.Scope()
        tensor = core.LoDTensor([[0, 2, 4]])
        tensor.set(np.ones((4, 3), "float32"), core.CPUPlace())
        core.set_feed_variable(scope, tensor, "feed", 0)
        found = core.get_fetch_variable(scope, "feed", 0)
        self.assertEqual([[0, 2, 4]], found.lod())
        self.assertEqual((4, 3), np.array(found).shape)

    def test_memory(self):
        place = core.CPUPlace()
        before = core.memory.used(place)
        chunk = core.memory.alloc(place, 4096)
        self.assertTrue(core.memory.used(place) >= before + 4096)
        core.memory.free(place, chunk)
        self.assertEqual(before, core.memory.used(place))

    def test_a_block_in_a_scope_of_mine(self):
        program = fluid.Program()
        block = program.global_block()
        block.create_var(name="y", shape=[2], dtype="float32", persistable=True)
        block.append_op("fill_constant", {}, {"Out": "y"}, {"shape": [2], "value": 3.0, "dtype": core.DataType.FP32})
        scope = core.Scope()
        core.Executor(core.CPUPlace()).run(program.desc, scope, 0, True, True)
        self.assertEqual([3.0, 3.0], np.array(scope.find_var("y").get_tensor()).tolist())


class TestShapes(unittest.TestCase):
    def test_sum_of_bare_descriptions(self):
        block = core.ProgramDesc().block(0)
        for name in ("x1", "x2", "out"):
            block.var(name).set_type(core.VarDesc.VarType.LOD_TENSOR)
        block.var("x1").set_shape([10, 20])
        block.var("x2").set_shape([10, 20])
        desc = block.append_op()
        desc.set_type("sum")
        desc.set_input("X", ["x1", "x2"])
        desc.set_output("Out", ["out"])
        desc.check_attrs()
        desc.infer_shape(block)
        self.assertEqual([10, 20], block.find_var("out").shape())


if __name__ == "__main__":
    unittest.main()
