"""Variables in Python's operators, slices and declarations."""

import unittest

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.layers as layers
from decorators import many_times, prog_scope
from paddle.fluid.framework import Program, default_main_program


def run(fetch_list, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(default_main_program(), feed=feed, fetch_list=fetch_list)


class TestOperatorsOfPython(unittest.TestCase):
    @prog_scope()
    def test_with_numbers_on_both_sides(self):
        a = layers.data(name="a", shape=[1])
        given = np.random.random(size=[10, 1]).astype("float32") + 0.5
        made = [a + 3, 3 + a, a - 3, 3 - a, a * 3, 3 * a, a / 3, 3 / a, a ** 2, 2 ** a, -a]
        wanted = [
            given + 3, 3 + given, given - 3, 3 - given, given * 3, 3 * given, given / 3, 3 / given, given ** 2,
            2 ** given, -given,
        ]
        for got, want in zip(run(made, a=given), wanted, strict=True):
            self.assertTrue(np.allclose(got, want, rtol=1e-5))

    @prog_scope()
    def test_with_variables(self):
        a, b = layers.data(name="a", shape=[1]), layers.data(name="b", shape=[1])
        x, y = np.random.random((2, 5, 1)).astype("float32") + 0.1
        wide = layers.concat(input=[a, b], axis=1)
        made = [a + b, a - b, a * b, a / b, a ** b, wide + a]
        wanted = [x + y, x - y, x * y, x / y, x ** y, np.hstack([x, y]) + x]
        for got, want in zip(run(made, a=x, b=y), wanted, strict=True):
            self.assertTrue(np.allclose(got, want, rtol=1e-5))

    @prog_scope()
    def test_comparisons_of_rows_without_a_second_dimension(self):
        """What is fed has one dimension, what is declared has two."""
        a, b = layers.data(name="a", shape=[1]), layers.data(name="b", shape=[1])
        x, y = np.array([3, 4, 10, 14], "float32"), np.array([3, 5, 8, 14], "float32")
        made = [a < b, a <= b, a > b, a >= b, a == b, a != b]
        self.assertEqual(made[0].dtype, core.VarDesc.VarType.BOOL)
        for got, want in zip(run(made, a=x, b=y), [x < y, x <= y, x > y, x >= y, x == y, x != y], strict=True):
            self.assertTrue(np.array_equal(got, want))

    @prog_scope()
    def test_integers_are_divided_into_integers(self):
        a = layers.data(name="a", shape=[1], dtype="int64")
        given = np.array([3, 4, 10, 14, 9, 18]).astype("int64")
        got, = run([a / 7], a=given)
        self.assertEqual(got.dtype, np.int64)
        self.assertTrue(np.array_equal(got, given // 7))

    @prog_scope()
    def test_astype(self):
        a = layers.data(name="a", shape=[2], dtype="int64")
        b = a.astype("float32")
        self.assertEqual(b.dtype, core.VarDesc.VarType.FP32)
        self.assertEqual(run([b], a=np.ones((1, 2), "int64"))[0].dtype, np.float32)


class TestSlices(unittest.TestCase):
    @prog_scope()
    def test_shapes(self):
        w = default_main_program().current_block().create_var(dtype="float64", shape=[7, 5, 3], lod_level=0)
        for index, shape in (
            (2, (5, 3)),
            (slice(None), (7, 5, 3)),
            ((slice(None), slice(None), -1), (7, 5)),
            ((1, 1, 1), (1,)),
            ((slice(None), slice(None), slice(None, -1)), (7, 5, 2)),
        ):
            self.assertEqual(w[index].shape, shape)

    @prog_scope()
    def test_values(self):
        numbers = np.arange(27, dtype="float32").reshape(3, 3, 3)
        x = layers.assign(numbers)
        cases = [np.s_[1:], np.s_[0:1], np.s_[::-1], np.s_[1, 1:, 1:], np.s_[:, :, -1], np.s_[:-1, ::-1, -1:]]
        for case, got in zip(cases, run([x[case] for case in cases]), strict=True):
            self.assertTrue(np.array_equal(got, numbers[case]))


class TestDeclarations(unittest.TestCase):
    def test_again_and_differently(self):
        block = Program().global_block()
        w = block.create_var(name="w", shape=[784, 100], dtype="float64", lod_level=0)
        self.assertIs(block.create_var(name="w"), w)
        self.assertEqual((w.dtype, w.shape, w.lod_level), (core.VarDesc.VarType.FP64, (784, 100), 0))
        with self.assertRaises(ValueError):
            block.create_var(name="w", shape=(24, 100))
        scopes = block.create_var(name="scopes", type=core.VarDesc.VarType.STEP_SCOPES)
        self.assertEqual(scopes.type, core.VarDesc.VarType.STEP_SCOPES)

    @many_times(2)
    @prog_scope()
    def test_parameters_are_initialised_once(self):
        program = Program()
        block = program.global_block()
        for _ in range(2):
            w = block.create_parameter(
                name="w", shape=[3, 2], dtype="float32", initializer=fluid.initializer.Constant(1.25)
            )
        self.assertEqual([op.type for op in block.ops], ["fill_constant"])
        self.assertEqual((w.block.idx, w.persistable, w.trainable), (0, True, True))
        exe = fluid.Executor(fluid.CPUPlace())
        got, = exe.run(program, fetch_list=[w])
        self.assertTrue((got == 1.25).all())
        self.assertTrue((np.array(fluid.io.get_parameter_value_by_name("w", exe, program)) == 1.25).all())


class TestLayerHelper(unittest.TestCase):
    @prog_scope()
    def test_a_layer_of_ones_own(self):
        from paddle.fluid.layer_helper import LayerHelper

        def doubled(input, size, param_attr=None, bias_attr=None, act=None, name=None):
            helper = LayerHelper("doubled", **locals())
            dtype = helper.input_dtype()
            results = []
            for x, attr in helper.iter_inputs_and_params():
                w = helper.create_parameter(attr=attr, shape=[x.shape[-1], size], dtype=dtype, is_bias=False)
                results.append(helper.create_variable_for_type_inference(dtype))
                helper.append_op(type="mul", inputs={"X": x, "Y": w}, outputs={"Out": results[-1]})
            both = helper.create_variable_for_type_inference(dtype)
            helper.append_op(type="sum", inputs={"X": results}, outputs={"Out": both})
            return helper.append_activation(helper.append_bias_op(both))

        x, y = layers.data(name="x", shape=[3]), layers.data(name="y", shape=[2])
        one = fluid.initializer.Constant(1.0)
        attrs = [fluid.ParamAttr(initializer=one), fluid.ParamAttr(initializer=one)]
        out = doubled([x, y], 4, param_attr=attrs, act="relu")
        got, = run([out], x=np.ones((2, 3), "float32"), y=np.ones((2, 2), "float32"))
        self.assertTrue((got == 5).all())
        helper = LayerHelper("counter")
        facts = dict(name="counter", dtype="int64", shape=[1], persistable=True)
        counter, is_new = helper.create_or_get_global_variable(**facts)
        again, is_newer = helper.create_or_get_global_variable(**facts)
        self.assertEqual((is_new, is_newer), (True, False))
        self.assertIs(counter, again)


if __name__ == "__main__":
    unittest.main()
