"""Private cache folders for compiled code: other users cannot place code in them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fluidnb.errors import EnforceNotMet


def cache_folder(name: str) -> Path:
    """Folder for compiled kernels of one kind, created with mode 0700 and checked.

    Args:
        name: the kind, for example ``emulator``.

    Returns:
        The folder: below FLUIDNB_CACHE in the environment, else ``~/.cache/fluidnb`` (or XDG_CACHE_HOME).

    Raises:
        EnforceNotMet: another user owns the folder, can write to it, or can replace it.

    Example:
        >>> folder = cache_folder("example"); oct(folder.stat().st_mode & 0o777)
        '0o700'
    """
    chosen = os.environ.get("FLUIDNB_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluidnb"
    folder = base / name
    base.parent.mkdir(parents=True, exist_ok=True)
    base.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder = folder.resolve()
    found = folder.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        folder.chmod(0o700)  # created by hand, readable for others: nothing in it can be forged
    else:
        raise _refusal(folder, f"owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):o}")
    for parent in folder.parents:
        found = parent.stat()
        open_to_all = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        if open_to_all or found.st_uid not in (0, os.geteuid()):
            raise _refusal(parent, f"owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):o}")
    return folder


def _refusal(folder: Path, received: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"Compiled kernels cannot be kept in {folder}: other users could replace them.",
        expected=f"owner {os.geteuid()}, mode 700", received=received,
        hint="set FLUIDNB_CACHE to a folder that only you can write to.",
    )  # fmt: skip
