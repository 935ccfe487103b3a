"""A line through points, by networks of operators: forward, backward and update are three nets over one scope."""


import numpy
import paddle.v2.framework.core as core
from paddle.v2.framework.op import Operator

scope, place = core.Scope(), core.CPUPlace()
context = core.DeviceContext.create(place)

init_net = core.Net.create()
for name, dims in (("w", [3, 1]), ("b", [1])):
    scope.new_var(name).get_tensor()
    op = Operator("uniform_random", Out=name, shape=dims, min=-0.5, max=0.5, seed=10)
    op.infer_shape(scope)
    init_net.append_op(op)
init_net.complete_add_op(True)

forward_net = core.Net.create()
forward_net.append_op(Operator("mul", X="x", Y="w", Out="xw"))
forward_net.append_op(Operator("elementwise_add", X="xw", Y="b", Out="predict"))
forward_net.append_op(Operator("elementwise_sub", X="predict", Y="label", Out="error"))
forward_net.append_op(Operator("square", X="error", Out="cost"))
forward_net.complete_add_op(True)
backward_net = core.Operator.backward(forward_net, set(["x", "label"]))
for name in backward_net.inputs()["all"] + backward_net.outputs()["all"]:
    scope.new_var(name).get_tensor()

optimize_net = core.Net.create()
scope.new_var("rate").get_tensor().set(numpy.array([0.01], "float32"), place)
for name in ("w", "b"):
    optimize_net.append_op(Operator("sgd", Param=name, Grad=name + "@GRAD", LearningRate="rate", ParamOut=name))
optimize_net.complete_add_op(True)
print(forward_net)
print(optimize_net)


def feed(name, data):
    tensor = scope.new_var(name).get_tensor()
    tensor.set_dims(data.shape)
    tensor.alloc_float(place)
    tensor.set(data, place)


random = numpy.random.RandomState(1)
true = numpy.array([[1.0], [-2.0], [0.5]], "float32")
init_net.run(scope, context)
for step in range(200):
    rows = 16 if step % 10 else 8  # the last batch of a pass is a smaller one
    data = random.normal(size=(rows, 3)).astype("float32")
    feed("x", data)
    feed("label", data.dot(true) + 0.25)
    forward_net.infer_shape(scope)
    forward_net.run(scope, context)
    cost = numpy.array(scope.find_var("cost").get_tensor())
    feed("cost@GRAD", numpy.ones(cost.shape, "float32") / rows * 8)
    backward_net.infer_shape(scope)
    backward_net.run(scope, context)
    optimize_net.run(scope, context)
assert numpy.abs(numpy.array(scope.find_var("w").get_tensor()) - true).max() < 0.01
assert abs(numpy.array(scope.find_var("b").get_tensor())[0] - 0.25) < 0.01
print("done")
