"""fluidnb: PaddlePaddle Fluid as a notebook instrument.

A model is a program: nested blocks of operators and variables, built by layer functions, rewritten by backward and
optimizers, run by an Executor, and walked step by step.

Example:
    >>> x = fluid.layers.data("x", shape=[13])
    >>> y = fluid.layers.fc(x, size=1)
    >>> y.shape
    (-1, 1)

Everything is imported at its first use, so that ``import fluidnb`` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

# What type checkers and editors see; at run time `__getattr__` imports the same at its first use.
if TYPE_CHECKING:
    from fluidnb import average as average
    from fluidnb import backward as backward
    from fluidnb import clip as clip
    from fluidnb import compat as compat
    from fluidnb import compiler as compiler
    from fluidnb import contrib as contrib
    from fluidnb import core as core
    from fluidnb import data as data
    from fluidnb import dataset as dataset
    from fluidnb import debuger as debuger
    from fluidnb import debugger as debugger
    from fluidnb import default_scope_funcs as default_scope_funcs
    from fluidnb import distributed as distributed
    from fluidnb import evaluator as evaluator
    from fluidnb import executor as executor
    from fluidnb import framework as framework
    from fluidnb import graphviz as graphviz
    from fluidnb import initializer as initializer
    from fluidnb import install_check as install_check
    from fluidnb import io as io
    from fluidnb import layer_helper as layer_helper
    from fluidnb import layers as layers
    from fluidnb import memory as memory
    from fluidnb import metrics as metrics
    from fluidnb import net as net
    from fluidnb import net_drawer as net_drawer
    from fluidnb import nets as nets
    from fluidnb import op as op
    from fluidnb import optimizer as optimizer
    from fluidnb import parallel_executor as parallel_executor
    from fluidnb import param_attr as param_attr
    from fluidnb import profiler as profiler
    from fluidnb import reader as reader
    from fluidnb import regularizer as regularizer
    from fluidnb import tracking as tracking
    from fluidnb import transpiler as transpiler
    from fluidnb import ui as ui
    from fluidnb import unique_name as unique_name
    from fluidnb.backward import append_backward as append_backward
    from fluidnb.backward import gradients as gradients
    from fluidnb.compiler import BuildStrategy as BuildStrategy
    from fluidnb.compiler import CompiledProgram as CompiledProgram
    from fluidnb.compiler import ExecutionStrategy as ExecutionStrategy
    from fluidnb.contrib.inferencer import Inferencer as Inferencer
    from fluidnb.contrib.trainer import BeginEpochEvent as BeginEpochEvent
    from fluidnb.contrib.trainer import BeginStepEvent as BeginStepEvent
    from fluidnb.contrib.trainer import CheckpointConfig as CheckpointConfig
    from fluidnb.contrib.trainer import EndEpochEvent as EndEpochEvent
    from fluidnb.contrib.trainer import EndStepEvent as EndStepEvent
    from fluidnb.contrib.trainer import Trainer as Trainer
    from fluidnb.data import DataFeeder as DataFeeder
    from fluidnb.data import batch as batch
    from fluidnb.debug.session import debug as debug
    from fluidnb.executor import fetch_var as fetch_var
    from fluidnb.framework import get_var as get_var
    from fluidnb.framework import in_dygraph_mode as in_dygraph_mode
    from fluidnb.memory import get_flags as get_flags
    from fluidnb.memory import set_flags as set_flags
    from fluidnb.parallel_executor import ParallelExecutor as ParallelExecutor
    from fluidnb.param_attr import ParamAttr as ParamAttr
    from fluidnb.param_attr import WeightNormParamAttr as WeightNormParamAttr
    from fluidnb.program import Operator as Operator
    from fluidnb.program import Parameter as Parameter
    from fluidnb.program import Program as Program
    from fluidnb.program import Variable as Variable
    from fluidnb.program import default_main_program as default_main_program
    from fluidnb.program import default_startup_program as default_startup_program
    from fluidnb.program import name_scope as name_scope
    from fluidnb.program import program_guard as program_guard
    from fluidnb.program import switch_main_program as switch_main_program
    from fluidnb.program import switch_startup_program as switch_startup_program
    from fluidnb.runtime import Executor as Executor
    from fluidnb.runtime import Scope as Scope
    from fluidnb.runtime import global_scope as global_scope
    from fluidnb.runtime import scope_guard as scope_guard
    from fluidnb.runtime.opened_model import open_model as open  # noqa: A004, F401  # fluid.open
    from fluidnb.runtime.reproducibility import fresh as fresh
    from fluidnb.runtime.reproducibility import seed as seed
    from fluidnb.transpiler import DistributeTranspiler as DistributeTranspiler
    from fluidnb.transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
    from fluidnb.transpiler import memory_optimization_transpiler as memory_optimization_transpiler
    from fluidnb.transpiler import memory_optimize as memory_optimize
    from fluidnb.transpiler import release_memory as release_memory
    from fluidnb.values import CPUPlace as CPUPlace
    from fluidnb.values import CUDAPinnedPlace as CUDAPinnedPlace
    from fluidnb.values import CUDAPlace as CUDAPlace
    from fluidnb.values import LoDTensor as LoDTensor
    from fluidnb.values import LoDTensorArray as LoDTensorArray
    from fluidnb.values import create_lod_tensor as create_lod_tensor
    from fluidnb.values import create_random_int_lodtensor as create_random_int_lodtensor
    from fluidnb.values.place_lists import cpu_places as cpu_places
    from fluidnb.values.place_lists import cuda_pinned_places as cuda_pinned_places
    from fluidnb.values.place_lists import cuda_places as cuda_places
    from fluidnb.viz.time.progress import progress as progress

    Tensor = LoDTensor

__version__ = "0.1.0"

#: Modules that are attributes of the package.
_MODULES = (
    "average", "backward", "clip", "compat", "compiler", "contrib", "core", "data", "dataset", "debug", "debuger",
    "debugger", "default_scope_funcs", "distributed", "evaluator", "executor", "framework", "graphviz", "initializer",
    "install_check", "io", "layer_helper", "layers", "memory", "metrics", "net", "net_drawer", "nets", "op",
    "optimizer", "parallel_executor", "param_attr", "profiler", "reader", "regularizer", "tracking", "transpiler",
    "ui", "unique_name",
)  # fmt: skip

#: name -> module that has it
_NAMES = {
    "BeginEpochEvent": "contrib.trainer",
    "BeginStepEvent": "contrib.trainer",
    "BuildStrategy": "compiler",
    "CPUPlace": "values",
    "CUDAPinnedPlace": "values",
    "CUDAPlace": "values",
    "CheckpointConfig": "contrib.trainer",
    "CompiledProgram": "compiler",
    "DataFeeder": "data",
    "DistributeTranspiler": "transpiler",
    "DistributeTranspilerConfig": "transpiler",
    "EndEpochEvent": "contrib.trainer",
    "EndStepEvent": "contrib.trainer",
    "ExecutionStrategy": "compiler",
    "Executor": "runtime",
    "Inferencer": "contrib.inferencer",
    "LoDTensor": "values",
    "LoDTensorArray": "values",
    "Operator": "program",
    "ParallelExecutor": "parallel_executor",
    "ParamAttr": "param_attr",
    "Parameter": "program",
    "Program": "program",
    "Scope": "runtime",
    "Tensor": "values:LoDTensor",
    "Trainer": "contrib.trainer",
    "Variable": "program",
    "WeightNormParamAttr": "param_attr",
    "append_backward": "backward",
    "batch": "data",
    "cpu_places": "values.place_lists",
    "create_lod_tensor": "values",
    "create_random_int_lodtensor": "values",
    "cuda_pinned_places": "values.place_lists",
    "cuda_places": "values.place_lists",
    "default_main_program": "program",
    "default_startup_program": "program",
    "fetch_var": "executor",
    "fresh": "runtime.reproducibility",
    "get_flags": "memory",
    "get_var": "framework",
    "global_scope": "runtime",
    "gradients": "backward",
    "in_dygraph_mode": "framework",
    "memory_optimization_transpiler": "transpiler",
    "memory_optimize": "transpiler",
    "name_scope": "program",
    "program_guard": "program",
    "progress": "viz.time.progress",
    "release_memory": "transpiler",
    "scope_guard": "runtime",
    "seed": "runtime.reproducibility",
    "set_flags": "memory",
    "switch_main_program": "program",
    "switch_startup_program": "program",
}

#: Words of the design documents, and modules of Fluid under other names; beside ``__all__``, since
#: ``from fluidnb import *`` must not bring another ``print``.
_WORDS = {
    "distribute_transpiler": "transpiler:distribute",
    "Var": "compat.constants:var",
    "get_variable": "compat.constants",
    "larger": "compat.words:larger_than",
    "less_equal": "compat.words",
    "open": "runtime.opened_model:open_model",
    "print": "compat.words:print_message",
    "switch": "compat.words",
}

__all__ = sorted([*_MODULES, *_NAMES, "load_ipython_extension", "unload_ipython_extension"])


def __getattr__(name: str) -> Any:
    if name in _NAMES or name in _WORDS:
        module, _, other = (_NAMES.get(name) or _WORDS[name]).partition(":")
        value = getattr(importlib.import_module(f"fluidnb.{module}"), other or name)
    elif name in _MODULES:
        value = importlib.import_module(f"fluidnb.{name}")
    elif name == "g_scope":  # version 0.11's name of the global scope; it may be another one tomorrow
        return __getattr__("global_scope")()
    elif name == "_switch_scope":
        value = importlib.import_module("fluidnb.runtime").switch_scope
    else:
        from fluidnb.absent import MODULES, NAMES, absent
        from fluidnb.errors import near

        if name in MODULES or name in NAMES:
            return absent(name)
        raise AttributeError(f"module 'fluidnb' has no attribute '{name}'. {near(name, __all__)}".rstrip())
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_WORDS, "__version__"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext fluidnb``: the one place where this package reaches up to the magics."""
    from fluidnb_magics import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext fluidnb``: leaves no trace."""
    from fluidnb_magics import unload_ipython_extension as unload

    unload(shell)
