"""Time and memory of Paddle Inference for a saved model, one thread; runs where Paddle is."""

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

_predictors: dict[str, Any] = {}


def main(folder: str, name: str, times: int) -> None:
    """Print the milliseconds of a run, and the kilobytes of the process at most.

    Args:
        folder: where the model is: ``NAME.model``, ``NAME.params``, ``NAME.npy`` with its feed.
        times: how often the model runs.
    """
    from paddle import inference

    path = str(Path(folder) / name)
    if path not in _predictors:
        config = inference.Config(path + ".model", path + ".params")
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(1)
        config.disable_glog_info()
        _predictors[path] = inference.create_predictor(config)
    predictor = _predictors[path]
    feed = predictor.get_input_handle(predictor.get_input_names()[0])
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    array = np.load(path + ".npy")
    for _ in range(5):
        feed.copy_from_cpu(array)
        predictor.run()
        out.copy_to_cpu()
    start = time.process_time()
    for _ in range(times):
        feed.copy_from_cpu(array)
        predictor.run()
        out.copy_to_cpu()
    spent = (time.process_time() - start) / times * 1e3
    print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
