"""Packages that some features need: the extra of fluidnb that installs each, and the error where one is missing.

numpy and protobuf are all that programs need. ``pyproject.toml`` declares the extras; a test compares the two.
"""

import importlib
from importlib.util import find_spec
from typing import Any

from fluidnb.errors import FluidError

#: Package as it is imported -> (its name in the package index, the extra that installs it).
PACKAGES = {
    "IPython": ("ipython", "terminal"),
    "rich": ("rich", "terminal"),
    "anywidget": ("anywidget", "notebook"),
    "ipywidgets": ("ipywidgets", "notebook"),
    "jupyterlab": ("jupyterlab", "notebook"),
    "ml_dtypes": ("ml_dtypes", "bfloat16"),
    "PIL": ("pillow", "data"),
    "scipy": ("scipy", "data"),
    "sklearn": ("scikit-learn", "data"),
    "yaml": ("pyyaml", "data"),
    "cupy": ("cupy", "cuda12"),
    "pytest": ("pytest", "test"),
    "ray": ("ray", "distributed"),
    "argcomplete": ("argcomplete", "completion"),
    "ziglang": ("ziglang", "native"),
    "threadpoolctl": ("threadpoolctl", "native"),
    "onnx": ("onnx", "onnx"),
    "onnxruntime": ("onnxruntime", "test-more"),
    "tensorboard": ("tensorboard", "tensorboard"),
    "visualdl": ("visualdl", "visualdl"),
    "wandb": ("wandb", "wandb"),
    "mlflow": ("mlflow-skinny", "mlflow"),
    "tqdm": ("tqdm", "tqdm"),
    "pandas": ("pandas", "pandas"),
}


class MissingPackage(FluidError, ImportError):
    """A package that a feature needs and that is not installed."""


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported."""
    return find_spec(package) is not None


def command(extra: str) -> str:
    """The command that installs an extra.

    Example:
        >>> command("data")
        "pip install 'fluidnb[data]'"
    """
    return f"pip install 'fluidnb[{extra}]'"


def missing(package: str, feature: str) -> MissingPackage:
    """The error for a package, by the name of its import, which a feature (the sentence's subject) needs.

    Example:
        >>> print(missing("sklearn", "The digits data set"))
        The digits data set needs the package scikit-learn, which is not installed.
          hint:     pip install 'fluidnb[data]'
    """
    name, extra = PACKAGES[package]
    return MissingPackage(f"{feature} needs the package {name}, which is not installed.", hint=command(extra))


def require(module: str, feature: str) -> Any:
    """Imports a module that a feature needs and an extra installs; raises `MissingPackage` where it is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:  # it is installed, and lacks another package
            raise
        raise missing(package, feature) from None
