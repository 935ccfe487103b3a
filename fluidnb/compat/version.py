"""Paddle's ``version`` module: the version of Fluid whose API this package has.

Example:
    >>> from fluidnb.compat import version
    >>> version.full_version, version.mkl()
    ('1.4.0', 'OFF')
"""

from __future__ import annotations

import fluidnb

full_version = "1.4.0"
major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = f"fluidnb {fluidnb.__version__}"
with_mkl = "OFF"

__all__ = ["commit", "full_version", "istaged", "major", "minor", "mkl", "patch", "rc", "show", "with_mkl"]


def show() -> None:
    """Prints the version, part by part.

    Example:
        >>> show()
        full_version: 1.4.0
        major: 1
        minor: 4
        patch: 0
        rc: 0
    """
    print(f"full_version: {full_version}\nmajor: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}")


def mkl() -> str:
    """Whether Intel's MKL is used: ``OFF``.

    Example:
        >>> mkl()
        'OFF'
    """
    return with_mkl
