"""Exports models of paddle.vision, and times Paddle Inference on them, one thread; runs where Paddle is."""

import time
from pathlib import Path
from typing import Any

import numpy as np

_predictors: dict[tuple[str, int], Any] = {}


def main(folder: str, name: str, batch: int, times: int) -> None:
    """Print the least milliseconds of a run with oneDNN.

    Args:
        folder: where the model is, or is exported to: ``NAME.pdmodel``, ``NAME.pdiparams``; the results of the first
            run are saved beside it, as ``NAME.BATCH.npy``.
        name: of a function of paddle.vision.models.
        batch: how many images of 224 x 224 a run has.
        times: how often the model runs.
    """
    import paddle
    from paddle import inference

    path = str(Path(folder) / name)
    if not Path(path + ".pdmodel").exists():
        paddle.seed(0)
        model = getattr(paddle.vision.models, name)()
        model.eval()
        paddle.jit.save(model, path, input_spec=[paddle.static.InputSpec([None, 3, 224, 224], "float32", "image")])
    predictor = _predictors.get((path, batch))
    if predictor is None:
        config = inference.Config(path + ".pdmodel", path + ".pdiparams")
        config.disable_gpu()
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(1)
        config.enable_mkldnn()
        predictor = _predictors[path, batch] = inference.create_predictor(config)
    feed = predictor.get_input_handle(predictor.get_input_names()[0])
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    array = np.random.RandomState(0).rand(batch, 3, 224, 224).astype("float32")
    spent = []
    for k in range(times + 2):
        start = time.process_time()
        feed.copy_from_cpu(array)
        predictor.run()
        result = out.copy_to_cpu()
        if k > 1:
            spent.append(time.process_time() - start)
    np.save(f"{path}.{batch}.npy", result)
    print(min(spent) * 1e3)
