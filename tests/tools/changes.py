"""The files that differ from where a change began, and the operators they define: sampling never leaves those out."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: Where a change may begin, first to last.
_BASES = ("origin/main", "main", "origin/master", "master")
#: More changed files of the kernels or the tests are a change of texts or names; all cases of all of them take hours.
_MOST = 60


@cache
def base() -> str:
    """The commit that the checkout is compared with.

    Returns:
        What FLUIDNB_BASE names, else the merge base with the main branch, on the main branch the commit before; "" for
        none, as in a checkout without history.
    """
    chosen = os.environ.get("FLUIDNB_BASE")
    if chosen:
        return chosen
    head = _git("rev-parse", "HEAD")
    found = next((merge for branch in _BASES if (merge := _git("merge-base", "HEAD", branch))), "")
    return _git("rev-parse", "--verify", "--quiet", "HEAD~1") if found in ("", head) else found


@cache
def files() -> frozenset[Path]:
    """The files that differ from `base`, uncommitted and new ones included; none where nearly all differ."""
    if not base():
        return frozenset()
    shown = _git("diff", "--name-only", base()) + "\n" + _git("ls-files", "--others", "--exclude-standard")
    names = [name for name in shown.splitlines() if name]
    many = tuple(top for top in ("kernels/", "tests/") if sum(name.startswith(top) for name in names) > _MOST)
    return frozenset(ROOT / name for name in names if not name.startswith(many))


@cache
def operators() -> frozenset[str]:
    """The types of operators whose definition, kernel or CUDA file differs from `base`, with their gradients."""
    if not any(path.is_relative_to(ROOT / "kernels") for path in files()):
        return frozenset()
    from fluidnb.op import registry
    from fluidnb.values import kernel_packages

    kernel_packages.load()
    found = set()
    for type, definition in registry.ops.items():
        modules = {definition.module, *(kernel.function.__module__ for kernel in definition.kernels)}
        if any(_sources(module) & files() for module in modules):
            found.add(type.partition("_grad")[0])
    return frozenset(found)


def mentions(text: str) -> bool:
    """Whether a text, such as the name of a case, has the type of a changed operator in it.

    Args:
        text: any.

    Example:
        >>> mentions("no such operator")
        False
    """
    if not operators():
        return False
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
    return any(word.partition("_grad")[0] in operators() for word in words)


@cache
def _sources(module: str) -> frozenset[Path]:
    """The file of a module, and the CUDA files that it launches kernels of."""
    from fluidnb_kernels.cuda import Source

    held: dict[str, Any] = vars(sys.modules[module]) if module in sys.modules else {}
    cuda = [value.path for value in held.values() if isinstance(value, Source)]
    return frozenset([Path(held["__file__"]), *cuda] if held.get("__file__") else [])


def _git(*arguments: str) -> str:
    """The output of a git command, "" where it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
