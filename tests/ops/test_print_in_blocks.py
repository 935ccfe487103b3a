"""Print inside loops and branches, forward and backward."""

import numpy as np
import pytest

import fluidnb as fluid

QUIET = {"print_tensor_name": False, "print_tensor_type": False, "print_tensor_shape": False, "print_tensor_lod": False}


def doubling(steps, **settings):
    """x doubled several times in a loop that prints; gives the result and its gradient."""
    layers = fluid.layers
    x = layers.data("x", [1], dtype="float64", append_batch_size=False, stop_gradient=False)
    i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", steps)
    memory, cond = layers.array_write(x, i), layers.less_than(i, n)
    with layers.While(cond).block():
        shown = layers.Print(layers.array_read(memory, i), **QUIET, **settings)
        result = layers.scale(shown, scale=2.0)
        layers.increment(i)
        layers.array_write(result, i, memory)
        layers.less_than(i, n, cond=cond)
    out = layers.array_read(memory, i)
    return out, *fluid.gradients(out, x)


def printed(text):
    return [float(line.partition("[")[2].rstrip(".]")) for line in text.splitlines()]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("phase", "want"), [("both", [3, 6, 12, 2, 4, 8]), ("forward", [3, 6, 12]), ("backward", [2, 4, 8])]
)
def test_each_iteration_prints_and_its_gradient_too(phase, want, keep, capsys):
    fetch = doubling(3, print_phase=phase)
    out, grad = fluid.Executor().run(feed={"x": np.array([3.0])}, fetch_list=list(fetch), keep_scopes=keep)
    assert (out, grad) == (24, 8) and printed(capsys.readouterr().out) == want


@pytest.mark.parametrize("keep", [False, True])
def test_first_n_counts_over_iterations_and_runs(keep, capsys):
    fetch, exe = doubling(2, first_n=3, print_phase="forward"), fluid.Executor()
    for _ in range(3):
        exe.run(feed={"x": np.array([3.0])}, fetch_list=list(fetch), keep_scopes=keep)
    assert printed(capsys.readouterr().out) == [3, 6, 3]


def test_first_n_counts_whoever_walks_and_whatever_the_shape(capsys):
    layers, exe = fluid.layers, fluid.Executor()
    out = layers.Print(layers.data("x", [1], dtype="float64"), first_n=3, **QUIET)
    for x, keep in ((1.0, False), (2.0, True), (3.0, False), (4.0, True), (5.0, False)):
        rows = np.full((int(x) % 2 + 1, 1), x)
        exe.run(feed={"x": rows}, fetch_list=[out], keep_scopes=keep)
    assert capsys.readouterr().out.splitlines() == ["  - data: [1. 1.]", "  - data: [2.]", "  - data: [3. 3.]"]


@pytest.mark.parametrize("keep", [False, True])
def test_a_branch_prints_when_it_is_taken(keep, capsys):
    layers, exe = fluid.layers, fluid.Executor()
    x = layers.data("x", [1], dtype="float64", append_batch_size=False)
    with layers.ConditionalBlock([layers.less_than(x, layers.zeros([1], "float64"))], True).block():
        layers.Print(x, message="negative:", **QUIET)
    for value in (1.0, -2.0, 3.0, -4.0):
        exe.run(feed={"x": np.array([value])}, keep_scopes=keep)
    assert capsys.readouterr().out == "negative:\n  - data: [-2.]\nnegative:\n  - data: [-4.]\n"
