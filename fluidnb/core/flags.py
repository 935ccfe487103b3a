"""Initialization of Fluid's core by scripts: flags, logging, devices."""

import os
from collections.abc import Sequence

from fluidnb.memory import init_glog as _init_glog
from fluidnb.memory import set_flags
from fluidnb.memory.flags import FLAGS


def init_gflags(args: Sequence[str]) -> None:
    """Set flags from words of a command line.

    Args:
        args: for example ``["--fraction_of_gpu_memory_to_use=0.5"]``; ``--tryfromenv=a,b`` reads the environment
            again for these. The first word is the program's name when it has no dash, as in Fluid.
    """
    flags: dict[str, str] = {}
    for word in args:
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            if name in ("tryfromenv", "fromenv"):
                names = [n for n in value.split(",") if n in FLAGS and f"FLAGS_{n}" in os.environ]
                flags.update((n, os.environ[f"FLAGS_{n}"]) for n in names)
            else:
                flags[name] = value or "true"
    set_flags(flags)


def init_glog(program: str = "") -> None:
    """Choose the VLOG lines that are written from GLOG_v and GLOG_vmodule."""
    _init_glog()


def init_devices(p2p: bool = True) -> None:
    """Ignored (compatibility): a device is made ready by the first program that runs on it."""


def set_eager_deletion_mode(threshold_gb: float, fraction: float, fast: bool) -> None:
    """Set how early dead tensors are freed, as FLAGS_eager_delete_tensor_gb does.

    Args:
        threshold_gb: gigabytes of dead tensors at which they are freed; negative for never.
    """
    set_flags({"eager_delete_tensor_gb": float(threshold_gb)})
