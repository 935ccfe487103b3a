"""The module of ``import paddle as pd`` after `fluidnb.compat.install`, with the design documents' API names."""

from typing import Any

import fluidnb as fluid
from fluidnb.absent import PADDLE_2, of_paddle_2
from fluidnb.compat import layer
from fluidnb.compat import layer as operator
from fluidnb.compat.constants import Variable, get_variable, minibatch, sequence, tensor, var
from fluidnb.compat.evaluation import evaluate
from fluidnb.compat.rnn import as_step_input, create_rnn, create_rnn_op, rnn
from fluidnb.compat.version import full_version as __version__
from fluidnb.compat.words import add, create_ifelseop, fc, ifelse, larger_than, matmul, sigmoid
from fluidnb.data import batch, dataset, reader
from fluidnb.errors import near
from fluidnb.utils.source_location import warn

__all__ = [
    "Variable", "__version__", "add", "add_two", "as_step_input", "batch", "create_ifelseop", "create_rnn",
    "create_rnn_op", "dataset", "evaluate", "fc", "fluid", "get_variable", "ifelse", "larger_than", "layer", "matmul",
    "minibatch", "operator", "reader", "rnn", "sequence", "sigmoid", "tensor", "var",
]  # fmt: skip

add_two = add

#: A package in the eyes of the import system; its submodules are aliases.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name == "Varaible":  # as the first design of Block has it
        warn('pd.Varaible is a slip of the design document: write "pd.Variable".')
        return Variable
    if name in PADDLE_2:
        raise AttributeError(of_paddle_2(name))
    raise AttributeError(f"paddle has no {name} here. {near(name, __all__)}".rstrip())
