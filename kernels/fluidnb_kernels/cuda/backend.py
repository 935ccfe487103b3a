"""The CUDA backend of kernels: cupy, or the emulator backend."""

import importlib
import os
import sys
from typing import Any

from fluidnb.extras import command
from fluidnb.files.cache_folder import cache_folder
from fluidnb.memory import flags

#: FLAGS_cuda_backend -> the module that is cupy, and the one that is its cuBLAS
_MODULES = {
    "cupy": ("cupy", "fluidnb_kernels.cuda.libcublas"),
    "emulator": ("fluidnb_kernels.cuda_emulator_backend", "fluidnb_kernels.cuda_emulator_backend.cublas"),
}


def cupy() -> Any:
    """The module that is used as cupy; it is imported at the first call."""
    if flags.values["cuda_backend"] == "cupy" and "cupy" not in sys.modules and "CUPY_CACHE_DIR" not in os.environ:
        # cupy reads it when it is imported; its own default is created with the umask's permissions
        os.environ["CUPY_CACHE_DIR"] = str(cache_folder("cupy"))
    return importlib.import_module(_MODULES[flags.values["cuda_backend"]][0])


def cublas() -> Any:
    """The module with cuBLAS's functions: cuBLAS itself, or the emulator backend's."""
    return importlib.import_module(_MODULES[flags.values["cuda_backend"]][1])


def missing() -> str:
    """The reason why there is no device, with the next step; empty when there is one."""
    if flags.values["cuda_backend"] == "emulator":
        from fluidnb_kernels import emulator

        return emulator.missing()
    use_emulator = "FLAGS_cuda_backend=emulator runs CUDA kernels on the processor."
    try:
        count = cupy().cuda.runtime.getDeviceCount()
    except ImportError as error:
        return (
            f"cupy is not installed ({_one_line(error)}): {command('cuda12')} (or cuda13) on a machine with "
            "an NVIDIA GPU."
        )
    except Exception as error:  # cupy has a class of its own for what the driver says
        return f"there is no CUDA device ({_one_line(error)}): {use_emulator}"
    return "" if count else f"there is no CUDA device: {use_emulator}"


def _one_line(error: Exception) -> str:
    """The text of an error, without the mark that comes before the next step."""
    return " ".join(str(error).replace(": ", ", ").split())


def named() -> str:
    """The name of the CUDA backend with the version of cupy, for reports."""
    version = f"cupy {cupy().__version__}"
    return version if flags.values["cuda_backend"] == "cupy" else f"emulator in place of {version}"


def device_name(device: int = 0) -> str:
    """The name of a device, and its architecture."""
    found = cupy().cuda.runtime.getDeviceProperties(device)
    return f"{found['name'].decode()}, sm_{found['major']}{found['minor']}"
