"""Run by a Python with PaddlePaddle: every variable of an inference model, as a .npz."""

import importlib
import sys
from typing import Any

import numpy as np


def main(prefix: str, feeds: str, names: str, out: str) -> None:
    """Runs a model.

    Args:
        prefix: the model's files without their endings.
        feeds: a .npz of what is fed, by name.
        names: a .npy of the names of the variables to fetch.
        out: the .npz to write; keys are positions in that list.
    """
    paddle = importlib.import_module("paddle")
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    program, _, _ = paddle.static.load_inference_model(prefix, exe)
    wanted = np.load(names).tolist()
    with np.load(feeds) as file:
        given = {name: file[name] for name in file.files}
    block = program.global_block()
    found = exe.run(program, feed=given, fetch_list=[block.var(name) for name in wanted])
    arrays: dict[str, Any] = {str(i): np.asarray(value) for i, value in enumerate(found)}
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
