"""What ``import paddle as pd`` gives after `fluidnb.compat.install`.

Example:
    >>> from fluidnb.compat import pd
    >>> pd.fluid is fluid, pd.batch is fluid.batch
    (True, True)
"""

import fluidnb as fluid
from fluidnb.compat.evaluation import evaluate
from fluidnb.data import batch, dataset, reader

__all__ = ["batch", "dataset", "evaluate", "fluid", "reader"]

#: A package in the eyes of the import system; its submodules are aliases.
__path__: list[str] = []
