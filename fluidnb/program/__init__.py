"""Programs: blocks, operators, variables and parameters as views over the description, and all that edits them."""

from fluidnb.program import hooks, origin, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.program.block import Block
from fluidnb.program.block_guard import BlockGuard
from fluidnb.program.clone import clone
from fluidnb.program.constants import (
    CONTROL_DEP_VAR_PREFIX,
    EMPTY_VAR_NAME,
    GRAD_VAR_SUFFIX,
    TEMP_VAR_NAME,
    ZERO_VAR_SUFFIX,
    OpRole,
    grad_var_name,
)
from fluidnb.program.defaults import (
    default_main_program,
    default_startup_program,
    fresh_programs,
    get_var,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from fluidnb.program.layer_calls import layer
from fluidnb.program.operator import Operator
from fluidnb.program.parameter import Parameter
from fluidnb.program.program import Program
from fluidnb.program.prune import prune, prune_block, prune_desc
from fluidnb.program.shapes import infer_shapes
from fluidnb.program.stale_handles import ReplacedError
from fluidnb.program.symbol_table import SymbolTable
from fluidnb.program.unique_name import name_scope
from fluidnb.program.variable import Variable

__all__ = [
    "CONTROL_DEP_VAR_PREFIX", "EMPTY_VAR_NAME", "GRAD_VAR_SUFFIX", "TEMP_VAR_NAME", "ZERO_VAR_SUFFIX", "Block",
    "BlockGuard", "OpRole", "Operator", "Parameter", "Program", "ReplacedError", "SymbolTable", "Variable", "clone",
    "default_main_program", "default_startup_program", "fresh_programs", "get_var", "grad_var_name",
    "hooks", "infer_shapes", "layer", "name_scope", "naming", "origin", "program_guard", "prune", "prune_block",
    "prune_desc", "switch_main_program", "switch_startup_program", "unique_name",
]  # fmt: skip
