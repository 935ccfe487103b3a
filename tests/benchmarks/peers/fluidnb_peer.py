"""fluidnb: plain programs through `exe.run`, with feed and fetch."""

import time

import numpy as np


def start():
    """Import fluidnb and make an executor: the module, the executor."""
    import fluidnb as fluid

    return fluid, fluid.Executor(fluid.CPUPlace())


def data(fluid, *names, shape=(1,), dtype="float32"):
    """Fed variables of a fixed shape."""
    return [fluid.layers.data(name, list(shape), append_batch_size=False, dtype=dtype) for name in names]


def a():
    """200 elementwise operators on shape [1]."""
    fluid, exe = start()
    x, c = data(fluid, "x", "c")
    v = x
    for i in range(200):
        v = fluid.layers.elementwise_add(v, c) if i % 2 else fluid.layers.elementwise_mul(v, c)
    main = fluid.default_main_program()
    feed = {"x": np.ones(1, "float32"), "c": np.ones(1, "float32")}
    assert exe.run(main, feed=feed, fetch_list=[v])[0].item() == 101

    def step(n):
        for _ in range(n):
            exe.run(main, feed=feed, fetch_list=[v])

    return step


def regression(fluid, exe):
    """Linear regression with SGD on 20 rows of 13: a function that makes one step and returns the loss."""
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(20, 13).astype("float32"), "y": rng.randn(20, 1).astype("float32")}
    x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
    cost = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
    loss = fluid.layers.mean(cost)
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    return lambda: exe.run(main, feed=feed, fetch_list=[loss])[0]


def b():
    """A step of linear regression."""
    run = regression(*start())
    losses = [run().item() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def f():
    """A while loop of 1,000 iterations, s += x[i]."""
    fluid, exe = start()
    (x,) = data(fluid, "x", shape=[1000])
    i, n = (fluid.layers.fill_constant([1], "int64", value) for value in (0, 1000))
    total = fluid.layers.fill_constant([1], "float32", 0)
    more = fluid.layers.less_than(i, n)
    main = fluid.default_main_program()
    with fluid.layers.While(more).block():
        block = main.current_block()
        item = block.create_var(name="item", dtype="float32", shape=[1])
        block.append_op(type="gather", inputs={"X": x, "Index": i}, outputs={"Out": item})
        block.append_op(type="elementwise_add", inputs={"X": total, "Y": item}, outputs={"Out": total})
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=more)
    feed = {"x": np.arange(1000, dtype="float32")}
    assert exe.run(main, feed=feed, fetch_list=[total])[0].item() == 499500

    def step(k):
        for _ in range(k):
            exe.run(main, feed=feed, fetch_list=[total])

    return step


def classifier(shape, net, optimizer):
    """A classifier of 10 classes on a batch of noise: a function that makes one step and returns the loss."""
    fluid, exe = start()
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(*shape).astype("float32"), "label": rng.randint(0, 10, (shape[0], 1))}
    x, label = fluid.layers.data("x", list(shape[1:])), fluid.layers.data("label", [1], dtype="int64")
    logits, block = net(fluid.layers, x), fluid.default_main_program().global_block()
    softmax, cost = (block.create_var(name=name, dtype="float32", shape=[-1, 10]) for name in ("softmax", "cost"))
    inputs, outputs = {"Logits": logits, "Label": label}, {"Softmax": softmax, "Loss": cost}
    block.append_op("softmax_with_cross_entropy", inputs, outputs)
    loss = fluid.layers.mean(cost)
    optimizer(fluid.optimizer).minimize(loss)
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    return lambda: exe.run(main, feed=feed, fetch_list=[loss])[0].item()


def c():
    """A step of an MLP 784-200-200-10 with Adam, batch 64."""

    def net(layers, x):
        return layers.fc(layers.fc(layers.fc(x, 200, act="relu"), 200, act="relu"), 10)

    run = classifier((64, 784), net, lambda optimizer: optimizer.Adam(1e-3))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def d():
    """A step of LeNet with momentum, batch 64."""

    def net(layers, x):
        for filters in (20, 50):
            x = layers.pool2d(layers.conv2d(x, filters, 5, act="relu"), 2, "max", 2)
        return layers.fc(layers.fc(x, 500, act="relu"), 10)

    run = classifier((64, 1, 28, 28), net, lambda optimizer: optimizer.Momentum(0.01, 0.9))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def h():
    """Import, build, first step."""
    return regression(*start())().item()


def append(count=20000):
    """One append_op of many, in microseconds."""
    fluid, _ = start()
    block = fluid.default_main_program().global_block()
    block.create_var(name="v0", shape=[-1, 13], dtype="float32")
    cpu = time.process_time()
    for i in range(count):
        block.append_op(type="scale", inputs={"X": f"v{i}"}, outputs={"Out": f"v{i + 1}"}, attrs={"scale": 2.0})
    return {"value": (time.process_time() - cpu) / count * 1e6}


def chain(length=5000):
    """The first run of a chain of operators and their gradients: CPU seconds to build it, and for the run."""
    fluid, exe = start()
    cpu = time.process_time()
    x, c = data(fluid, "x", "c")
    x.stop_gradient = False
    v = x
    for i in range(length):
        v = fluid.layers.elementwise_add(v, c) if i % 2 else fluid.layers.elementwise_mul(v, c)
    loss = fluid.layers.mean(v)
    (dx,) = fluid.gradients([loss], [x])
    built = time.process_time()
    feed = {"x": np.ones(1, "float32"), "c": np.ones(1, "float32")}
    value, slope = exe.run(fluid.default_main_program(), feed=feed, fetch_list=[loss, dx])
    done = time.process_time()
    assert (value.item(), slope.item()) == (length / 2 + 1, 1)
    return {"build": built - cpu, "value": done - built}
