"""Real PaddlePaddle 2.6.2, static graph: the same programs as fluidnb's, where Paddle still has the operators."""

import base64
import json
import os
import subprocess
import time
import zlib  # noqa: F401  (paddle breaks zlib when it is imported first)

import numpy as np
import numpy.random  # noqa: F401  (for the same reason)


def start():
    """Import Paddle and make an executor: the module, the executor."""
    import paddle

    paddle.enable_static()
    return paddle, paddle.static.Executor(paddle.CPUPlace())


def put(paddle, kind, inputs, outputs, **attrs):
    """Append one operator to the current block as it is."""
    paddle.static.default_main_program().current_block().append_op(
        type=kind, inputs=inputs, outputs=outputs, attrs=attrs
    )


def a(count=200):
    """Elementwise operators on shape [1], through exe.run with feed and fetch."""
    paddle, exe = start()
    x, c = (paddle.static.data(name, [1], "float32") for name in "xc")
    v = x
    for i in range(count):
        v = paddle.add(v, c) if i % 2 else paddle.multiply(v, c)
    feed = {"x": np.ones(1, "float32"), "c": np.ones(1, "float32")}
    assert exe.run(feed=feed, fetch_list=[v])[0].item() == count / 2 + 1

    def step(n):
        for _ in range(n):
            exe.run(feed=feed, fetch_list=[v])

    return step


def regression(paddle, exe):
    """Linear regression with SGD on 20 rows of 13: a function that makes one step and returns the loss."""
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(20, 13).astype("float32"), "y": rng.randn(20, 1).astype("float32")}
    x, y = paddle.static.data("x", [-1, 13], "float32"), paddle.static.data("y", [-1, 1], "float32")
    cost = paddle.nn.functional.square_error_cost(paddle.static.nn.fc(x, 1), y)
    loss = paddle.mean(cost)
    paddle.optimizer.SGD(0.01).minimize(loss)
    exe.run(paddle.static.default_startup_program())
    return lambda: exe.run(feed=feed, fetch_list=[loss])[0]


def b():
    """A step of linear regression."""
    run = regression(*start())
    losses = [run().item() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def f(turns=1000):
    """A while loop, s += x[i]."""
    paddle, exe = start()
    x = paddle.static.data("x", [turns], "float32")
    i, n = paddle.full([1], 0, "int64"), paddle.full([1], turns, "int64")
    total = paddle.full([1], 0, "float32")
    more = paddle.less_than(i, n)
    loop = paddle.static.nn.control_flow.While(more)
    with loop.block():
        block = paddle.static.default_main_program().current_block()
        item = block.create_var(name="item", dtype="float32", shape=[1])
        put(paddle, "gather", {"X": x, "Index": i}, {"Out": item}, overwrite=True)
        put(paddle, "elementwise_add", {"X": total, "Y": item}, {"Out": total}, axis=-1)
        put(paddle, "increment", {"X": i}, {"Out": i}, step=1.0)
        put(paddle, "less_than", {"X": i, "Y": n}, {"Out": more}, axis=-1)
    feed = {"x": np.ones(turns, dtype="float32")}
    assert exe.run(feed=feed, fetch_list=[total])[0].item() == turns

    def step(k):
        for _ in range(k):
            exe.run(feed=feed, fetch_list=[total])

    return step


def classifier(shape, net, optimizer):
    """A classifier of 10 classes on a batch of noise: a function that makes one step and returns the loss."""
    paddle, exe = start()
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(*shape).astype("float32"), "label": rng.randint(0, 10, (shape[0], 1))}
    x = paddle.static.data("x", [-1, *shape[1:]], "float32")
    label = paddle.static.data("label", [-1, 1], "int64")
    loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(net(paddle, x), label))
    optimizer(paddle.optimizer).minimize(loss)
    exe.run(paddle.static.default_startup_program())
    return lambda: exe.run(feed=feed, fetch_list=[loss])[0].item()


def c(rows=64):
    """A step of an MLP 784-200-200-10 with Adam."""

    def net(paddle, x):
        fc = paddle.static.nn.fc
        return fc(fc(fc(x, 200, activation="relu"), 200, activation="relu"), 10)

    run = classifier((rows, 784), net, lambda optimizer: optimizer.Adam(1e-3))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def deep(layers):
    """A step of layers of 64 with SGD, batch 16."""

    def net(paddle, x):
        for _ in range(layers):
            x = paddle.static.nn.fc(x, 64, activation="tanh")
        return paddle.static.nn.fc(x, 10)

    run = classifier((16, 64), net, lambda optimizer: optimizer.SGD(1e-2))

    def step(n):
        for _ in range(n):
            run()

    return step


def d():
    """A step of LeNet with momentum, batch 64."""

    def net(paddle, x):
        for filters in (20, 50):
            x = paddle.static.nn.conv2d(x, filters, 5, act="relu")
            x = paddle.nn.functional.max_pool2d(x, 2, 2)
        return paddle.static.nn.fc(paddle.static.nn.fc(x, 500, activation="relu"), 10)

    run = classifier((64, 1, 28, 28), net, lambda optimizer: optimizer.Momentum(0.01, 0.9))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def noise(steps=50):
    """Lengths of 32 sequences, their rows [32, steps, 128], and labels of two classes [32, 1]."""
    rng = np.random.RandomState(0)
    lengths = rng.randint(5, steps + 1, 32)
    lengths[:2] = steps, 5
    return lengths, rng.randn(32, steps, 128).astype("float32") * 0.5, rng.randint(0, 2, (32, 1))


def trained(name, x):
    """A function that makes steps of training of an LSTM, fluidnb's own program; `x` makes what it is fed."""
    worker = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "worker.py")
    command = [os.environ["FLUIDNB_PYTHON"], worker, "fresh", "fluidnb", f"program_of_{name}"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    paddle, exe = start()
    parse = paddle.static.Program.parse_from_string
    main, startup = (parse(base64.b64decode(said[kind])) for kind in ("main", "startup"))
    exe.run(startup)
    feed = {"x": x(paddle), "label": noise()[2]}
    losses = [exe.run(main, feed=feed, fetch_list=[said["loss"]])[0].item() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            exe.run(main, feed=feed, fetch_list=[said["loss"]])

    return step


def e_static(steps=50):
    """A step of an LSTM of a fixed length: a recurrent operator."""
    x = np.ascontiguousarray(noise(steps)[1].transpose(1, 0, 2))
    return trained(f"e_static={steps}", lambda paddle: x)


def e():
    """A step of an LSTM over sequences of several lengths: the lstm operator."""

    def rows(paddle):
        lengths, x, _ = noise()
        packed = np.concatenate([row[:n] for row, n in zip(x, lengths, strict=True)])
        return paddle.base.create_lod_tensor(packed, [lengths.tolist()], paddle.CPUPlace())

    return trained("e", rows)


def h():
    """Import, build, first step."""
    return regression(*start())().item()


def append(count=20000):
    """One append_op of many, in microseconds."""
    paddle, _ = start()
    block = paddle.static.default_main_program().global_block()
    block.create_var(name="v0", shape=[-1, 13], dtype="float32")
    cpu = time.process_time()
    for i in range(count):
        out = block.create_var(name=f"v{i + 1}", dtype="float32")
        block.append_op(type="scale", inputs={"X": f"v{i}"}, outputs={"Out": out}, attrs={"scale": 2.0})
    return {"value": (time.process_time() - cpu) / count * 1e6}


def chain(length=5000):
    """The first run of a chain of operators and their gradients: CPU seconds to build it, and for the run."""
    paddle, exe = start()
    cpu = time.process_time()
    x, c = (paddle.static.data(name, [1], "float32") for name in "xc")
    x.stop_gradient = False
    v = x
    for i in range(length):
        v = paddle.add(v, c) if i % 2 else paddle.multiply(v, c)
    loss = paddle.mean(v)
    (dx,) = paddle.static.gradients([loss], [x])
    built = time.process_time()
    feed = {"x": np.ones(1, "float32"), "c": np.ones(1, "float32")}
    value, slope = exe.run(feed=feed, fetch_list=[loss, dx])
    done = time.process_time()
    assert (value.item(), slope.item()) == (length / 2 + 1, 1)
    return {"build": built - cpu, "value": done - built}
