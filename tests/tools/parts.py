"""The two parts of the test suite: `make test` (quick, needs Python alone) and `make test-more` (everything else).

A test belongs to the part of its file. `MORE` is the only list: what it does not name belongs to `make test`, but for
single tests that are marked slow.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: Folders and files that `make test-more` runs, with what they need that `make test` neither installs nor waits for.
MORE: dict[str, str] = {
    "kernels/fluidnb_kernels/emulator": "g++",
    "kernels/fluidnb_kernels/loss/sampled_products.py": "g++",
    "kernels/fluidnb_kernels/math/norms.py": "g++",
    "kernels/fluidnb_kernels/optimizer/launch.py": "g++",
    "kernels/fluidnb_kernels/optimizer/trust_ratio.py": "g++",
    "kernels/fluidnb_kernels/random/dropout.py": "g++",
    "kernels/fluidnb_kernels/rows": "g++",
    "tests/benchmarks": "real Paddle, Chromium",
    "tests/browser": "Chromium and JupyterLab",
    "tests/cli/test_completion.py": "argcomplete",
    "tests/cli/test_terminal.py": "processes in terminals",
    "tests/code_generator": "a C compiler",
    "tests/compare/test_onnxruntime.py": "onnxruntime",
    "tests/cuda": "g++ and NVRTC",
    "tests/dap": "node, processes",
    "tests/device": "g++",
    "tests/emulator": "g++",
    "tests/endurance": "processes, minutes",
    "tests/distributed/test_ray_attachment.py": "Ray, processes",
    "tests/distributed/test_ray_collective.py": "Ray, processes",
    "tests/distributed/test_ray_engine.py": "Ray, processes",
    "tests/distributed/test_ray_start.py": "Ray, processes",
    "tests/docs": "Sphinx, Chromium",
    "tests/fuzz": "minutes",
    "tests/gpu": "g++ and NVRTC",
    "tests/lab": "g++",
    "tests/limits/test_pyodide.py": "node, Pyodide",
    "tests/magics/test_kernel_cells.py": "g++",
    "tests/magics/test_kernel_versions.py": "kernels of Jupyter in processes",
    "tests/magics/test_lab_debugger.py": "kernels of Jupyter in processes",
    "tests/magics/test_terminal.py": "processes in terminals",
    "tests/notebooks": "g++, minutes",
    "tests/onednn": "oneDNN",
    "tests/onnx/test_arrays.py": "onnxruntime",
    "tests/onnx/test_models.py": "onnxruntime",
    "tests/onnx/test_sequences.py": "onnxruntime",
    "tests/paddle": "real Paddle",
    "tests/runtime/native": "a C compiler",
    "tests/runtime/test_kill.py": "processes, killed",
    "tests/snippets/test_memory_and_kernels.py": "g++",
    "tests/cuda_emulator_backend": "g++",
    "tests/terminal": "processes in terminals",
    "tests/tracking/test_libraries.py": "TensorBoard, tqdm, pandas",
    "tests/viz/test_block_dot.py": "Graphviz",
    "tests/viz/test_graphviz.py": "Graphviz",
}
#: Folders that both parts run: `make test` on the host, `make test-more` beside each operator's CUDA kernel, emulated.
BOTH = ("tests/ops",)
PARTS = ("test", "more")
_SLOW = b"pytest.mark.slow"


def parts(path: str) -> tuple[str, ...]:
    """The parts that run a file.

    Args:
        path: a file or folder, relative to the checkout.

    Returns:
        ``test``, ``more``, or both.

    Example:
        >>> parts("tests/op/test_rng.py"), parts("tests/browser/test_tour.py"), parts("tests/ops/test_mul.py")
        (('test',), ('more',), ('test', 'more'))
    """
    if any(_contains(folder, path) for folder in BOTH):
        return PARTS
    return ("more",) if any(_contains(row, path) for row in MORE) else ("test",)


def _contains(row: str, path: str) -> bool:
    return path == row or path.startswith(row + "/")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--part`."""
    parser.addoption("--part", choices=PARTS, help="one part of the suite; files and folders that are named run anyway")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Apply no part to paths that are named; hide the compilers from `make test`, also on machines that have some."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.option.part = None
    if config.getoption("part") == "test":
        os.environ["CXX"] = os.environ["CC"] = "no-compiler-in-make-test"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of the other part."""
    part = config.getoption("part")
    if part is None or collection_path.suffix != ".py" or not collection_path.is_relative_to(config.rootpath):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    if part in parts(path) or (part == "more" and _SLOW in collection_path.read_bytes()):
        return None
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave single tests that are marked slow to `make test-more`."""
    part = config.getoption("part")
    left = [item for item in items if part is not None and not _takes(part, item, config.rootpath)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _takes(part: str, item: pytest.Item, root: Path) -> bool:
    """Whether a part runs a test: a slow one belongs to ``more``, whatever its file."""
    slow = item.get_closest_marker("slow") is not None
    return part == "more" if slow else part in parts(item.path.relative_to(root).as_posix())
