"""Paddle's ``version`` module: the version of Fluid whose API this package has."""

import fluidnb

full_version = "1.4.0"
major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = f"fluidnb {fluidnb.__version__}"
with_mkl = "OFF"

__all__ = ["commit", "full_version", "istaged", "major", "minor", "mkl", "patch", "rc", "show", "with_mkl"]


def show() -> None:
    """Prints the version, part by part."""
    print(f"full_version: {full_version}\nmajor: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}")


def mkl() -> str:
    """Whether Intel's MKL is used: ``OFF``."""
    return with_mkl
