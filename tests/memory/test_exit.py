"""The interpreter ends well whatever still holds or uses memory of the pools, and nothing but `free` unmaps it."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

BEGIN = """
import atexit, builtins, ctypes, gc, json, os, sys, threading, time
import numpy as np
import fluidnb as fluid
from fluidnb import memory

CPU = fluid.CPUPlace()

def at(address, shape):
    "An array over an address, which keeps nothing alive."
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_double)), shape)

def begin(work):
    "Work for ever in a thread that does not keep the program from ending."
    def loop():
        while True:
            work()
    threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.05)

def holders():
    "Things that die one after another while the interpreter ends: modules early and late, cycles, threads; and never."
    def wait(held):
        time.sleep(60)
    def hold(where):
        return lambda held: setattr(where, "held", held)
    def cycle(held):
        round_and_round = [held]
        round_and_round.append(round_and_round)
    return [*map(hold, (sys, builtins, json, np, ctypes, memory, memory.pools, memory.pool(CPU))), cycle,
            lambda held: begin(lambda: wait(held)), lambda held: atexit.register(id, held),
            lambda held: ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))]
"""

PROGRAMS = {
    # No Python runs, and no lock is held, while the thread reads: the interpreter is gone before it is done.
    "a thread in the middle of a computation over an address": """
        pages = at(memory.alloc(CPU, 8_000_000), (1_000_000,))
        for_long = np.lib.stride_tricks.as_strided(pages, (50_000, 1_000_000), (0, 8))
        begin(lambda: np.maximum.reduce(for_long, axis=None))
        """,
    "a thread in the middle of a computation over an array": """
        pages = memory.empty(CPU, (1_000_000,), "float64")
        for_long = np.lib.stride_tricks.as_strided(pages, (50_000, 1_000_000), (0, 8))
        begin(lambda: np.maximum.reduce(for_long, axis=None))
        """,
    "a thread that takes and gives back memory": """
        begin(lambda: memory.empty(CPU, (1000,), "float64").fill(1))
        """,
    "a thread that trains": """
        x = fluid.layers.data("x", shape=[256])
        loss = fluid.layers.mean(fluid.layers.fc(x, 256, act="tanh"))
        fluid.optimizer.Adam(0.001).minimize(loss)
        program, scope, exe = fluid.default_main_program(), fluid.global_scope(), fluid.Executor(CPU)
        exe.run(fluid.default_startup_program())
        feed = {"x": np.ones((512, 256), "float32")}
        begin(lambda: exe.run(program, feed=feed, fetch_list=[loss], scope=scope))
        """,
    "arrays that anything holds": """
        for hold in holders():
            hold(memory.empty(CPU, (1000,), "float64"))
        """,
    "arrays beyond a chunk, which the system gives and takes": """
        for hold in holders():
            hold(memory.empty(CPU, (memory.pool(CPU).max_chunk + 1,), "uint8"))
        """,
    "arrays that are read when their holder dies": """
        class Late:
            def __init__(self, array, add=np.add.reduce):
                self.array, self.add = array, add
            def __del__(self):
                self.add(self.array)
        for hold in holders():
            hold(Late(memory.empty(CPU, (1000,), "float64")))
            hold(Late(at(memory.alloc(CPU, 8000), (1000,))))
        """,
    "an allocator that nobody knows any more": """
        allocator = memory.CPUAllocator()
        address, _ = allocator.alloc(1 << 20)
        del allocator
        gc.collect()
        ctypes.memset(address, 1, 1 << 20)
        """,
    "a pool that nobody knows any more": """
        pool = memory.BuddyAllocator(memory.CPUAllocator(), 4096, 1 << 20)
        address = pool.alloc(5000)
        del pool
        gc.collect()
        ctypes.memset(address, 1, 5000)
        """,
    "arrays that were counted": """
        from tests.runtime.numpy_memory import counted
        with counted() as sizes:
            memory.pools.held, memory.pool(CPU).held = np.zeros(1000), np.zeros(1000)
        assert sizes == [8000, 8000]
        """,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_end_is_silent(program: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", BEGIN + dedent(program)]
    done = subprocess.run(command, env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
