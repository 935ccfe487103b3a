"""Rows of gradients: what optimizers and sums make of them."""

import unittest

import numpy as np
import paddle.v2.fluid.core as core
from paddle.v2.fluid.op import Operator


def fill(scope, name, array):
    tensor = scope.var(name).get_tensor()
    tensor.set(array.astype("float32"), core.CPUPlace())
    return tensor


class TestRowsOfAGradient(unittest.TestCase):
    def setUp(self):
        self.scope = core.Scope()
        rows = self.scope.var("Grad").get_selected_rows()
        rows.set_height(6)
        rows.set_rows([1, 4, 1])
        values = np.arange(6).reshape(3, 2)
        rows.get_tensor().set(values.astype("float32"), core.CPUPlace())
        self.param = fill(self.scope, "Param", np.full((6, 2), 10.0))
        fill(self.scope, "LearningRate", np.array([0.5]))
        self.dense = np.zeros((6, 2))
        self.dense[1] = values[0] + values[2]
        self.dense[4] = values[1]

    def test_sgd(self):
        sgd = Operator("sgd", Param="Param", Grad="Grad", ParamOut="Param", LearningRate="LearningRate")
        sgd.run(self.scope, core.CPUPlace())
        self.assertTrue(np.allclose(np.array(self.param), 10 - 0.5 * self.dense))

    def test_adagrad(self):
        moment = fill(self.scope, "Moment", np.full((6, 2), 2.0))
        adagrad = Operator("adagrad", Param="Param", Grad="Grad", ParamOut="Param", Moment="Moment",
                           MomentOut="Moment", LearningRate="LearningRate", epsilon=2.0)  # fmt: skip
        adagrad.run(self.scope, core.CPUPlace())
        squares = 2 + self.dense**2
        self.assertTrue(np.allclose(np.array(moment), squares))
        step = 0.5 * self.dense / (np.sqrt(squares) + 2.0)
        self.assertTrue(np.allclose(np.array(self.param), 10 - step, atol=1e-5))


class TestSelectedRows(unittest.TestCase):
    def test_all_of_it(self):
        rows = core.SelectedRows([0, 4, 7], 10)
        values = np.ones((3, 12)).astype("float32")
        values[0, 0], values[2, 8] = 2.0, 4.0
        rows.get_tensor().set(values, core.CPUPlace())
        self.assertEqual([0, 4, 7], [rows.rows()[i] for i in range(3)])
        self.assertEqual(10, rows.height())
        self.assertEqual(36, rows.numel())
        self.assertAlmostEqual(2.0, rows.get_tensor().get_float_element(0))
        self.assertAlmostEqual(4.0, rows.get_tensor()._get_float_element(2 * 12 + 8))

    def test_who_holds_the_rows_sees_the_sum(self):
        scope = core.Scope()
        for name, which in (("a", [0, 5]), ("b", [7, 5])):
            rows = scope.var(name).get_selected_rows()
            rows.set_rows(which)
            rows.set_height(10)
            rows.get_tensor().set(np.full((2, 2), float(which[0])).astype("float32"), core.CPUPlace())
        total = scope.var("total").get_selected_rows()
        tensor = total.get_tensor()
        Operator("sum", X=["a", "b"], Out="total").run(scope, core.CPUPlace())
        self.assertEqual([0, 5, 7], total.rows())
        self.assertEqual(10, total.height())
        self.assertEqual([0, 7, 7], np.array(tensor)[:, 0].tolist())

    def test_the_gradient_of_a_table_is_rows(self):
        scope = core.Scope()
        fill(scope, "W", np.random.random((5, 2)))
        scope.var("Ids").get_tensor().set(np.array([[3], [0], [3]], "int64"), core.CPUPlace())
        scope.var("Out")
        lookup = Operator("lookup_table", W="W", Ids="Ids", Out="Out", is_sparse=True)
        lookup.run(scope, core.CPUPlace())
        fill(scope, "Out@GRAD", np.ones((3, 2)))
        core.Operator.backward(lookup, set()).run(scope, core.CPUPlace())
        found = scope.find_var("W@GRAD").get_selected_rows()
        self.assertEqual(5, found.height())
        self.assertEqual([0, 3, 3], sorted(found.rows()))


if __name__ == "__main__":
    unittest.main()
