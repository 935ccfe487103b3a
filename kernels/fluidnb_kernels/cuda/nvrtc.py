"""NVRTC called directly, for checks of kernels (tests, ``%%kernel``); runs compile through cupy, in ``source.py``."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluidnb.errors import EnforceNotMet, NotFound

#: The architectures for which every kernel compiles, from Turing to Blackwell.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

_FLAGS = ("--std=c++17", "-default-device", "--ptxas-options=-v")


class CompileError(EnforceNotMet):
    """A kernel's text that NVRTC refuses."""

    log: str = ""  # all that it says


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compilation."""

    cubin: bytes  # machine code
    registers: int  # registers that the largest kernel uses
    spilled: int  # bytes that kernels store and load again because registers do not suffice
    warnings: tuple[str, ...]  # what the compiler warns of, a line each
    log: str = ""  # all that the compiler says


def missing() -> str:
    """The missing part of NVRTC, as a sentence; empty when it can run."""
    try:
        _nvrtc()
    except NotFound as error:
        return str(error.hint)
    return ""


def compile_for(architecture: int, text: str, name: str, kernels: Sequence[str]) -> Compiled:
    """Compile kernels for an architecture."""
    nvrtc = _nvrtc()
    program = _value(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        for kernel in kernels:
            if "<" in kernel:
                _value(nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        flags = [f"--gpu-architecture=sm_{architecture}", *_FLAGS, *(f"-I{folder}" for folder in _headers())]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        said = _bytes(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        log = said.rstrip(b"\0").decode(errors="replace")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            refused = CompileError(f"{name} cannot be compiled for sm_{architecture}.", received=_errors(log))
            refused.log = log
            raise refused
        cubin = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Compiled(
        cubin,
        max((int(n) for n in re.findall(r"Used (\d+) registers", log)), default=0),
        sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", log)),
        tuple(line for line in log.splitlines() if "warning" in line),
        log,
    )


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        _value(nvrtc.nvrtcVersion()[:2])
        if not _headers():
            raise ImportError("cuda_fp16.h")
    except (ImportError, RuntimeError) as error:
        raise NotFound(
            "CUDA kernels cannot be compiled here.", expected="NVRTC and CUDA's headers", received=str(error),
            hint="pip install cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime",
        ) from None  # fmt: skip
    return nvrtc


def _headers() -> list[str]:
    """The folders in which NVIDIA's wheels keep CUDA's headers."""
    spec = importlib.util.find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    return [str(found.parent) for root in roots for found in Path(root).glob("*/include/cuda_fp16.h")]


def _value(answer: Any) -> Any:
    result, *rest = answer
    if int(result):
        raise RuntimeError(str(result))
    return rest[0] if rest else None


def _bytes(size: Any, get: Any, program: Any) -> bytes:
    buffer = b" " * _value(size(program))
    _value(get(program, buffer))
    return buffer


def _errors(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if "error" in line)[:2000] or log[:2000]
