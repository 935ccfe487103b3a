"""What ``%fluid`` can do: one function a word. Each is called with the workbench and the rest of the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidnb_magics.commands.blocks import block
from fluidnb_magics.commands.build import add, build
from fluidnb_magics.commands.cells import cells, drop, reset, undo
from fluidnb_magics.commands.cost import cost
from fluidnb_magics.commands.debugging import SESSION_COMMANDS, debug, nan
from fluidnb_magics.commands.diff import diff
from fluidnb_magics.commands.explore import graph, tree, uses
from fluidnb_magics.commands.explorer import explore_program
from fluidnb_magics.commands.kernels import kernels
from fluidnb_magics.commands.memory import memory, profile
from fluidnb_magics.commands.old_names import compat
from fluidnb_magics.commands.ops import ops
from fluidnb_magics.commands.panels import panel
from fluidnb_magics.commands.pictures import programs, scope, show
from fluidnb_magics.commands.place import place
from fluidnb_magics.commands.plan import plan
from fluidnb_magics.commands.run import run
from fluidnb_magics.commands.serve import serve
from fluidnb_magics.commands.settings import seed, set_value
from fluidnb_magics.commands.teach import teach
from fluidnb_magics.commands.train import runs, train

Command = Callable[[Any, str], Any]

#: word -> command
COMMANDS: dict[str, Command] = {
    "show": show,
    "graph": graph,
    "tree": tree,
    "uses": uses,
    "explore": explore_program,
    "run": run,
    "train": train,
    "runs": runs,
    "cells": cells,
    "drop": drop,
    "undo": undo,
    "reset": reset,
    "block": block,
    "build": build,
    "add": add,
    "scope": scope,
    "programs": programs,
    "ops": ops,
    "kernels": kernels,
    "compat": compat,
    "seed": seed,
    "set": set_value,
    "diff": diff,
    "cost": cost,
    "place": place,
    "plan": plan,
    "memory": memory,
    "profile": profile,
    "debug": debug,
    "nan": nan,
    "panel": panel,
    "serve": serve,
    "teach": teach,
    **SESSION_COMMANDS,
}

__all__ = ["COMMANDS", "Command"]
