"""After an interrupt or a lack of memory at any moment, the next run gives the right numbers."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from tests.tools.sampling import takes_all


def network(loop: bool) -> Any:
    """Builds a network that trains, with a ``while`` in it or without; its loss."""
    x, y = layers.data("x", [8]), layers.data("y", [1])
    h = layers.fc(x, 16, act="relu")
    if loop:
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 4)
        total = layers.fill_constant_batch_size_like(h, [-1, 16], "float32", 0.0)
        total.stop_gradient = False
        going = layers.less_than(i, n)
        with layers.While(going).block():
            layers.assign(layers.elementwise_add(total, h), total)
            layers.increment(i)
            layers.less_than(i, n, cond=going)
        h = total
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def samples() -> Iterator[tuple[Any, Any]]:
    """The samples of a reader."""
    rng = np.random.default_rng(0)
    for _ in range(180):
        x = rng.random(8, "float32")
        yield x, x[:1]


class Training:
    """One pass over a reader with a thread that reads ahead, from the same parameters each time."""

    def __init__(self, loop: bool) -> None:
        self.loss, self.paused = network(loop), 0
        self.program, self.exe = fluid.default_main_program(), fluid.Executor()
        self.exe.run(fluid.default_startup_program())
        held = fluid.global_scope()
        names = [v.name for v in self.program.list_vars() if v.persistable]
        self.start = {n: np.array(held.find_var(n).get_tensor()) for n in names if held.find_var(n) is not None}
        block = self.program.global_block()
        self.feeder = fluid.DataFeeder([block.var("x"), block.var("y")], fluid.CPUPlace())
        self.reader = fluid.reader.batch(fluid.reader.buffered(samples, 4), 6)

    def restore(self) -> None:
        """Set all parameters to their initial values."""
        for name, value in self.start.items():
            fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())

    def run(self) -> list[float]:
        """The losses of one pass."""
        self.restore()
        feeds = [self.feeder.feed(batch) for batch in self.reader()]
        return [self.exe.run(self.program, feed=f, fetch_list=[self.loss])[0].item() for f in feeds]

    def debug(self) -> list[float]:
        """The same, the last step in the debugger, forwards and back and forwards."""
        self.restore()
        *most, last = [self.feeder.feed(batch) for batch in self.reader()]
        found = [self.exe.run(self.program, feed=f, fetch_list=[self.loss])[0].item() for f in most]
        with fluid.debug(self.program, feed=last, fetch_list=[self.loss]) as session:
            session.step(12)
            session.back(7)
            session.continue_()
            while session.snapshot.state != "done":  # Ctrl-C pauses it
                self.paused += 1
                session.continue_()
            return [*found, float(np.asarray(session.results[0]).reshape(-1)[0])]


KINDS: dict[str, tuple[bool, Callable[[Training], list[float]]]] = {
    "a reader": (False, Training.run),
    "a loop": (True, Training.run),
    "a debugger": (False, Training.debug),
    "a debugger in a loop": (True, Training.debug),
}


@contextmanager
def alarms_interrupt() -> Iterator[list[int]]:
    """SIGALRM is Ctrl-C inside a ``with``; gives a list of those that were sent."""
    sent: list[int] = []

    def send(number: int, frame: object) -> None:
        sent.append(number)
        os.kill(os.getpid(), signal.SIGINT)

    old = signal.signal(signal.SIGALRM, send)
    try:
        yield sent
    finally:
        signal.signal(signal.SIGALRM, old)


@contextmanager
def lost_interrupts() -> Iterator[list[Any]]:
    """Interrupts inside callbacks of weak references, which Python reports and cannot raise; each cut one callback."""
    lost: list[Any] = []
    old = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            lost.append(str(unraisable.object))
        else:
            old(unraisable)

    sys.unraisablehook = hook
    try:
        yield lost
    finally:
        sys.unraisablehook = old


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("kind", KINDS)
def test_interrupts_at_random_moments(kind: str) -> None:
    loop, act = KINDS[kind]
    training = Training(loop)
    expected = act(training)
    durations = []
    for _ in range(5):
        began = time.perf_counter()
        assert act(training) == expected
        durations.append(time.perf_counter() - began)
    dice, felt = random.Random(0), 0
    before = threading.active_count()
    with alarms_interrupt() as sent, lost_interrupts() as lost:
        for _ in range(250 if takes_all() else 25):
            try:
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-4, min(durations)))
                try:
                    found = act(training)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    if sent:
                        sent.clear()
                        time.sleep(0.05)  # an interrupt that came last is felt here
                assert found == expected
            except KeyboardInterrupt:
                felt += 1
            assert act(training) == expected
    assert felt + training.paused > 5, "hardly any interrupt arrived: the test shows nothing"
    for _ in range(100):
        gc.collect()  # a session in a traceback is part of a cycle
        if threading.active_count() <= before + len(lost):
            break
        time.sleep(0.05)
    assert threading.active_count() <= before + len(lost), "threads of readers or sessions are left"


LIMITED = """
import resource
import numpy as np
import fluidnb as fluid
from fluidnb import layers

def statistics():
    return int(open("/proc/self/statm").read().split()[0]) * 4096

h = layers.data("x", [256])
for act in ("relu", "tanh", "sigmoid"):
    h = layers.fc(h, 256, act=act)
loss = layers.mean(h)
fluid.optimizer.Adam(0.001).minimize(loss)
main, startup = fluid.default_main_program(), fluid.default_startup_program()
main.random_seed = startup.random_seed = 3
exe, small = fluid.Executor(), {"x": np.ones((4, 256), "float32")}
def run(scope, feed):
    return exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0].item()
plain, limited = fluid.Scope(), fluid.Scope()
for scope in (plain, limited):
    exe.run(startup, scope=scope)
assert run(plain, small) == run(limited, small)
failed = 0
for megabytes in range(5, 600, 75):
    big = {"x": np.ones((20_000 + 1_000 * megabytes, 256), "float32")}
    resource.setrlimit(resource.RLIMIT_AS, (statistics() + megabytes * 2**20, resource.RLIM_INFINITY))
    try:
        run(limited, big)
    except fluid.core.EnforceNotMet as error:
        failed += 1
        assert "memory" in str(error).lower() or "reserve" in str(error), error
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for name in list(plain.vars):
        value = plain.find_var(name).value
        if getattr(value, "array", None) is not None:
            limited.var(name).get_tensor().set(np.asarray(value), fluid.CPUPlace())
    assert run(plain, small) == run(limited, small)
print(failed)
"""


def test_memory_that_ends_in_the_middle_of_a_run() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3
