"""Texts of cells for the test of the re-run invariant: the first of each is how it starts, the others are edits."""

from __future__ import annotations

#: Cells of a model.
CELLS: dict[str, tuple[str, ...]] = {
    "size": ("size = 3", "size = 4", "size = 3  # the same"),
    "data": (
        "x = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])",
        "x = layers.data('x', shape=[5])\ny = layers.data('y', shape=[1])",
        "y = layers.data('y', shape=[1])\nx = layers.data('x', shape=[4])\nextra = layers.relu(x)",
    ),
    "net": (
        "h = layers.fc(x, size, act='relu')",
        "h = layers.fc(x, size)\nh = layers.tanh(h)",
        "layers.fc(x, 2)\nh = layers.fc(x, size)",
        "h = layers.fc(x, size, akt='oops')",
    ),
    "again": ("x = layers.relu(x)", "x = layers.sigmoid(x)", "pass"),
    "out": ("pred = layers.fc(h, 1)", "h = layers.fc(h, 2)\npred = layers.fc(h, 1) + 1.0"),
    "loop": (
        "i = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 3)\n"
        "more = layers.less_than(i, n)\nwith layers.While(more).block():\n    i = layers.increment(i, 1)\n"
        "    more = layers.less_than(i, n, cond=more)",
        "i = n = None",
    ),
    "loss": (
        "loss = layers.mean(layers.square_error_cost(pred, y))\nfluid.optimizer.SGD(0.1).minimize(loss);",
        "loss = layers.mean(layers.square_error_cost(pred, y))\nfluid.optimizer.Adam(0.1).minimize(loss);",
        "loss = layers.mean(pred)",
    ),
    "test": ("test_program = fluid.default_main_program().clone()", "test_program = None"),
}

_LOOP = (
    "n = layers.fill_constant([1], 'int64', 3)\nmore = layers.less_than(i, n)\nturns = layers.While(more)\n"
    "with turns.block():\n    layers.increment(i, 1)\n    layers.less_than(i, n, cond=more)\n"
)
_INNER = (
    "j = layers.fill_constant([1], 'int64', 0)\nless = layers.less_than(j, n)\ninner = layers.While(less)\n"
    "with inner.block():\n    layers.increment(j, 1)\n    layers.less_than(j, n, cond=less)\n"
)

#: Cells with blocks. A text may begin with the options of its cell; others are what stands behind %fluid block.
BLOCKS: dict[str, tuple[str, ...]] = {
    "data": (
        "x = layers.data('x', shape=[4])\ni = layers.fill_constant([1], 'int64', 0)\n"
        "total = layers.fill_constant([1, 4], 'float32', 0.0)",
        "total = layers.fill_constant([1, 4], 'float32', 1.0)\ni = layers.fill_constant([1], 'int64', 1)\n"
        "x = layers.data('x', shape=[4])\nextra = layers.relu(x)",
        "x = layers.data('x', shape=[4])",
    ),
    "loop": (
        _LOOP,
        f"{_LOOP}    layers.assign(layers.scale(total, 2.0), output=total)\nafter = layers.relu(total)",
        "with layers.Switch() as switch:\n    with switch.case(layers.less_than(i, i)):\n        layers.increment(i)\n"
        + _LOOP,
        _LOOP + _INNER,
        _LOOP.replace("turns", "turn"),
    ),
    "body": (
        "--in turns\nlayers.assign(layers.scale(total, 3.0), output=total)",
        f"--in loop\n{_INNER}",
        "--in 1\nh = layers.fc(x, 4)\nlayers.assign(layers.reduce_mean(h), output=total)",
        "--in inner\nw = layers.fc(total, 4)\nlayers.assign(w, output=total)",
        "k = layers.relu(x)",
    ),
    "deep": (
        "--in turns\nlayers.assign(layers.relu(total), output=total)",
        "--in inner\nlayers.assign(layers.sigmoid(total), output=total)",
        "--in body\nlayers.assign(layers.tanh(total), output=total)",
    ),
    "choice": (
        "limit = layers.fill_constant_batch_size_like(x, [-1, 1], 'float32', 0.0)\n"
        "ie, rnn = layers.IfElse(layers.less_than(limit, limit)), layers.StaticRNN()",
        "limit = layers.fill_constant_batch_size_like(x, [-1, 1], 'float32', 0.0)\n"
        "ie, rnn = layers.IfElse(), layers.StaticRNN()",
    ),
    "yes": (
        "with ie.true_block():\n    ie.output(layers.scale(ie.input(x), -1.0))",
        "with ie.true_block():\n    p = ie.input(x)\n    ie.output(p + p)",
        "with ie.false_block():\n    ie.output(ie.input(x))",
    ),
    "no": ("open no=ie.false_block()", "close no"),
    "filled": (
        "--in no\nie.output(layers.fc(ie.input(x), 4))",
        "--in no\nu = layers.tanh(x)",
        "--in turns\nv = layers.relu(x)",
    ),
    "more": (
        "--in ie.true_block\nq = layers.fc(ie.input(x), 3)",
        "--in ie.true_block\nq = layers.fc(ie.input(x), 2)\nie.output(q)",
        "--in yes\nie.output(layers.relu(x))",
    ),
    "no again": ("close no", "open no=ie.false_block()"),
    "got": ("outs = ie()", "outs = ie(layers.less_than(limit, limit))", "outs = None"),
    "rnn": ("open rnn", "close rnn"),
    "step": (
        "--in rnn\nword = rnn.step_input(x)\nhid = layers.relu(word)",
        "--in rnn\nhid = layers.tanh(rnn.step_input(x))",
        "--in rnn\nword = rnn.step_input(x)\nhid = layers.fc(word, 3)",
    ),
    "result": ("--in rnn\nrnn.output(hid)", "--in rnn\nrnn.output(hid, layers.relu(hid))", "--in rnn\npass"),
    "rnn again": ("close rnn", "open rnn", "open rnn --in turns"),
    "loss": (
        "loss = layers.mean(total)",
        "loss = layers.mean(rnn())",
        "test_program = fluid.default_main_program().clone()",
        "loss = layers.mean(layers.fc(x, 2))\nfluid.optimizer.SGD(0.1).minimize(loss);",
    ),
}
