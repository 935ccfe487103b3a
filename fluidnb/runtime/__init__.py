"""Running programs: scopes, lowering, the compiled run, the interpreter, and the Executor that drives them."""

from fluidnb.runtime.block_run import create_variables, place_in, run_ops
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.interpreter.interpreter import Frame, Interpreter
from fluidnb.runtime.interrupt import interrupt_all
from fluidnb.runtime.last_values import latest_array
from fluidnb.runtime.native.report import native_calls, native_text
from fluidnb.runtime.native.segment_code import wait_for_native_code
from fluidnb.runtime.scope import Scope, global_scope, scope_guard, switch_scope

__all__ = [
    "Executor", "Frame", "Interpreter", "LoweredProgram", "Scope", "create_variables", "global_scope", "interrupt_all",
    "latest_array", "native_calls", "native_text", "place_in", "run_ops", "scope_guard", "switch_scope",
    "wait_for_native_code",
]  # fmt: skip
