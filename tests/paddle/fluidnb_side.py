"""The same jobs as in `paddle_side`, done by fluidnb in this process."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from tests.paddle.harness import Arrays


def build(spec: dict[str, Any]) -> tuple[fluid.Program, fluid.Program, str]:
    """Build and differentiate the model of a description.

    Args:
        spec: a description as in `tests.paddle.spec`.

    Returns:
        The main program, the startup program and the loss's name.
    """
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = spec["seed"]
    with fluid.program_guard(main, startup):
        x = layers.data("x", shape=[spec["width"]])
        labels = spec["loss"] == "cross_entropy"
        y = layers.data("y", shape=[1], dtype="int64" if labels else "float32")
        h = x
        for size, act in spec["layers"]:
            h = layers.fc(h, size, act=act)
        loss = layers.mean(layers.cross_entropy(h, y) if labels else layers.square_error_cost(h, y))
        if spec["clip"]:
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(spec["clip"]))
        optimizer(spec).minimize(loss)
    return main, startup, loss.name


def optimizer(spec: dict[str, Any]) -> Any:
    """The optimizer of a description, with its regularizer."""
    decay = fluid.regularizer.L2Decay(spec["l2"]) if spec["l2"] else None
    if spec["optimizer"] == "momentum":
        return fluid.optimizer.Momentum(spec["rate"], 0.9, use_nesterov=spec["nesterov"], regularization=decay)
    return {"sgd": fluid.optimizer.SGD, "adam": fluid.optimizer.Adam}[spec["optimizer"]](
        spec["rate"], regularization=decay
    )


def initial(program: fluid.Program, startup: fluid.Program) -> Arrays:
    """The persistable variables of a program after its startup program has run, by name."""
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    return persistables(program, scope)


def persistables(program: fluid.Program, scope: fluid.Scope) -> Arrays:
    """The persistable variables of a program that a scope holds, by name."""
    names = {v.name for v in program.list_vars() if v.persistable} - {"feed", "fetch"}
    found = {name: scope.find_var(name) for name in sorted(names)}
    return {name: np.array(var.get_tensor()) for name, var in found.items() if var is not None}


def train(program: fluid.Program, params: Arrays, feeds: Arrays, fetch: str) -> tuple[np.ndarray, Arrays]:
    """Run a program once for each step of the feeds.

    Args:
        program: a training program.
        params: its persistable variables before the first step.
        feeds: arrays named "step/variable".
        fetch: the name of the loss.

    Returns:
        The losses, and the persistable variables after the last step.
    """
    scope, place = fluid.Scope(), fluid.CPUPlace()
    for name, array in params.items():
        scope.var(name).get_tensor().set(array, place)
    exe = fluid.Executor(place)
    losses = []
    for step in sorted({int(key.partition("/")[0]) for key in feeds}):
        feed = {key.partition("/")[2]: array for key, array in feeds.items() if key.startswith(f"{step}/")}
        losses.append(exe.run(program, feed=feed, fetch_list=[fetch], scope=scope)[0].item())
    return np.array(losses), persistables(program, scope)
