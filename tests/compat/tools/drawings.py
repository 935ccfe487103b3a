"""0.11 to 1.4: programs as pseudo code, blocks and networks as graphs, a graph by hand."""

import paddle.fluid as fluid
import paddle.fluid.debugger as debugger
import paddle.fluid.net_drawer as net_drawer
from paddle.fluid.graphviz import GraphPreviewGenerator

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
cost = fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))
fluid.optimizer.SGD(learning_rate=0.1).minimize(cost)
main, startup = fluid.default_main_program(), fluid.default_startup_program()

code = debugger.pprint_program_codes(main)
print(code)
assert code == debugger.pprint_program_codes(main.desc) and "@GRAD" not in code
block = debugger.pprint_block_codes(main.global_block(), show_backward=True)
assert "@GRAD" in block and "sgd" in block
shown = len(debugger.op_repr_handlers)
debugger.op_repr_handlers.append(lambda type, ins, outs, attrs: "a product" if type == "mul" else None)
assert "a product" in debugger.pprint_program_codes(main)
del debugger.op_repr_handlers[shown:]

debugger.draw_block_graphviz(main.global_block(), highlights=[".*fc_0.w_0", "mul"], path="./block.dot")
with open("block.dot") as file:
    assert file.read().count("fillcolor") >= 3
graph = net_drawer.draw_graph(startup, main, filename="net.gv", graph_attr={"rankdir": "LR"})
with open("net.gv") as file:
    assert file.read().strip() == str(graph).strip()

hand = GraphPreviewGenerator("by hand")
w = hand.add_param("w", "float32[13, 1]", highlight=True)
mul = hand.add_op("mul")
out = hand.add_arg("out")
hand.add_edge(w, mul)
hand.add_edge(mul, out, highlight=True)
assert str(hand.graph).count("->") == 2
hand(path="hand.dot")
print("done")
