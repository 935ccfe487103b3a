"""Single operators, each beside numpy and beside differences."""

import unittest

import numpy as np
import paddle.fluid.core as core
from paddle.fluid.backward import append_backward
from paddle.fluid.executor import Executor
from paddle.fluid.framework import OpProtoHolder, Program
from paddle.fluid.op import Operator


class SingleOp(unittest.TestCase):
    """One operator: its outputs beside numpy, its gradient beside differences, as each project wrote it for itself."""

    def build(self):
        block = Program().global_block()
        proto = OpProtoHolder.instance().get_op_proto(self.op_type)

        def declared(slots, given, is_input):
            found = {}
            for slot in slots:
                if slot.name not in given:
                    self.assertTrue(slot.dispensable or slot.intermediate, slot.name)
                    if not is_input:
                        found[slot.name] = [block.create_var(name=slot.name)]
                    continue
                pairs = given[slot.name] if slot.duplicable else [(slot.name, given[slot.name])]
                found[slot.name] = []
                for name, value in pairs:
                    value, lengths = value if isinstance(value, tuple) else (value, [])
                    shape = list(value.shape) if is_input else None
                    level = len(lengths) if is_input else None
                    var = block.create_var(name=name, dtype=value.dtype, shape=shape, lod_level=level)
                    found[slot.name].append(var)
            return found

        inputs = declared(proto.inputs, self.inputs, True)
        op = block.append_op(
            type=self.op_type, inputs=inputs, outputs=declared(proto.outputs, self.outputs, False), attrs=self.attrs
        )
        op.desc.infer_var_type(block.desc)
        op.desc.infer_shape(block.desc)
        return block

    def pairs(self, given):
        for slot, value in given.items():
            yield from value if isinstance(value, list) else [(slot, value)]

    def tensor(self, value):
        value, lengths = value if isinstance(value, tuple) else (value, None)
        tensor = core.LoDTensor()
        tensor.set(value, core.CPUPlace())
        if lengths is not None:
            tensor.set_recursive_sequence_lengths(lengths)
        return tensor

    def check_output(self, atol=1e-5):
        block = self.build()
        feed = dict((name, self.tensor(value)) for name, value in self.pairs(self.inputs))
        wanted = list(self.pairs(self.outputs))
        got = Executor(core.CPUPlace()).run(
            block.program, feed=feed, fetch_list=[block.var(name) for name, _ in wanted], return_numpy=False
        )
        for (name, want), tensor in zip(wanted, got, strict=True):
            want, lengths = want if isinstance(want, tuple) else (want, None)
            self.assertTrue(np.allclose(np.array(tensor), want, atol=atol), name)
            known = [size for size in block.var(name).shape if size != -1]
            self.assertEqual(known, list(np.array(tensor).shape)[-len(known):])
            if lengths is not None:
                self.assertEqual(tensor.recursive_sequence_lengths(), lengths)

    def check_grad(self, name, output, delta=0.005, most=0.005):
        scope, place = core.Scope(), core.CPUPlace()
        slots = {}
        for known, given in (
            (Operator.get_op_inputs(self.op_type), self.inputs), (Operator.get_op_outputs(self.op_type), self.outputs),
        ):
            for slot, takes_list in known:
                if slot in given:
                    slots[slot] = [each for each, _ in given[slot]] if takes_list else [slot]
                    for each in slots[slot]:
                        scope.var(each).get_tensor()
        role = core.op_proto_and_checker_maker.kOpRoleAttrName()
        attrs = dict(self.attrs, **{role: int(core.op_proto_and_checker_maker.OpRole.Forward)})
        for attr in Operator.get_op_attr_names(self.op_type):
            if attr in attrs:
                slots[attr] = attrs[attr]
        op = Operator(self.op_type, **slots)
        for each, value in self.pairs(self.inputs):
            value, lengths = value if isinstance(value, tuple) else (value, None)
            tensor = scope.find_var(each).get_tensor()
            if lengths is not None:
                tensor.set_recursive_sequence_lengths(lengths)
            tensor._set_dims(value.shape)
            tensor.set(value, place)
        tensor = scope.find_var(name).get_tensor()
        self.assertEqual(tensor._dtype(), core.VarDesc.VarType.FP32)

        def cost(i, value):
            tensor._set_float_element(i, value)
            op.run(scope, place)
            return np.array(scope.find_var(output).get_tensor()).mean()

        slopes = np.zeros(int(np.prod(tensor.shape())))
        for i in range(len(slopes)):
            origin = tensor._get_float_element(i)
            slopes[i] = (cost(i, origin + delta) - cost(i, origin - delta)) / (2 * delta)
            tensor._set_float_element(i, origin)
        block = self.build()
        loss = block.create_var(dtype="float32", shape=[1])
        mean = block.append_op(type="mean", inputs={"X": [block.var(output)]}, outputs={"Out": loss})
        mean.desc.infer_var_type(block.desc)
        mean.desc.infer_shape(block.desc)
        (_, grad), = append_backward(loss=loss, parameter_list=[name], no_grad_set=set())
        feed = dict((each, self.tensor(value)) for each, value in self.pairs(self.inputs))
        got, = Executor(place).run(block.program, feed, [grad], return_numpy=False)
        got = np.array(got)
        size = np.abs(slopes).reshape(got.shape)
        size[size < 1e-3] = 1
        self.assertLess((np.abs(got - slopes.reshape(got.shape)) / size).max(), most)


class TestMul(SingleOp):
    def setUp(self):
        self.op_type, self.attrs = "mul", {}
        x, y = np.random.random((4, 5)).astype("float32"), np.random.random((5, 3)).astype("float32")
        self.inputs, self.outputs = {"X": x, "Y": y}, {"Out": np.dot(x, y)}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad("X", "Out")
        self.check_grad("Y", "Out")


class TestConcat(SingleOp):
    def setUp(self):
        self.op_type, self.attrs = "concat", {"axis": 1}
        parts = [("part" + str(k), np.random.random((2, k + 1, 2)).astype("float32")) for k in range(3)]
        self.inputs, self.outputs = {"X": parts}, {"Out": np.concatenate([v for _, v in parts], axis=1)}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad("part1", "Out")


class TestSequencePool(SingleOp):
    def setUp(self):
        self.op_type, self.attrs = "sequence_pool", {"pooltype": "SUM"}
        x = np.random.random((7, 2)).astype("float32")
        self.inputs = {"X": (x, [[2, 4, 1]])}
        self.outputs = {"Out": np.array([x[:2].sum(0), x[2:6].sum(0), x[6:].sum(0)])}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad("X", "Out", most=0.01)


class TestSequenceExpand(SingleOp):
    def setUp(self):
        self.op_type, self.attrs = "sequence_expand", {"ref_level": 0}
        x = np.random.random((3, 1)).astype("float32")
        y = np.random.random((6, 1)).astype("float32")
        self.inputs = {"X": (x, [[1, 2]]), "Y": (y, [[2, 2], [1, 2, 1, 2]])}
        self.outputs = {"Out": (x[[0, 0, 1, 2, 1, 2]], [[1, 1, 2, 2]])}

    def test_check_output(self):
        self.check_output()


class TestReshape(SingleOp):
    """The second output holds a shape and no numbers."""

    def setUp(self):
        self.op_type, self.attrs = "reshape2", {"shape": [-1, 6]}
        x = np.random.random((4, 3)).astype("float32")
        self.inputs, self.outputs = {"X": x}, {"Out": x.reshape(2, 6)}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad("X", "Out")


if __name__ == "__main__":
    unittest.main()
