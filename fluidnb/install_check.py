"""Fluid's ``install_check`` module: whether the installation works, found out by training a step."""

import numpy as np

import fluidnb as fluid

__all__ = ["run_check"]


def run_check() -> None:
    """Build a small program, train it for one step, and say that this worked; the programs at hand stay as they are.

    Example:
        >>> run_check()
        fluidnb ...
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.layers.data("x", shape=[2])
        loss = fluid.layers.mean(fluid.layers.fc(x, size=3, param_attr=fluid.initializer.Constant(1.0)))
        fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": np.ones((4, 2), np.float32)}
        before, after = (exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(2))
    # Each weight counts for a third of the mean, and so does each bias: 2 becomes 2 - 0.1 * (2 / 3 + 1 / 3).
    if not (before == 2.0 and abs(after - 1.9) < 1e-5):
        raise fluid.core.EnforceNotMet(
            "The check computes wrong numbers.", expected="2.0, 1.9", received=f"{before}, {after}"
        )
    print(
        f"fluidnb {fluid.__version__} works on numpy {np.__version__}: "
        "a program was built, trained for a step and read back."
    )
