"""Gradients: of one description, of a whole program, of an operator that is its own."""

import unittest

import numpy as np
import paddle.v2.fluid as fluid
import paddle.v2.fluid.core as core
from paddle.v2.fluid.op import Operator


class TestGradOpDesc(unittest.TestCase):
    def setUp(self):
        self.program = fluid.Program()
        self.block = self.program.global_block()
        for name, shape in (("x", [2, 3]), ("y", [3, 4]), ("out", [2, 4])):
            self.block.create_var(name=name, shape=shape, dtype="float32")
        self.mul = self.block.append_op("mul", {"X": ["x"], "Y": ["y"]}, {"Out": ["out"]})

    def test_list_and_map(self):
        descs, names = core.get_grad_op_desc(self.mul.desc, set(), [])
        self.assertEqual(["mul_grad"], [desc.type() for desc in descs])
        self.assertEqual({"x@GRAD": "x", "y@GRAD": "y"}, names)

    def test_without_one(self):
        descs, names = core.get_grad_op_desc(self.mul.desc, set(["x@GRAD"]), [])
        self.assertEqual([core.empty_var_name()], descs[0].output("X" + core.grad_var_suffix()))
        self.assertEqual({"y@GRAD": "y"}, names)

    def test_in_a_program(self):
        desc = core.get_grad_op_desc(self.mul.desc, set(), [])[0][0]
        new = self.block.desc.append_op()
        new.copy_from(desc)
        for name in desc.input_arg_names() + desc.output_arg_names():
            self.block.desc.var(name)
        self.program.sync_with_cpp()
        new.infer_var_type(self.block.desc)
        new.infer_shape(self.block.desc)
        x = np.random.random((2, 3)).astype("float32")
        y = np.random.random((3, 4)).astype("float32")
        slope = np.random.random((2, 4)).astype("float32")
        exe = fluid.Executor(core.CPUPlace())
        found = exe.run(self.program, feed={"x": x, "y": y, "out@GRAD": slope}, fetch_list=["x@GRAD", "y@GRAD"])
        self.assertTrue(np.allclose(found[0], slope.dot(y.T), atol=1e-5))
        self.assertTrue(np.allclose(found[1], x.T.dot(slope), atol=1e-5))


class TestPrograms(unittest.TestCase):
    def build(self, attrs):
        program = fluid.Program()
        block = program.global_block()
        w = block.create_parameter(dtype="float32", shape=[5, 10], lod_level=0, name="w")
        y = block.create_var(dtype="float32", shape=[10, 8], lod_level=0, name="y")
        out = block.create_var(dtype="float32", shape=[5, 8], lod_level=0, name="out")
        loss = block.create_var(dtype="float32", shape=[1], lod_level=0, name="loss")
        block.append_op(type="mul", inputs={"X": w, "Y": y}, outputs={"Out": out}, attrs=attrs)
        block.append_op(type="mean", inputs={"X": out}, outputs={"Out": loss})
        return program, loss

    def test_append_backward_of_a_program(self):
        """It has an attribute that mul does not know: nobody minded."""
        program, loss = self.build({"x_num_col_dims": 1, "comment": "made by hand"})
        grads = program.append_backward(loss, set())
        for name in ("w", "y", "out", "loss"):
            self.assertEqual((name + "@GRAD", 0), tuple(grads[name]))
        types = [op.type for op in program.global_block().ops]
        self.assertEqual(["mul", "mean", "fill_constant", "mean_grad", "mul_grad"], types)

    def test_create_optimization_pass(self):
        program, loss = self.build({"x_num_col_dims": 1})
        startup = fluid.Program()
        momentum = fluid.optimizer.MomentumOptimizer(learning_rate=0.01, momentum=0.2)
        pairs = fluid.backward.append_backward_ops(loss)
        ops = momentum.create_optimization_pass(pairs, loss, startup)
        self.assertEqual(["momentum"], [op.type for op in ops])
        self.assertEqual(["w"], list(momentum._accumulators[momentum._velocity_acc_str]))
        first = startup.global_block().ops[0]
        self.assertEqual("fill_constant", first.type)
        self.assertAlmostEqual(0.01, first.attr("value"), places=6)


class TestGradientOfWhatIsNowhere(unittest.TestCase):
    def test_it_is_zero(self):
        program, other = fluid.Program(), fluid.Program()
        given = {}
        for name, home in (("X", program), ("Out", program), ("Out@GRAD", other)):
            given[name] = home.global_block().create_var(name=name, shape=[2, 3], dtype="float32")
        wanted = program.global_block().create_var(name="X@GRAD", shape=[2, 3], dtype="float32")
        program.global_block().append_op(
            type="rnn_memory_helper_grad", inputs=given, outputs={"X@GRAD": [wanted]}, attrs={}
        )
        feed = {"X": np.ones((2, 3), "float32"), "Out": np.ones((2, 3), "float32")}
        found = fluid.Executor(core.CPUPlace()).run(program, feed=feed, fetch_list=[wanted])
        self.assertTrue((found[0] == 0).all())


class TestBackwardOperator(unittest.TestCase):
    def test_one_operator(self):
        scope, place = core.Scope(), core.CPUPlace()
        context = core.DeviceContext.create(place)
        x = np.random.random((4, 3)).astype("float32")
        scope.var("x").get_tensor().set(x, place)
        softmax = Operator("softmax", X="x", Out="y")
        softmax.run(scope, context)
        backward = core.Operator.backward(softmax, set())
        for name in backward.input_vars() + backward.output_vars():
            scope.var(name).get_tensor()
        slope = np.random.random((4, 3)).astype("float32")
        scope.find_var("y@GRAD").get_tensor().set(slope, place)
        backward.run(scope, context)
        y = np.array(scope.find_var("y").get_tensor())
        expected = y * (slope - (slope * y).sum(axis=1, keepdims=True))
        self.assertTrue(np.allclose(np.array(scope.find_var("x@GRAD").get_tensor()), expected, atol=1e-6))

    def test_nothing_to_differentiate(self):
        self.assertRaises(ValueError, core.Operator.backward, Operator("fill_constant", Out="x", shape=[1]), set())


if __name__ == "__main__":
    unittest.main()
