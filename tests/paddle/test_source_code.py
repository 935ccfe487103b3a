"""Models that real Paddle 2.6.2 exports, as C source: built with all warnings as errors, and equal to Paddle."""

from __future__ import annotations

from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import nvrtc
from tests.code_generator.cuda_program import CudaProgram
from tests.paddle.harness import in_paddle, load, require_paddle
from tests.paddle.test_open import compare

pytestmark = [pytest.mark.paddle, pytest.mark.slow]

VERSION = "2.6.2"
STRICT = ("-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pedantic")


NAMES = (
    "resnet18", "mobilenet_v2", "transformer_encoder", "lstm_recogniser", "branches", "quantized_linear", "zero_d",
    "image_functions",
)  # fmt: skip


@pytest.mark.skipif(bool(emulator.missing() or nvrtc.missing()), reason="no g++, or no headers of CUDA")
@pytest.mark.parametrize("name", ["lenet", "mobilenet_v2", "resnet18", "transformer_encoder"])
def test_an_exported_model_on_cuda(name: str, tmp_path: Path) -> None:
    require_paddle(VERSION)
    in_paddle("paddle_export", tmp_path, name, version=VERSION)
    feeds, wanted = load(tmp_path / name / "feeds.npz"), load(tmp_path / name / "outputs.npz")
    model = fluid.open(str(tmp_path / name))
    sizes = {v.name: feeds[v.name].shape for v in model.feeds}
    code = fluid.transpiler.CodeGenerator(model.program, sizes, model.fetches, "cuda", model.scope)
    found = CudaProgram(code, tmp_path / "built").run({v.name: feeds[v.name] for v in model.feeds})
    compare(found, [wanted[str(i)] for i in range(len(wanted))], 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_model(name: str, tmp_path: Path) -> None:
    require_paddle(VERSION)
    in_paddle("paddle_export", tmp_path, name, version=VERSION)
    feeds, wanted = load(tmp_path / name / "feeds.npz"), load(tmp_path / name / "outputs.npz")
    model = fluid.open(str(tmp_path / name))
    sizes = {v.name: feeds[v.name].shape for v in model.feeds}
    code = fluid.transpiler.CodeGenerator(model.program, sizes, model.fetches, scope=model.scope)
    found = code.run({v.name: feeds[v.name] for v in model.feeds})
    compare(found, [wanted[str(i)] for i in range(len(wanted))], 1e-5)
    code.build(None, tmp_path / "strict", STRICT)
