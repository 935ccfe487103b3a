"""What of ``fluid`` is still to come: a call says so, and what to use instead."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from fluidnb.errors import NotBuiltYet
from fluidnb.layers.absent import refusal
from fluidnb.transpiler.absent import ABSENT as TRANSPILERS

FILES = (
    "programs that read files by themselves are not built",
    "feed each batch: fluid.reader, fluid.dataset and fluid.DataFeeder make it.",
)
EAGER = (
    "it computes at once, without a program, and fluidnb is about programs",
    "%%fluid cells and fluid.testing show the value of each line of a program as you write it.",
)

#: modules of Fluid -> (why there is none, what to use instead)
MODULES = {
    "distribute_transpiler": TRANSPILERS["DistributeTranspiler"],
    "distribute_transpiler_simple": TRANSPILERS["SimpleDistributeTranspiler"],
    "dygraph": EAGER,
    "dygraph_grad_clip": (EAGER[0], "fluid.clip clips the gradients of programs."),
    "recordio_writer": (
        "programs do not read RecordIO files, which it would write batches for",
        "fluid.dataset.common.convert writes the samples of a reader into such files.",
    ),
}

_SMALLER = (
    "it makes trained models smaller, which Fluid itself called unfinished",
    "fluid.io.save_inference_model prunes a model and folds what is constant.",
)
_CLUSTER = ("training on several machines is still to come", "fluid.reader decorates what one process reads.")

#: modules and names of ``fluid.contrib`` -> (why there is none, what to use instead)
CONTRIB = {
    **dict.fromkeys(("int8_inference", "quantize", "slim", "Calibrator", "Compressor", "QuantizeTranspiler"), _SMALLER),
    **dict.fromkeys(
        ("reader", "utils", "HDFSClient", "convert_dist_to_sparse_program", "ctr_reader", "distributed_batch_reader",
         "load_persistables_for_increment", "load_persistables_for_inference", "multi_download", "multi_upload"),
        _CLUSTER,
    ),
    "extend_optimizer": (
        "optimizers with decoupled weight decay are not built",
        "regularization=fluid.regularizer.L2Decay(...) of an optimizer, or layers.assign after minimize.",
    ),
    "mixed_precision": ("it is for the tensor cores of GPUs", "layers.cast converts variables to float16."),
    "model_stat": ("it prints a table of operators", "contrib.op_freq_statistic and contrib.memory_usage count them."),
}
CONTRIB["extend_with_decoupled_weight_decay"] = CONTRIB["extend_optimizer"]
CONTRIB["summary"] = CONTRIB["model_stat"]

#: names of Fluid -> (why there is none, what to use instead)
NAMES = {
    "AsyncExecutor": FILES,
    "DataFeedDesc": FILES,
    "DatasetFactory": FILES,
    "DistributeTranspiler": TRANSPILERS["DistributeTranspiler"],
    "DistributeTranspilerConfig": TRANSPILERS["DistributeTranspilerConfig"],
}


class AbsentModule(ModuleType):
    """Stands in the place of a module that there is not: what is called in it, or derived from it, says why.

    Names in it are the same again, so that ``fluid.contrib.slim.Compressor()`` is told by its whole name.

    Args:
        name: its name from ``fluid`` on.
        facts: why there is none, and what to use instead.

    Example:
        >>> fluid.recordio_writer.convert_reader_to_recordio_file("train.recordio", None, None)
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.recordio_writer.convert_reader_to_recordio_file is not part of fluidnb ...
          hint:     fluid.dataset.common.convert writes the samples of a reader into such files.
    """

    def __init__(self, name: str, facts: tuple[str, str]) -> None:
        super().__init__(name, f"Not part of fluidnb yet: {facts[0]}.")
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # a star import, which would bring nothing without a word
            raise NotBuiltYet(
                f"from fluid.{self.__name__} import * has nothing to bring: "
                f"fluid.{self.__name__} is not part of fluidnb yet: {self._facts[0]}.",
                hint=self._facts[1],
            )
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentModule(f"{self.__name__}.{name}", self._facts)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltYet(f"fluid.{self.__name__} is not part of fluidnb yet: {self._facts[0]}.", hint=self._facts[1])

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:  # a class statement with it as base
        self()


def absent(name: str) -> Any:
    """What stands in the place of something of Fluid's that there is not.

    Args:
        name: one of `MODULES` or `NAMES`.

    Returns:
        A module or a function; a call raises, looking at the name does not.

    Example:
        >>> fluid.DistributeTranspiler()
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.DistributeTranspiler is not part of fluidnb yet: training on several ...
          ...
    """
    if name in MODULES:
        return AbsentModule(name, MODULES[name])
    return refusal(f"fluid.{name}", *NAMES[name])
