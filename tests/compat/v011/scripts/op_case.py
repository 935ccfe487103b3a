"""What the tests of single operators share, as each had it in those days."""

import unittest

import numpy as np
import paddle.v2.fluid.core as core
from paddle.v2.fluid.backward import append_backward
from paddle.v2.fluid.executor import Executor
from paddle.v2.fluid.framework import OpProtoHolder, Program
from paddle.v2.fluid.op import Operator


def create_op(scope, op_type, inputs, outputs, attrs):
    args = {}
    for known, given in ((Operator.get_op_inputs(op_type), inputs), (Operator.get_op_outputs(op_type), outputs)):
        for slot, takes_list in known:
            if slot in given:
                args[slot] = [name for name, _ in given[slot]] if takes_list else [slot]
                for name in args[slot]:
                    scope.var(name).get_tensor()
    for name in Operator.get_op_attr_names(op_type):
        if name in attrs:
            args[name] = attrs[name]
    return Operator(op_type, **args)


def set_input(scope, op, inputs, place):
    for slot, takes_list in Operator.get_op_inputs(op.type()):
        if slot not in inputs:
            continue
        for name, value in inputs[slot] if takes_list else [(slot, inputs[slot])]:
            tensor = scope.find_var(name).get_tensor()
            if isinstance(value, tuple):
                value, lod = value
                tensor.set_lod(lod)
            tensor.set_dims(value.shape)
            tensor.set(value, place)


def numeric_gradient(scope, op, inputs, name, output_names, delta=0.005):
    place = core.CPUPlace()
    set_input(scope, op, inputs, place)
    context = core.DeviceContext.create(place)
    tensor = scope.find_var(name).get_tensor()
    double = tensor.dtype() == core.DataType.FP64

    def put(i, value):
        if double:
            tensor.set_double_element(i, value)
        else:
            tensor.set_float_element(i, value)

    def cost():
        op.run(scope, context)
        return np.mean([np.array(scope.find_var(out).get_tensor()).mean() for out in output_names])

    slopes = np.zeros(int(np.prod(tensor.get_dims())))
    for i in range(len(slopes)):
        origin = tensor.get_double_element(i) if double else tensor.get_float_element(i)
        put(i, origin + delta)
        above = cost()
        put(i, origin - delta)
        below = cost()
        put(i, origin)
        slopes[i] = (above - below) / delta / 2
    return slopes.reshape(tensor.get_dims())


class OpCase(unittest.TestCase):
    attrs = {}

    def declare(self, block, slots, given):
        """Variables for the slots of a proto: all of them float32, whatever they hold."""
        made = {}
        for slot in slots:
            if slot.name not in given:
                if slot.intermediate:
                    made[slot.name] = block.create_var(dtype="float32", shape=None, lod_level=None, name=slot.name)
                else:
                    self.assertTrue(slot.dispensable, slot.name)
                continue
            row = given[slot.name] if slot.duplicable else [(slot.name, given[slot.name])]
            made[slot.name] = []
            for name, value in row:
                lod = value[1] if isinstance(value, tuple) else []
                value = value[0] if isinstance(value, tuple) else value
                var = block.create_var(dtype="float32", shape=list(value.shape), lod_level=len(lod), name=name)
                made[slot.name].append(var)
        return made

    def check_output(self, atol=1e-5):
        place = core.CPUPlace()
        proto = OpProtoHolder.instance().get_op_proto(self.op_type)
        program = Program()
        block = program.global_block()
        inputs = self.declare(block, proto.inputs, self.inputs)
        outputs = self.declare(block, proto.outputs, self.outputs)
        op = block.append_op(type=self.op_type, inputs=inputs, outputs=outputs, attrs=self.attrs)
        op.desc.infer_var_type(block.desc)
        op.desc.infer_shape(block.desc)
        feed = {}
        for slot in inputs:
            row = self.inputs[slot] if isinstance(self.inputs[slot], list) else [(slot, self.inputs[slot])]
            for name, value in row:
                feed[name] = core.LoDTensor()
                feed[name].set(value[0] if isinstance(value, tuple) else value, place)
                if isinstance(value, tuple):
                    feed[name].set_lod(value[1])
        fetch = [var for slot in outputs if slot in self.outputs for var in outputs[slot]]
        results = Executor(place).run(program, feed=feed, fetch_list=fetch, return_numpy=False)
        for i, actual in enumerate(results):
            var = fetch[i]
            expected = self.outputs[var.name]
            lod = expected[1] if isinstance(expected, tuple) else None
            expected = expected[0] if isinstance(expected, tuple) else expected
            self.assertTrue(np.allclose(np.array(actual), expected, atol=atol), var.name)
            if lod is not None:
                self.assertListEqual(actual.lod(), lod)

    def check_grad(self, names, outputs, no_grad_set=None, max_relative_error=0.005):
        outputs = outputs if isinstance(outputs, list) else [outputs]
        scope = core.Scope()
        op = create_op(scope, self.op_type, self.inputs, self.outputs, self.attrs)
        wanted = [numeric_gradient(scope, op, self.inputs, name, outputs) for name in names]
        found = self.analytic(names, outputs, no_grad_set or set())
        for i, name in enumerate(names):
            scale = np.where(np.abs(wanted[i]) < 1e-3, 1, np.abs(wanted[i]))
            self.assertLessEqual(np.max(np.abs(wanted[i] - found[i]) / scale), max_relative_error, name)

    def analytic(self, names, outputs, no_grad_set):
        place = core.CPUPlace()
        program = Program()
        block = program.global_block()
        feed, args = {}, {}
        for given in (self.inputs, self.outputs):
            args[id(given)] = {}
            for slot in given:
                row = given[slot] if isinstance(given[slot], list) else [(slot, given[slot])]
                args[id(given)][slot] = []
                for name, value in row:
                    lod = value[1] if isinstance(value, tuple) else None
                    value = value[0] if isinstance(value, tuple) else value
                    args[id(given)][slot].append(block.create_var(name=name, shape=value.shape, dtype=value.dtype))
                    if given is self.inputs:
                        feed[name] = core.LoDTensor()
                        feed[name].set(value, place)
                        if lod is not None:
                            feed[name].set_lod(lod)
        ins, outs = args[id(self.inputs)], args[id(self.outputs)]
        op = block.append_op(type=self.op_type, inputs=ins, outputs=outs, attrs=self.attrs)
        op.desc.infer_var_type(block.desc)
        op.desc.infer_shape(block.desc)
        loss = block.create_var(dtype=block.var(outputs[0]).dtype, shape=[1])
        op = block.append_op(type="mean", inputs={"X": [block.var(outputs[0])]}, outputs={"Out": loss})
        op.desc.infer_var_type(block.desc)
        op.desc.infer_shape(block.desc)
        pairs = append_backward(loss=loss, parameter_list=names, no_grad_set=no_grad_set)
        self.assertEqual(list(names), [var.name for var, _ in pairs])
        return [np.array(g) for g in Executor(place).run(program, feed, [g for _, g in pairs], return_numpy=False)]
