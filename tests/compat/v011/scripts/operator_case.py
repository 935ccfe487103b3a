"""Operators by keywords: descriptions, protos, questions, and runs in scopes."""

import unittest

import numpy as np
import paddle.v2.fluid.core as core
import paddle.v2.fluid.op as op
import paddle.v2.fluid.proto.framework_pb2 as framework_pb2
from paddle.fluid.op import Operator


def proto_of(inputs=(), outputs=(), attrs=()):
    proto = framework_pb2.OpProto(type="made_up", comment="none")
    for name, takes_list in inputs:
        proto.inputs.add(name=name, comment="", duplicable=takes_list)
    for name in outputs:
        proto.outputs.add(name=name, comment="")
    for name, kind in attrs:
        proto.attrs.add(name=name, comment="", type=kind)
    return proto


class TestProtos(unittest.TestCase):
    def test_all(self):
        protos = op.get_all_op_protos()
        self.assertTrue(len(protos) > 100)
        self.assertTrue(all(each.IsInitialized() for each in protos))
        self.assertEqual(sorted(each.type for each in protos), sorted(Operator.types()))

    def test_bytes(self):
        types = [framework_pb2.OpProto.FromString(each).type for each in core.get_all_op_protos()]
        self.assertTrue("mul" in types)

    def test_outputs_are_those_of_the_time(self):
        self.assertEqual(["ParamOut"], Operator.get_op_output_names("sgd"))


class TestDescriptions(unittest.TestCase):
    def test_slots_in_the_order_of_the_proto(self):
        method = op.OpDescCreationMethod(proto_of([("X", True), ("W", True), ("b", False)], ["Y"]))
        made = method(W=["w1", "w2"], b="b", X="x", Y="y")
        self.assertEqual(["X", "W", "b"], [slot.parameter for slot in made.inputs])
        self.assertEqual([["x"], ["w1", "w2"], ["b"]], [list(slot.arguments) for slot in made.inputs])
        self.assertEqual("made_up", made.type)

    def test_attributes(self):
        kinds = [("i", framework_pb2.INT), ("f", framework_pb2.FLOAT), ("s", framework_pb2.STRING),
                 ("n", framework_pb2.INTS), ("x", framework_pb2.FLOATS), ("t", framework_pb2.STRINGS),
                 ("b", framework_pb2.BOOLEAN)]  # fmt: skip
        method = op.OpDescCreationMethod(proto_of(attrs=kinds))
        made = method(i=10, f=0.5, s="a", n=[1, 2], x=[0.5, 1.5], t=["a", "b"], b=True)
        found = {attr.name: attr for attr in made.attrs}
        self.assertEqual((10, 0.5, "a", True), (found["i"].i, found["f"].f, found["s"].s, found["b"].b))
        lists = [list(found["n"].ints), list(found["x"].floats), list(found["t"].strings)]
        self.assertEqual([[1, 2], [0.5, 1.5], ["a", "b"]], lists)
        self.assertEqual(0, len(method().attrs))

    def test_what_is_refused(self):
        method = op.OpDescCreationMethod(proto_of([("X", False)], ["Y"]))
        self.assertRaises(ValueError, method, "x")
        self.assertRaises(ValueError, method, X=["a", "b"])
        self.assertRaises(TypeError, op.OpDescCreationMethod, "made_up")


class TestOperator(unittest.TestCase):
    def test_text(self):
        add = Operator("sum", X=["a", "b"], Out="z")
        self.assertEqual("Op(sum), inputs:{X[a, b]}, outputs:{Out[z]}.", str(add))

    def test_questions(self):
        norm = Operator("batch_norm", X="x", Scale="s", Bias="b", Mean="m", Variance="v", Y="y", MeanOut="m",
                        VarianceOut="v", SavedMean="sm", SavedVariance="sv")  # fmt: skip
        self.assertEqual("batch_norm", norm.type())
        self.assertEqual(["b"], norm.inputs()["Bias"])
        self.assertEqual(["b", "m", "s", "v", "x"], sorted(norm.input_vars()))
        self.assertEqual(["m", "sm", "sv", "v", "y"], sorted(norm.output_vars()))
        self.assertFalse("sm" in norm.no_intermediate_outputs())
        self.assertEqual(core.op_support_gpu("batch_norm"), norm.support_gpu())

    def test_types_and_slots(self):
        self.assertEqual([("X", True)], Operator.get_op_inputs("sum"))
        self.assertEqual(["X", "Y"], Operator.get_op_input_names("mul"))
        self.assertEqual([("Out", False)], Operator.get_op_outputs("mul"))
        self.assertTrue("x_num_col_dims" in Operator.get_op_attr_names("mul"))
        self.assertEqual("mul", Operator.get_op_info("mul").name)

    def test_what_is_refused(self):
        self.assertRaises(ValueError, Operator, "no_such_operator", X="x")
        self.assertRaises(ValueError, Operator, "mul", "x")
        self.assertRaises(ValueError, Operator, X="x")
        self.assertRaises(core.EnforceNotMet, Operator, "mul", X="x", Out="y")

    def test_create_from_bytes(self):
        desc = framework_pb2.OpDesc(type="scale")
        desc.inputs.add(parameter="X", arguments=["x"])
        desc.outputs.add(parameter="Out", arguments=["x"])
        desc.attrs.add(name="scale", type=framework_pb2.FLOAT, f=-2.0)
        scale = core.Operator.create(desc.SerializeToString())
        scope = core.Scope()
        tensor = scope.var("x").get_tensor()
        tensor.set(np.array([1.0, 2.0], "float32"), core.CPUPlace())
        scale.run(scope, core.CPUPlace())
        scale.run(scope, core.CPUPlace())
        self.assertEqual([4.0, 8.0], np.array(tensor).tolist())

    def test_a_missing_variable_is_named(self):
        relu = Operator("relu", X="nothing_here", Out="y")
        try:
            relu.run(core.Scope(), core.CPUPlace())
        except ValueError as error:
            self.assertTrue("nothing_here" in str(error))
        else:
            self.fail("it ran")

    def test_a_scope_inside_another(self):
        scope = core.Scope()
        scope.var("x").get_tensor().set(np.array([-1.0, 1.0]), core.CPUPlace())
        inner = scope.new_scope()
        Operator("relu", X="x", Out="y").run(inner, core.CPUPlace())
        self.assertIsNone(scope.find_var("y"))
        self.assertEqual([0.0, 1.0], np.array(inner.find_var("y").get_tensor()).tolist())


class TestEmpty(unittest.TestCase):
    def test_is_empty(self):
        scope, place = core.Scope(), core.CPUPlace()
        scope.var("full").get_tensor().set(np.array([1]), place)
        scope.var("none").get_tensor().set(np.array([1]), place)
        scope.find_var("none").get_tensor().set_dims([0])
        for name, expected in (("full", False), ("none", True)):
            Operator(type="is_empty", X=name, Out="out").run(scope, place)
            self.assertEqual(expected, np.array(scope.find_var("out").get_tensor())[0])


if __name__ == "__main__":
    unittest.main()
