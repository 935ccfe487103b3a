"""fluidnb: plain programs through `exe.run`, with feed and fetch."""

import base64
import time

import numpy as np

#: FLAGS_native: what is measured here is numpy; ``native_peer.py`` changes this.
NATIVE = "off"


def start():
    """Import fluidnb and make an executor: the module, the executor."""
    import fluidnb as fluid

    fluid.set_flags({"FLAGS_native": NATIVE})
    return fluid, fluid.Executor(fluid.CPUPlace())


def data(fluid, *names, shape=(1,), dtype="float32"):
    """Fed variables of a fixed shape."""
    return [fluid.layers.data(name, list(shape), append_batch_size=False, dtype=dtype) for name in names]


def tiny(fluid, count=200):
    """Elementwise operators on shape [1]: what they are fed, the result."""
    x, c = data(fluid, "x", "c")
    v = x
    for i in range(count):
        v = fluid.layers.elementwise_add(v, c) if i % 2 else fluid.layers.elementwise_mul(v, c)
    return {"x": np.ones(1, "float32"), "c": np.ones(1, "float32")}, v


def a(count=200):
    """Elementwise operators on shape [1]."""
    fluid, exe = start()
    feed, v = tiny(fluid, count)
    main = fluid.default_main_program()
    assert exe.run(main, feed=feed, fetch_list=[v])[0].item() == count / 2 + 1

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


def f(turns=1000):
    """A while loop, s += x[i]."""
    fluid, exe = start()
    (x,) = data(fluid, "x", shape=[turns])
    i, n = (fluid.layers.fill_constant([1], "int64", value) for value in (0, turns))
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
    feed = {"x": np.ones(turns, dtype="float32")}
    assert exe.run(main, feed=feed, fetch_list=[total])[0].item() == turns

    def step(k):
        for _ in range(k):
            exe.run(main, feed=feed, fetch_list=[total])

    return step


def repeated(exe, feed, out):
    """A function that runs the main program as often as it is asked, after a first run."""
    import fluidnb as fluid

    main, fetches = fluid.default_main_program(), [out]
    exe.run(main, feed=feed, fetch_list=fetches)

    def step(n):
        for _ in range(n):
            exe.run(main, feed=feed, fetch_list=fetches)

    return step


def g():
    """12 elementwise operators on 4 million numbers, and one of them fetched."""
    fluid, exe = start()
    rng = np.random.RandomState(0)
    v, x, y = data(fluid, "v", "x", "y", shape=(2000, 2000))
    feed = {name: rng.randn(2000, 2000).astype("float32") for name in "vxy"}
    for _ in range(4):
        v = fluid.layers.relu(fluid.layers.elementwise_add(fluid.layers.elementwise_mul(v, x), y))
    return repeated(exe, feed, fluid.layers.slice(v, [0, 1], [0, 0], [1, 1]))


def function(name):
    """A function of 2 million numbers that are initialized once, and one number of the result fetched."""
    fluid, exe = start()
    numbers = np.abs(np.random.RandomState(0).randn(2000, 1000).astype("float32")) if name == "log" else None
    numbers = np.random.RandomState(0).randn(2000, 1000).astype("float32") if numbers is None else numbers
    block = fluid.default_main_program().global_block()
    x = block.create_var(name="x", dtype="float32", shape=[2000, 1000], persistable=True)
    fluid.global_scope().var("x").get_tensor().set(numbers, fluid.CPUPlace())
    out = block.create_var(name="out", dtype="float32", shape=[2000, 1000])
    block.append_op(name, {"X": x}, {"Out": out})
    return repeated(exe, {}, fluid.layers.slice(out, [0, 1], [0, 0], [1, 1]))


def __getattr__(name):
    """``of_NAME`` measures the function NAME."""
    if not name.startswith("of_"):
        raise AttributeError(name)
    return lambda: function(name.removeprefix("of_"))


def classifier(fluid, shape, net, optimizer):
    """A classifier of 10 classes on a batch of noise: what it is fed, the loss."""
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(*shape).astype("float32"), "label": rng.randint(0, 10, (shape[0], 1))}
    x, label = fluid.layers.data("x", list(shape[1:])), fluid.layers.data("label", [1], dtype="int64")
    logits, block = net(fluid.layers, x), fluid.default_main_program().global_block()
    softmax, cost = (block.create_var(name=name, dtype="float32", shape=[-1, 10]) for name in ("softmax", "cost"))
    inputs, outputs = {"Logits": logits, "Label": label}, {"Softmax": softmax, "Loss": cost}
    block.append_op("softmax_with_cross_entropy", inputs, outputs)
    loss = fluid.layers.mean(cost)
    optimizer(fluid.optimizer).minimize(loss)
    return feed, loss


def training(fluid, exe, feed, loss):
    """A function that makes one step of training and returns the loss."""
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    return lambda: exe.run(main, feed=feed, fetch_list=[loss])[0].item()


def mlp(fluid, rows=64, width=200):
    """An MLP 784-200-200-10 with Adam: what it is fed, the loss."""

    def net(layers, x):
        return layers.fc(layers.fc(layers.fc(x, width, act="relu"), width, act="relu"), 10)

    return classifier(fluid, (rows, 784), net, lambda optimizer: optimizer.Adam(1e-3))


def c(rows=64):
    """A step of an MLP 784-200-200-10 with Adam."""
    fluid, exe = start()
    run = training(fluid, exe, *mlp(fluid, rows))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def deep(layers):
    """A step of layers of 64 with SGD, batch 16."""
    fluid, exe = start()

    def net(made, x):
        for _ in range(layers):
            x = made.fc(x, 64, act="tanh")
        return made.fc(x, 10)

    run = training(fluid, exe, *classifier(fluid, (16, 64), net, lambda optimizer: optimizer.SGD(1e-2)))

    def step(n):
        for _ in range(n):
            run()

    return step


def lenet(fluid, rows=64, filters=(20, 50), width=500):
    """LeNet with momentum: what it is fed, the loss."""

    def net(layers, x):
        for count in filters:
            x = layers.pool2d(layers.conv2d(x, count, 5, act="relu"), 2, "max", 2)
        return layers.fc(layers.fc(x, width, act="relu"), 10)

    return classifier(fluid, (rows, 1, 28, 28), net, lambda optimizer: optimizer.Momentum(0.01, 0.9))


def d():
    """A step of LeNet with momentum, batch 64."""
    fluid, exe = start()
    run = training(fluid, exe, *lenet(fluid))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def noise(rows=32, longest=50, width=128):
    """Lengths of sequences, from 5 on, their rows [rows, longest, width], and labels of two classes [rows, 1]."""
    rng = np.random.RandomState(0)
    lengths = rng.randint(5, longest + 1, rows)
    lengths[:2] = longest, 5
    return lengths, rng.randn(rows, longest, width).astype("float32") * 0.5, rng.randint(0, 2, (rows, 1))


def learn(fluid, state, rows=32):
    """Put two classes and Adam behind the last state of an LSTM; gives the loss."""
    label = fluid.layers.data("label", [rows, 1], append_batch_size=False, dtype="int64")
    cost = fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(state, 2), label)
    loss = fluid.layers.mean(cost)
    fluid.optimizer.Adam(1e-3).minimize(loss)
    return loss


def cell_of(layers, z, h, c):
    """One step of an LSTM out of small layers (Paddle 2.6.2 has no lstm_unit): the hidden state and the cell."""
    i, f, o, g = layers.split(layers.elementwise_add(z, layers.fc(h, 512, bias_attr=False)), 4, 1)
    kept = layers.elementwise_mul(layers.sigmoid(f), c)
    cell = layers.elementwise_add(kept, layers.elementwise_mul(layers.sigmoid(i), layers.tanh(g)))
    return layers.elementwise_mul(layers.sigmoid(o), layers.tanh(cell)), cell


def static_lstm(fluid, steps=50):
    """An LSTM cell in a StaticRNN, its inputs projected before: the loss."""
    (x,) = data(fluid, "x", shape=(steps, 32, 128))
    z = fluid.layers.fc(x, 512, num_flatten_dims=2)
    rnn = fluid.layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(z)
        h, c = (rnn.memory(shape=[-1, 128], batch_ref=z) for _ in range(2))
        hidden, cell = cell_of(fluid.layers, now, h, c)
        rnn.update_memory(h, hidden)
        rnn.update_memory(c, cell)
        rnn.step_output(hidden)
    last = fluid.layers.slice(rnn(), axes=[0], starts=[steps - 1], ends=[steps])
    return learn(fluid, fluid.layers.reshape(last, [32, 128]))


def lod_lstm(fluid, rows=32, width=128):
    """The LSTM over sequences of several lengths: the loss."""
    x = fluid.layers.data("x", [width], lod_level=1)
    z = fluid.layers.fc(x, 4 * width, bias_attr=False)
    hidden, _ = fluid.layers.dynamic_lstm(z, 4 * width, use_peepholes=False)
    return learn(fluid, fluid.layers.sequence_last_step(hidden), rows)


def packed(fluid, lengths, x):
    """Rows of sequences one behind the other, with where each begins, of x [rows, longest, width]."""
    rows = np.concatenate([row[:n] for row, n in zip(x, lengths, strict=True)])
    return fluid.create_lod_tensor(rows, [lengths.tolist()], fluid.CPUPlace())


def program_of(lstm):
    """The programs of an LSTM for a peer that runs them: bytes as text, and the name of the loss."""
    fluid, _ = start()
    loss = lstm(fluid)
    programs = {"main": fluid.default_main_program(), "startup": fluid.default_startup_program()}
    texts = {name: base64.b64encode(p.desc.serialize_to_string()).decode() for name, p in programs.items()}
    return {**texts, "loss": loss.name}


def program_of_e_static(steps=50):
    """See `program_of`."""
    return program_of(lambda fluid: static_lstm(fluid, steps))


def program_of_e():
    """See `program_of`."""
    return program_of(lod_lstm)


def trained(lstm, x):
    """A function that makes steps of training of an LSTM; `x` makes what it is fed."""
    fluid, exe = start()
    loss = lstm(fluid)
    run = training(fluid, exe, {"x": x(fluid), "label": noise()[2]}, loss)
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def e_static(steps=50):
    """A step of an LSTM of a fixed length."""
    x = np.ascontiguousarray(noise(longest=steps)[1].transpose(1, 0, 2))
    return trained(lambda fluid: static_lstm(fluid, steps), lambda fluid: x)


def e():
    """A step of an LSTM over sequences of several lengths."""
    return trained(lod_lstm, lambda fluid: packed(fluid, *noise()[:2]))


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


def network(count):
    """Layers of 8 with SGD, of about as many forward operators: seconds and operators of each stage of their life.

    The stages are building, append_backward, the first run and a run with a new batch size, less a run like it.
    """
    fluid, exe = start()
    block = fluid.default_main_program().global_block()
    times = {}

    def stage(name, work):
        cpu, known = time.process_time(), len(block.ops)
        result = work()
        times[name] = time.process_time() - cpu, len(block.ops) - known or len(block.ops)
        return result

    def forward():
        x = fluid.layers.data("x", [8])
        for _ in range(count // 3):
            x = fluid.layers.fc(x, 8, act="tanh")
        return fluid.layers.mean(x)

    loss = stage("build", forward)
    stage("append_backward", lambda: fluid.append_backward(loss))
    exe.run(fluid.default_startup_program())

    def run(rows):
        return exe.run(feed={"x": np.ones((rows, 8), "float32")}, fetch_list=[loss])

    stage("first_run", lambda: run(4))
    for rows in (5, 12, 6, 20, 7):
        run(rows)
    stage("new_shape", lambda: run(9))
    stage("again", lambda: run(9))
    new, again = times["new_shape"], times.pop("again")
    times["new_shape"] = new[0] - again[0], new[1]
    return times


def of_network(stage, count):
    """The microseconds that a stage takes for each operator."""
    seconds, ops = network(count)[stage]
    return {"value": seconds / ops * 1e6}


def build(count=1000):
    """Building, an operator."""
    return of_network("build", count)


def append_backward(count=1000):
    """append_backward, an operator that it adds."""
    return of_network("append_backward", count)


def first_run(count=1000):
    """The first run, an operator."""
    return of_network("first_run", count)


def new_shape(count=1000):
    """A run with a new batch size between six others, an operator, without what a run like it takes."""
    return of_network("new_shape", count)


def load_ext():
    """IPython with the extension and a first cell that runs, as a multiple of the CPU time of IPython alone."""
    import resource
    import subprocess
    import sys

    cell = "%%fluid loss\nx = layers.fill_constant([2], 'float32', 3.0)\nloss = layers.mean(x)"
    lines = ["%load_ext fluidnb", cell, "%fluid run --fetch loss"]
    code = "".join(f"assert get_ipython().run_cell({line!r}).success\n" for line in lines)
    times = {"pass": [], code: []}
    for _ in range(5):
        for text in times:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-m", "IPython", "-c", text], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times[text].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    alone, extended = map(min, times.values())
    return {"value": extended / alone, "alone": alone, "extended": extended}


def long_walk(fluid):
    """10,000 operators in a row and 1,000 turns of a loop: the program, its result, operators that run."""
    (x,) = data(fluid, "x", shape=[4])
    v = x
    for _ in range(10000):
        v = fluid.layers.scale(v, 1.0001)
    i, n = (fluid.layers.fill_constant([1], "int64", value) for value in (0, 1000))
    more = fluid.layers.less_than(i, n)
    with fluid.layers.While(more).block():
        fluid.layers.increment(i)
        fluid.layers.assign(fluid.layers.scale(v, 0.999), v)
        fluid.layers.less_than(i, n, cond=more)
    return fluid.default_main_program(), v, 10000 + 1000 * 4


def step():
    """A step of a debug session without its kernel, in microseconds: walked, less what the plain run needs."""
    fluid, exe = start()
    main, v, count = long_walk(fluid)
    feed = {"x": np.ones(4, "float32")}
    want = exe.run(main, feed=feed, fetch_list=[v])[0]
    cpu = time.process_time()
    exe.run(main, feed=feed, fetch_list=[v])
    plain = time.process_time() - cpu
    session = fluid.debug(main, feed, [v])
    cpu = time.process_time()
    session.continue_()
    walked = time.process_time() - cpu
    assert session.results[0].tobytes() == want.tobytes()
    return {"value": (walked - plain) / count * 1e6}


def back():
    """The longest of 200 steps back, from all over a run of 14,000 operators, in microseconds."""
    fluid, _ = start()
    main, v, count = long_walk(fluid)
    session = fluid.debug(main, {"x": np.ones(4, "float32")}, [v])
    session.continue_()
    times = []
    for at in range(count, 100, -count // 200):
        session.go(at)
        cpu = time.process_time()
        session.back()
        times.append(time.process_time() - cpu)
    return {"value": max(times) * 1e6}


def nan():
    """A step of LeNet with the check for NaN, as a multiple of one without."""
    fluid, exe = start()
    run = training(fluid, exe, *lenet(fluid))
    times = {False: [], True: []}
    for _ in range(12):
        for check in times:
            fluid.set_flags({"FLAGS_check_nan_inf": check})
            run()
            cpu = time.process_time()
            for _ in range(8):
                run()
            times[check].append(time.process_time() - cpu)
    return {"value": float(np.median(times[True]) / np.median(times[False]))}


def explorer_open():
    """The program explorer with 5,000 operators: seconds from its first message to painted, in JupyterLab."""
    from tests.benchmarks import widgets

    return widgets.explorer_open()


def explorer_scroll():
    """Seconds of a frame while its listing scrolls, the slowest of twenty."""
    from tests.benchmarks import widgets

    return widgets.explorer_scroll()


def explorer_step():
    """Seconds from a step in the debugger until the explorer shows it, the median."""
    from tests.benchmarks import widgets

    return widgets.explorer_step()
