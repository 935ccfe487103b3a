"""PyTorch, eager: the quickest plain way to write each work."""

import os
import time


def start():
    """Import torch, for as many threads as the environment says."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return torch


def a(count=200):
    """Elementwise operators on shape [1]."""
    torch = start()
    x, c = torch.ones(1), torch.ones(1)

    def run():
        v = x
        for i in range(count):
            v = torch.add(v, c) if i % 2 else torch.mul(v, c)
        return v

    assert run().item() == count / 2 + 1

    def step(n):
        with torch.inference_mode():
            for _ in range(n):
                run()

    return step


def regression(torch):
    """Linear regression with SGD on 20 rows of 13: a function that makes one step and returns the loss."""
    torch.manual_seed(0)
    x, y = torch.randn(20, 13), torch.randn(20, 1)
    model = torch.nn.Linear(13, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def run():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return run


def b():
    """A step of linear regression."""
    run = regression(start())
    losses = [run() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def f(turns=1000):
    """A while loop over tensors, s += x[i]."""
    torch = start()
    x = torch.ones(turns)

    def run():
        i, n, total = torch.zeros(1, dtype=torch.int64), torch.full((1,), turns), torch.zeros(1)
        while bool(i < n):
            total = total + x.index_select(0, i)
            i = i + 1
        return total

    assert run().item() == turns

    def step(k):
        with torch.inference_mode():
            for _ in range(k):
                run()

    return step


def g():
    """12 elementwise operators on 4 million numbers."""
    torch = start()
    v, x, y = (torch.randn(2000, 2000) for _ in range(3))

    def step(n):
        with torch.no_grad():
            for _ in range(n):
                t = v
                for _ in range(4):
                    t = torch.relu(t * x + y)

    return step


def function(name):
    """A function of 2 million numbers."""
    torch = start()
    x, functions = torch.randn(2000, 1000), torch.nn.functional
    x = x.abs() if name == "log" else x
    called = getattr(functions, name, None) or getattr(torch, name)
    rows = {"dim": 1} if "softmax" in name else {}

    def step(n):
        with torch.no_grad():
            for _ in range(n):
                called(x, **rows)

    return step


def __getattr__(name):
    """``of_NAME`` measures the function NAME."""
    if not name.startswith("of_"):
        raise AttributeError(name)
    return lambda: function(name.removeprefix("of_"))


def classifier(shape, net, optimizer, best_of=("contiguous_format",)):
    """A classifier of 10 classes on a batch of noise, in the quickest of some memory formats."""
    torch = start()
    torch.manual_seed(0)
    quickest, least = None, float("inf")
    for name in best_of:
        order = getattr(torch, name)
        data = torch.randn(shape).to(memory_format=order) if len(shape) == 4 else torch.randn(shape)
        run = training(torch, net(torch.nn), optimizer, data, torch.randint(0, 10, (shape[0],)), order)
        run()
        cpu = time.process_time()
        for _ in range(5):
            run()
        cpu = time.process_time() - cpu
        if cpu < least:
            quickest, least = run, cpu
    return quickest


def training(torch, model, optimizer, data, labels, order):
    """A function that makes one step of training and returns the loss."""
    model = model.to(memory_format=order)
    update = optimizer(torch.optim, model.parameters())

    def run():
        update.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        update.step()
        return loss.item()

    return run


def mlp(nn, width=200):
    """An MLP 784-200-200-10."""
    return nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )  # fmt: skip


def c(rows=64):
    """A step of an MLP 784-200-200-10 with Adam."""
    run = classifier((rows, 784), mlp, lambda optim, params: optim.Adam(params, 1e-3))
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def deep(layers):
    """A step of layers of 64 with SGD, batch 16."""

    def net(nn):
        inner = [each for _ in range(layers) for each in (nn.Linear(64, 64), nn.Tanh())]
        return nn.Sequential(*inner, nn.Linear(64, 10))

    run = classifier((16, 64), net, lambda optim, params: optim.SGD(params, 1e-2))

    def step(n):
        for _ in range(n):
            run()

    return step


def lenet(nn, filters=(20, 50), width=500):
    """LeNet."""
    first, second = filters
    return nn.Sequential(
        nn.Conv2d(1, first, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(first, second, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * second, width), nn.ReLU(), nn.Linear(width, 10),
    )  # fmt: skip


def d():
    """A step of LeNet with momentum, batch 64, in the quicker memory format."""
    formats = ("contiguous_format", "channels_last")
    run = classifier((64, 1, 28, 28), lenet, lambda optim, params: optim.SGD(params, 0.01, 0.9), formats)
    losses = [run() for _ in range(20)]
    assert losses[-1] < losses[0]

    def step(n):
        for _ in range(n):
            run()

    return step


def lstm(packed, steps=50):
    """A function that makes steps of training of nn.LSTM with two classes behind its last state."""
    torch = start()
    torch.manual_seed(0)
    net, last = torch.nn.LSTM(128, 128), torch.nn.Linear(128, 2)
    update = torch.optim.Adam([*net.parameters(), *last.parameters()], 1e-3, fused=True)
    x, labels, lengths = torch.randn(steps, 32, 128) * 0.5, torch.randint(0, 2, (32,)), torch.randint(5, 51, (32,))
    lengths[0], lengths[1] = 50, 5

    def run():
        update.zero_grad()
        pack = torch.nn.utils.rnn.pack_padded_sequence
        _, (h, _) = net(pack(x, lengths, enforce_sorted=False) if packed else x)
        loss = torch.nn.functional.cross_entropy(last(h[0]), labels)
        loss.backward()
        update.step()
        return loss.item()

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
    """A step of an LSTM over sequences of several lengths, packed."""
    return lstm(packed=True)


def h():
    """Import, build, first step."""
    return regression(start())()


def chain(length=5000):
    """The first run of a chain of operators and their gradients: CPU seconds."""
    torch = start()
    x, c = torch.ones(1, requires_grad=True), torch.ones(1)
    cpu = time.process_time()
    v = x
    for i in range(length):
        v = torch.add(v, c) if i % 2 else torch.mul(v, c)
    loss = v.mean()
    loss.backward()
    done = time.process_time()
    assert (loss.item(), x.grad.item()) == (length / 2 + 1, 1)
    return {"build": 0.0, "value": done - cpu}
