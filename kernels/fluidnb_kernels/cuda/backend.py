"""The CUDA backend of kernels: cupy, or the emulator backend."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from fluidnb.files.cache_folder import cache_folder
from fluidnb.memory import flags

flags.define_flag(
    "cuda_backend", "cupy", "What CUDAPlace runs on: cupy (a GPU), or emulator (the processor, slowly, to test).",
    check=lambda value: value in ("cupy", "emulator"), rule="cupy or emulator",
)  # fmt: skip

#: FLAGS_cuda_backend -> the module that is cupy, and the one that is its cuBLAS
_MODULES = {
    "cupy": ("cupy", "fluidnb_kernels.cuda.libcublas"),
    "emulator": ("fluidnb_kernels.cuda_emulator_backend", "fluidnb_kernels.cuda_emulator_backend.cublas"),
}


def cupy() -> Any:
    """The module that is used as cupy; it is imported at the first call.

    Returns:
        cupy, or `fluidnb_kernels.cuda_emulator_backend`.

    Raises:
        ImportError: it is not installed.
    """
    if flags.values["cuda_backend"] == "cupy" and "cupy" not in sys.modules and "CUPY_CACHE_DIR" not in os.environ:
        # cupy reads it when it is imported; its own default is created with the umask's permissions
        os.environ["CUPY_CACHE_DIR"] = str(cache_folder("cupy"))
    return importlib.import_module(_MODULES[flags.values["cuda_backend"]][0])


def cublas() -> Any:
    """The module with cuBLAS's functions.

    Returns:
        The one that calls cuBLAS, or the emulator backend's.

    Raises:
        ImportError: it is not installed.
    """
    return importlib.import_module(_MODULES[flags.values["cuda_backend"]][1])


def missing() -> str:
    """Why there is no device.

    Returns:
        One sentence with the next step; empty when there is one.

    Example:
        >>> isinstance(missing(), str)
        True
    """
    if flags.values["cuda_backend"] == "emulator":
        from fluidnb_kernels import emulator

        return emulator.missing()
    try:
        count = cupy().cuda.runtime.getDeviceCount()
    except ImportError as error:
        return (
            f"cupy is not installed ({_said(error)}): pip install fluidnb[cuda12] (or cuda13) on a machine with an "
            "NVIDIA GPU."
        )
    except Exception as error:  # cupy has a class of its own for what the driver says
        return (
            f"there is no CUDA device ({_said(error)}): FLAGS_cuda_backend=emulator runs CUDA kernels on the processor."
        )
    return "" if count else "there is no CUDA device: FLAGS_cuda_backend=emulator runs CUDA kernels on the processor."


def _said(error: Exception) -> str:
    """What an error says, without the mark that comes before the next step."""
    return " ".join(str(error).replace(": ", ", ").split())


def named() -> str:
    """The name of the CUDA backend, for reports.

    Returns:
        cupy or the emulator, with the version of cupy.
    """
    said = f"cupy {cupy().__version__}"
    return said if flags.values["cuda_backend"] == "cupy" else f"emulator in place of {said}"


def device_name(device: int = 0) -> str:
    """What a device is called.

    Returns:
        Its name, and its architecture.
    """
    found = cupy().cuda.runtime.getDeviceProperties(device)
    return f"{found['name'].decode()}, sm_{found['major']}{found['minor']}"
