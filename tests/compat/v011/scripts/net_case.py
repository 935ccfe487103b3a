"""Networks of operators: as text, sealed, shaped, run and walked backwards."""

import unittest

import numpy as np
import paddle.v2.framework.core as core
from paddle.v2.framework.op import Operator


def fc(x, w, out):
    net = core.Net.create()
    net.append_op(Operator("mul", X=x, Y=w, Out=out + ".before"))
    net.append_op(Operator("sigmoid", X=out + ".before", Out=out))
    net.complete_add_op(True)
    return net


def two_layers():
    net = core.Net.create()
    net.append_op(fc("x", "w1", "h"))
    net.append_op(fc("h", "w2", "y"))
    net.complete_add_op(True)
    return net


TEXT = """\
Op(plain_net), inputs:{all[w1, w2, x]}, outputs:{all[h, h.before, y, y.before]}.
    Op(plain_net), inputs:{all[w1, x]}, outputs:{all[h, h.before]}.
        Op(mul), inputs:{X[x], Y[w1]}, outputs:{Out[h.before]}.
        Op(sigmoid), inputs:{X[h.before]}, outputs:{Out[h]}.
    Op(plain_net), inputs:{all[h, w2]}, outputs:{all[y, y.before]}.
        Op(mul), inputs:{X[h], Y[w2]}, outputs:{Out[y.before]}.
        Op(sigmoid), inputs:{X[y.before]}, outputs:{Out[y]}.
"""


class TestNet(unittest.TestCase):
    def test_text(self):
        self.assertEqual(TEXT, str(two_layers()))

    def test_inputs_and_outputs(self):
        net = two_layers()
        self.assertEqual({"all": ["w1", "w2", "x"]}, net.inputs())
        self.assertEqual(["h", "h.before", "y", "y.before"], net.outputs()["all"])
        self.assertEqual(["h"], fc("x", "w1", "h").no_intermediate_outputs())

    def test_insert_op(self):
        net = core.Net.create()
        net.append_op(Operator("relu", X="b", Out="c"))
        net.insert_op(0, Operator("scale", X="a", Out="b", scale=2.0))
        net.complete_add_op()
        self.assertEqual(["a"], net.input_vars())
        self.assertRaises(ValueError, core.Net.create().insert_op, 1, Operator("relu", X="b", Out="c"))

    def test_a_sealed_network_takes_no_more(self):
        net = two_layers()
        self.assertRaises(core.EnforceNotMet, net.append_op, Operator("relu", X="b", Out="c"))
        self.assertRaises(core.EnforceNotMet, core.Net.create().run, core.Scope(), core.CPUPlace())
        self.assertRaises(core.EnforceNotMet, core.Net.create().append_op, core.Net.create())

    def test_shapes_then_a_run(self):
        scope, place, net = core.Scope(), core.CPUPlace(), two_layers()
        for name, dims in (("x", [5, 4]), ("w1", [4, 3]), ("w2", [3, 2])):
            scope.new_var(name).get_tensor().set_dims(dims)
        net.infer_shape(scope)
        self.assertEqual([5, 3], scope.find_var("h").get_tensor().get_dims())
        self.assertEqual([5, 2], scope.find_var("y").get_tensor().get_dims())
        values = {}
        for name in ("x", "w1", "w2"):
            tensor = scope.find_var(name).get_tensor()
            values[name] = np.random.random(tensor.get_dims()).astype("float32")
            tensor.set(values[name], place)
        net.run(scope, core.DeviceContext.create(place))
        h = 1 / (1 + np.exp(-values["x"].dot(values["w1"])))
        y = 1 / (1 + np.exp(-h.dot(values["w2"])))
        self.assertTrue(np.allclose(np.array(scope.find_var("y").get_tensor()), y, atol=1e-6))

    def test_backward(self):
        """x is read twice, so that its gradient is a sum."""
        scope, place = core.Scope(), core.CPUPlace()
        net = core.Net.create()
        net.append_op(Operator("square", X="x", Out="a"))
        net.append_op(Operator("scale", X="x", Out="b", scale=3.0))
        net.append_op(Operator("elementwise_add", X="a", Y="b", Out="y"))
        net.complete_add_op(True)
        x = np.array([1.0, 2.0], "float32")
        scope.var("x").get_tensor().set(x, place)
        net.run(scope, place)
        backward = core.Operator.backward(net, set())
        scope.var("y@GRAD").get_tensor().set(np.ones(2, "float32"), place)
        backward.infer_shape(scope)
        backward.run(scope, place)
        self.assertTrue(np.allclose(np.array(scope.find_var("x@GRAD").get_tensor()), 2 * x + 3))
        self.assertEqual(1, str(backward).count("Op(sum)"))


if __name__ == "__main__":
    unittest.main()
