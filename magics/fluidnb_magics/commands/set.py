"""``%fluid set``: sets flags and values of variables."""

from collections.abc import Collection
from typing import Any

import fluidnb as fluid
from fluidnb.errors import NotFound, near
from fluidnb.runtime import global_scope
from fluidnb.values.exact_cast import exact_cast, numbers
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz import read_tensor, tensor_lines
from fluidnb_magics.arguments import evaluate, pairs
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show
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
    values = {name: evaluate(text, bench.shell.user_ns) for name, text in pairs(args.pairs).items()}
    chosen = {name: value for name, value in values.items() if name.removeprefix("FLAGS_") in known}
    tensors = {name: _converted(name, value, known) for name, value in values.items() if name not in chosen}
    fluid.set_flags(chosen)  # all or none; from here on nothing is refused
    lines = []
    for name, value in values.items():
        if name in chosen:
            lines.append([(name, "name"), (f" = {value!r}", "")])
            continue
        tensor, array = tensors[name]
        tensor.set(array, tensor.place)
        lines += tensor_lines(read_tensor(tensor, name))
    show(bench.shell, lines)


def _converted(name: str, value: Any, flags: Collection[str]) -> tuple[LoDTensor, Any]:
    """A variable's tensor, and a new value of its shape and dtype."""
    variable = global_scope().find_var(name)
    if variable is None:
        hint = near(name, [*flags, *global_scope().local_var_names()])
        raise NotFound(f"there is no flag and no value called {name}.", received=name, hint=hint or "%fluid scope")
    tensor, array = variable.get_tensor(), numbers(name, value)
    return tensor, array if tensor.array is None else exact_cast(name, array, tensor.array)
