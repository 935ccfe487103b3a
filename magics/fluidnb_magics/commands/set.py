"""``%fluid set``: sets flags and values of variables."""

import fluidnb as fluid
from fluidnb.errors import NotFound, near
from fluidnb.runtime import global_scope
from fluidnb.viz import read_tensor, tensor_lines
from fluidnb_magics.arguments import evaluate, pairs
from fluidnb_magics.commands._command import Namespace, Section, UsageError, Workbench, argument, command, show
from fluidnb_magics.commands._offers import scope_variables


@command(Section.SESSION, "set check_nan_inf=True", scope_variables)
@argument("pairs", nargs="*", metavar="NAME=EXPR", help="a flag (FLAGS_... or its name) or a variable, and its value")
def set_value(bench: Workbench, args: Namespace) -> None:
    """Set flags or values of variables in the global scope, or list the flags."""
    flags = fluid.get_flags()
    if not args.pairs:
        show(bench.shell, [[(name, "name"), (f" = {value!r}", "")] for name, value in flags.items()])
        return
    known = {name.removeprefix("FLAGS_") for name in flags}
    lines = []
    for name, text in pairs(args.pairs).items():
        value = evaluate(text, bench.shell.user_ns)
        if name.removeprefix("FLAGS_") in known:
            fluid.set_flags({name: value})
            lines.append([(name, "name"), (f" = {value!r}", "")])
            continue
        variable = global_scope().find_var(name)
        if variable is None:
            hint = near(name, [*known, *global_scope().local_var_names()])
            raise NotFound(f"there is no flag and no value called {name}.", received=name, hint=hint or "%fluid scope")
        tensor = variable.get_tensor()
        if tensor.array is not None:
            if tuple(getattr(value, "shape", ())) not in ((), tensor.array.shape):
                raise UsageError(f"{name} has shape {tensor.shape()}, the value has {list(value.shape)}.")
            import numpy as np

            value = np.full(tensor.array.shape, value, tensor.array.dtype)
        tensor.set(value, tensor.place)
        lines += tensor_lines(read_tensor(tensor, name))
    show(bench.shell, lines)
