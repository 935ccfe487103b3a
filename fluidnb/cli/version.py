"""``fluidnb version``: what is installed here. Imports nothing that is slow."""

import os
import platform
from argparse import ArgumentParser, Namespace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import fluidnb
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError
from fluidnb.extras import is_installed

#: Shown beside fluidnb itself, in this order.
PACKAGES = ("numpy", "protobuf", "ipython", "jupyterlab")


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--short", action="store_true", help="the number alone")


def run(options: Namespace) -> int:
    """Print the versions."""
    if options.short:
        print(fluidnb.__version__)
        return 0
    rows = [("fluidnb", fluidnb.__version__), ("python", f"{platform.python_version()}  ({platform.platform()})")]
    rows += [(name, _version(name)) for name in PACKAGES]
    rows.append(("CUDA", cuda()))
    for name, text in rows:
        print(f"{name:<11}{text}")
    return 0


def cuda() -> str:
    """Whether programs can run on a CUDA device here, and why not."""
    if os.environ.get("FLAGS_cuda_backend") != "emulator" and not is_installed("cupy"):
        return "no: cupy is not installed"
    from fluidnb.values import CUDAPlace
    from fluidnb.values.device_context import DeviceContext

    try:
        first = DeviceContext.get(CUDAPlace(0))
        names = [DeviceContext.get(CUDAPlace(i)).name for i in range(first.devices)]
    except FluidError as error:
        return f"no: {error.summary.rpartition(': ')[2].rstrip('.')}"
    return f"{first.backend}: {'; '.join(names)}"


def _version(name: str) -> str:
    try:
        return version_of(name)
    except PackageNotFoundError:
        return "not installed"


COMMAND = Command("Print the versions of fluidnb and of its dependencies.", arguments, run)
