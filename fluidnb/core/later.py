"""What of Fluid's core is still to come, or belongs to its C++ library: a call says so, and what to use instead."""

from __future__ import annotations

from typing import Any

from fluidnb.layers.absent import refusal

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
_EAGER = ("it computes at once, without a program, and fluidnb is about programs", "build a Program, and run it.")

#: name -> (why there is none, what to use instead)
LATER = {
    **dict.fromkeys(
        ("AnalysisConfig", "NativeConfig", "PaddleBuf", "PaddleDType", "PaddleTensor", "create_paddle_predictor"),
        _PREDICTOR,
    ),
    **dict.fromkeys(("Graph", "Pass", "PassBuilder", "get_pass"), _PASSES),
    **dict.fromkeys(("LoDTensorBlockingQueue", "Reader", "init_lod_tensor_blocking_queue"), _QUEUE),
    **dict.fromkeys(("Layer", "PyLayer", "Tracer", "VarBase"), _EAGER),
}


def later(name: str) -> Any:
    """What stands in the place of a name of the core that there is not.

    Args:
        name: one of `LATER`.

    Returns:
        A function; a call raises, looking at the name does not.

    Example:
        >>> fluid.core.NativeConfig()
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.core.NativeConfig is not part of fluidnb yet: the predictor is Paddle's ...
          hint:     io.load_inference_model and Executor.run compute the same.
    """
    return refusal(f"fluid.core.{name}", *LATER[name])
