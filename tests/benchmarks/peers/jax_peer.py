"""JAX, compiled: each work is one jitted function."""

import time

import numpy as np


def start():
    """Import JAX and its numpy."""
    import jax
    import jax.numpy as jnp

    return jax, jnp


def a(count=200):
    """Elementwise operators on shape [1]."""
    jax, jnp = start()

    @jax.jit
    def run(v, c):
        for i in range(count):
            v = v + c if i % 2 else v * c
        return v

    x, c = jnp.ones(1), jnp.ones(1)
    assert run(x, c).item() == count / 2 + 1

    def step(n):
        for _ in range(n):
            run(x, c).block_until_ready()

    return step


def regression(jax, jnp):
    """Linear regression with SGD on 20 rows of 13: a function that makes one step and returns the loss."""
    rng = np.random.RandomState(0)
    x, y = (jnp.asarray(rng.randn(20, n).astype("float32")) for n in (13, 1))
    params = [jnp.zeros((13, 1)), jnp.zeros(1)]

    def cost(params, x, y):
        return jnp.mean((x @ params[0] + params[1] - y) ** 2)

    @jax.jit
    def update(params, x, y):
        loss, grads = jax.value_and_grad(cost)(params, x, y)
        return [p - 0.01 * g for p, g in zip(params, grads, strict=True)], loss

    def run():
        nonlocal params
        params, loss = update(params, x, y)
        return float(loss)

    return run


def b():
    """A step of linear regression."""
    run = regression(*start())
    losses = [run() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def f(turns=1000):
    """A while loop, s += x[i]."""
    jax, jnp = start()

    @jax.jit
    def run(x):
        return jax.lax.while_loop(lambda s: s[0] < turns, lambda s: (s[0] + 1, s[1] + x[s[0]]), (0, jnp.float32(0)))[1]

    x = jnp.ones(turns, dtype="float32")
    assert float(run(x)) == turns

    def step(k):
        for _ in range(k):
            float(run(x))

    return step


def g():
    """12 elementwise operators on 4 million numbers."""
    jax, jnp = start()
    v, x, y = (jnp.asarray(np.random.RandomState(i).randn(2000, 2000).astype("float32")) for i in range(3))

    @jax.jit
    def run(v, x, y):
        for _ in range(4):
            v = jax.nn.relu(v * x + y)
        return v

    def step(n):
        for _ in range(n):
            run(v, x, y).block_until_ready()

    return step


def function(name):
    """A function of 2 million numbers."""
    jax, jnp = start()
    x = jnp.asarray(np.random.RandomState(0).randn(2000, 1000).astype("float32"))
    x = abs(x) if name == "log" else x
    plain = {"logsigmoid": jax.nn.log_sigmoid, "erf": jax.scipy.special.erf, "gelu": lambda x: jax.nn.gelu(x, False)}
    run = jax.jit(plain.get(name) or getattr(jax.nn, name, None) or getattr(jnp, name))

    def step(n):
        for _ in range(n):
            run(x).block_until_ready()

    return step


def __getattr__(name):
    """``of_NAME`` measures the function NAME."""
    if not name.startswith("of_"):
        raise AttributeError(name)
    return lambda: function(name.removeprefix("of_"))


def classifier(shape, weights, net, optimizer):
    """A classifier of 10 classes on a batch of noise: a function that makes one step and returns the loss."""
    jax, jnp = start()
    rng = np.random.RandomState(0)
    x, labels = jnp.asarray(rng.randn(*shape).astype("float32")), jnp.asarray(rng.randint(0, 10, shape[0]))
    params = [jnp.asarray(rng.randn(*s).astype("float32") * 0.05) for s in weights]
    state = [[jnp.zeros_like(p) for p in params] for _ in range(2)] + [jnp.zeros(())]

    def cost(params):
        logits = net(jax, jnp, x, params)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    @jax.jit
    def update(params, state):
        loss, grads = jax.value_and_grad(cost)(params)
        return (*optimizer(jnp, params, grads, state), loss)

    def run():
        nonlocal params, state
        params, state, loss = update(params, state)
        return float(loss)

    return run


def adam(jnp, params, grads, state):
    """A step of Adam: the parameters and the state after it."""
    first, second, t = state
    t = t + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads, strict=True)]
    rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    moments = zip(params, first, second, strict=True)
    return [p - rate * m / (jnp.sqrt(v) + 1e-8) for p, m, v in moments], [first, second, t]


def c(rows=64):
    """A step of an MLP 784-200-200-10 with Adam."""

    def net(jax, jnp, x, p):
        for i in (0, 2):
            x = jax.nn.relu(x @ p[i] + p[i + 1])
        return x @ p[4] + p[5]

    run = classifier((rows, 784), [(784, 200), (200,), (200, 200), (200,), (200, 10), (10,)], net, adam)
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def deep(layers):
    """A step of layers of 64 with SGD, batch 16."""

    def net(jax, jnp, x, p):
        for i in range(0, 2 * layers, 2):
            x = jnp.tanh(x @ p[i] + p[i + 1])
        return x @ p[-2] + p[-1]

    def sgd(jnp, params, grads, state):
        return [p - 0.01 * g for p, g in zip(params, grads, strict=True)], state

    run = classifier((16, 64), [(64, 64), (64,)] * layers + [(64, 10), (10,)], net, sgd)

    def step(n):
        for _ in range(n):
            run()

    return step


def d():
    """A step of LeNet with momentum, batch 64."""

    def net(jax, jnp, x, p):
        for i in (0, 2):
            x = jax.lax.conv_general_dilated(x, p[i], (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
            x = jax.nn.relu(x + p[i + 1][None, :, None, None])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = jax.nn.relu(x.reshape(64, -1) @ p[4] + p[5])
        return x @ p[6] + p[7]

    def momentum(jnp, params, grads, state):
        velocity = [0.9 * v + g for v, g in zip(state[0], grads, strict=True)]
        return [p - 0.01 * v for p, v in zip(params, velocity, strict=True)], [velocity, state[1], state[2]]

    weights = [(20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (800, 500), (500,), (500, 10), (10,)]
    run = classifier((64, 1, 28, 28), weights, net, momentum)
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def lstm(masked, steps=50):
    """A function that makes steps of training of an LSTM, a scan, with two classes behind its last state."""
    jax, jnp = start()
    rng = np.random.RandomState(0)
    lengths = rng.randint(5, 51, 32)
    lengths[:2] = 50, 5
    x = jnp.asarray(rng.randn(steps, 32, 128).astype("float32") * 0.5)
    labels, lengths = jnp.asarray(rng.randint(0, 2, (32, 1))), jnp.asarray(lengths)
    shapes = (128, 512), (128, 512), (512,), (128, 2), (2,)
    params = [jnp.asarray(rng.randn(*shape).astype("float32") * 0.05) for shape in shapes]
    state = [[jnp.zeros_like(p) for p in params] for _ in range(2)] + [jnp.zeros(())]

    def cost(p, x, labels, lengths):
        def cell(old, given):
            (h, c), (z, t) = old, given
            i, f, o, g = jnp.split(z + h @ p[1], 4, 1)
            new = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(new)
            if masked:
                going_on = (t < lengths)[:, None]
                hidden, new = jnp.where(going_on, hidden, h), jnp.where(going_on, new, c)
            return (hidden, new), None

        zero = jnp.zeros((32, 128))
        (h, _), _ = jax.lax.scan(cell, (zero, zero), (x @ p[0] + p[2], jnp.arange(steps)))
        return -jnp.take_along_axis(jax.nn.log_softmax(h @ p[3] + p[4]), labels, 1).mean()

    def update(params, state, *data):
        loss, grads = jax.value_and_grad(cost)(params, *data)
        return (*adam(jnp, params, grads, state), loss)

    update = jax.jit(update, donate_argnums=(0, 1))

    def run():
        nonlocal params, state
        params, state, loss = update(params, state, x, labels, lengths)
        return float(loss)

    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def e_static(steps=50):
    """A step of an LSTM of a fixed length."""
    return lstm(False, steps)


def e():
    """A step of an LSTM over sequences of several lengths, padded and masked."""
    return lstm(masked=True)


def h():
    """Import, build, first step."""
    return regression(*start())()


def chain(length=5000):
    """The first run of a chain of operators and their gradients, compilation included: CPU seconds."""
    jax, jnp = start()
    x, c = jnp.ones(1), jnp.ones(1)

    def run(v, c):
        for i in range(length):
            v = v + c if i % 2 else v * c
        return v.mean()

    cpu = time.process_time()
    value, slope = jax.jit(jax.value_and_grad(run))(x, c)
    value, slope = float(value), slope.item()
    done = time.process_time()
    assert (value, slope) == (length / 2 + 1, 1)
    return {"build": 0.0, "value": done - cpu}
