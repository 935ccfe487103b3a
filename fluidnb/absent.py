"""Names of Fluid and operators of Paddle that fluidnb does not have: why, and what to use instead.

Each table maps a name to (why there is none, what to use instead). A call of an absent name raises `NotBuiltYet`;
reading the name does not.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from fluidnb.errors import NotBuiltYet

MACHINES = (
    "this way of training on several machines is still to come",
    "fluid.DistributeTranspiler divides a program among trainers and parameter servers.",
)

#: names of ``fluid.transpiler``
TRANSPILERS = {
    "SimpleDistributeTranspiler": MACHINES,
}

FILES = (
    "programs that read files by themselves are not built",
    "feed each batch: fluid.reader, fluid.dataset and fluid.DataFeeder make it.",
)
EAGER = (
    "it computes at once, without a program, and fluidnb is about programs",
    "%%fluid cells and fluid.testing show the value of each line of a program as you write it.",
)

#: modules of Fluid
MODULES = {
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

#: modules and names of ``fluid.contrib``
CONTRIB = {
    **dict.fromkeys(("int8_inference", "quantize", "slim", "Calibrator", "Compressor", "QuantizeTranspiler"), _SMALLER),
    **dict.fromkeys(
        """reader utils HDFSClient convert_dist_to_sparse_program ctr_reader distributed_batch_reader
        load_persistables_for_increment load_persistables_for_inference multi_download multi_upload""".split(),
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

#: names of ``fluid``
NAMES = {
    "AsyncExecutor": FILES,
    "DataFeedDesc": FILES,
    "DatasetFactory": FILES,
}

#: (why, what to use instead) -> the layers of which it is true
_LAYER_GROUPS = {
    (
        "it came with Paddle 1.5, for detectors that are not built",
        "put it together of other layers, or define an operator with fluidnb.op.",
    ): """deformable_conv deformable_roi_pooling retinanet_detection_output retinanet_target_assign
        sigmoid_focal_loss""",
    (
        "programs do not open data files by themselves",
        "layers.py_reader takes any Python reader; fluid.reader has map_readers for what a Preprocessor does.",
    ): "Preprocessor open_files",
}  # fmt: skip

#: names of ``fluid.layers``
LAYERS = {name: facts for facts, names in _LAYER_GROUPS.items() for name in names.split()}

_PREDICTOR = (
    "the predictor is Paddle's C++ library",
    "io.load_inference_model and Executor.run compute the same.",
)
_PASSES = (
    "programs are not compiled by passes of a C++ library",
    "Executor.run binds a program once and replays it; fluid.transpiler rewrites programs.",
)
_QUEUE = (
    "layers.py_reader makes the queue of a reader, and fills it",
    "reader.decorate_paddle_reader(...) or decorate_tensor_provider(...), then reader.start().",
)

#: names of ``fluid.core``
CORE = {
    **dict.fromkeys(
        ("AnalysisConfig", "NativeConfig", "PaddleBuf", "PaddleDType", "PaddleTensor", "create_paddle_predictor"),
        _PREDICTOR,
    ),
    **dict.fromkeys(("Graph", "Pass", "PassBuilder", "get_pass"), _PASSES),
    **dict.fromkeys(("LoDTensorBlockingQueue", "Reader", "init_lod_tensor_blocking_queue"), _QUEUE),
    **dict.fromkeys(("Layer", "PyLayer", "Tracer", "VarBase"), (EAGER[0], "build a Program, and run it.")),
}

#: names of ``fluid.optimizer``
OPTIMIZERS = {
    "DGCMomentumOptimizer": (
        "it leaves out gradients that would be sent between machines, and one process trains here",
        "MomentumOptimizer takes the same steps with whole gradients.",
    ),
    "PipelineOptimizer": (
        "it spreads a program over several devices, and one process trains here",
        "minimize with its own optimizer, the first argument.",
    ),
}

_DIST = (
    "it belongs to distributed training over Fluid's own network, and engines carry values here",
    "fluid.DistributeTranspiler divides a program among trainers and parameter servers.",
)
_FUSED = "it is several operators in one, which a pass of Paddle writes", "build the program of the single operators."
_ENGINE = "it hands a part of the program to another library", "load the program before it was converted."
_QUANT = "it rounds to a few bits", "load the program before it was quantized."
_READER = "programs do not open data files by themselves", "layers.py_reader takes any Python reader."

#: (why, what to use instead) -> the operators of which it is true
_OP_GROUPS = {
    _DIST: """dgc dgc_clip_by_norm gen_nccl_id ncclAllReduce ncclBcast
        ncclInit ncclReduce ref_by_trainer_id sync_batch_norm""",
    _FUSED: """alloc_continuous_space attention_lstm conv2d_fusion conv2d_inception_fusion fc fused_elemwise_activation
        fused_embedding_fc_lstm fused_embedding_seq_pool fusion_gru fusion_lstm fusion_repeated_fc_relu
        fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc fusion_seqpool_concat fusion_squared_mat_sub
        fusion_transpose_flatten_concat""",
    _ENGINE: "anakin_engine ngraph_engine tensorrt_engine",
    _QUANT: """dequantize fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max
        fake_dequantize_max_abs fake_quantize_abs_max fake_quantize_moving_average_abs_max
        fake_quantize_range_abs_max quantize requantize""",
    _READER: "create_ctr_reader create_custom_reader create_multi_pass_reader create_recordio_file_reader open_files",
    (
        "a program runs on one place",
        "fluid.CPUPlace() or fluid.CUDAPlace(0), given to the Executor.",
    ): "get_places",
    ("programs do not start threads", "run two programs in two threads of Python."): "go",
}  # fmt: skip

#: operators of Paddle 1.4
OPERATORS = {type: facts for facts, types in _OP_GROUPS.items() for type in types.split()}

_TABLES = {
    "": NAMES, "core.": CORE, "layers.": LAYERS, "optimizer.": OPTIMIZERS, "transpiler.": TRANSPILERS,
}  # fmt: skip


def refusal(path: str, why: str, instead: str) -> Callable[..., NoReturn]:
    """Placeholder of an absent Fluid API: calling it, or a subclass of it, raises NotBuiltYet."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltYet(f"{path} is not part of fluidnb yet: {why}.", hint=instead)

    refuse.__name__ = refuse.__qualname__ = path.rpartition(".")[2]
    refuse.__doc__ = f"Not part of fluidnb yet: {why}."
    vars(refuse)["__mro_entries__"] = refuse
    return refuse


class AbsentModule(ModuleType):
    """Placeholder for a Fluid module that fluidnb does not have; calls and subclasses raise NotBuiltYet.

    Names in it are the same again, so that ``fluid.contrib.slim.Compressor()`` is identified by its whole name.

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


#: Names of Paddle 2, of which Fluid has none.
PADDLE_2 = (
    "Model", "amp", "autograd", "callbacks", "distributed", "distribution", "fft", "flops", "grad", "hub", "incubate",
    "inference", "jit", "linalg", "metric", "nn", "no_grad", "onnx", "optimizer", "quantization", "signal", "sparse",
    "static", "summary", "text", "to_tensor", "utils", "vision",
)  # fmt: skip


def of_paddle_2(name: str) -> str:
    """The refusal of a name of Paddle 2, of which Fluid has none."""
    return (
        f"paddle.{name} belongs to Paddle 2 and later. fluidnb runs Fluid: layers are in paddle.fluid.layers, "
        "optimizers in paddle.fluid.optimizer; models that Paddle 2 exported open with fluid.io.load_inference_model."
    )


def absent(name: str) -> Any:
    """The placeholder of an absent name, given by its path behind ``fluid.``."""
    if name in MODULES:
        return AbsentModule(name, MODULES[name])
    module, _, last = name.rpartition(".")
    return refusal(f"fluid.{name}", *_TABLES[f"{module}." if module else ""][last])
