"""delete_var: drops the values of variables before the run ends."""

from fluidnb.op import Binder, op


@op(
    "delete_var",
    inputs={"X*": "variables that nothing reads any more; one that holds nothing is passed over"},
    unset=("X",),
    side_effect=True,
    host_only="releases a variable",
)
def delete_var(b: Binder) -> None:
    """Drop what the variables in X hold, so that their memory is free for others.

    ``fluid.memory_optimize`` and ``fluid.release_memory`` insert it; who reads such a variable afterwards, or fetches
    it, gets an error.

    Example:
        >>> x = fluid.layers.data("x", shape=[2]); h = fluid.layers.relu(x); y = fluid.layers.tanh(h)
        >>> block = fluid.default_main_program().global_block()
        >>> op = block.append_op("delete_var", {"X": [h]})
        >>> exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        >>> out = exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y], scope=scope, keep_scopes=True)
        >>> [scope.kids[0].find_var(v.name).value is None for v in (h, y)]
        [True, False]

    Source: Fluid's delete_var_op; developer guide, section on transpilers (FreeMemoryOps).
    """
    for name in b.inputs["X"]:
        b.scope.cell(name)[0].value = None
