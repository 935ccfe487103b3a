"""Private cache folders for compiled code: other users cannot place code in them."""

import os
import stat
from pathlib import Path

from fluidnb.errors import EnforceNotMet
from fluidnb.files.ownership import has_user_numbers, is_own


def cache_folder(name: str) -> Path:
    """Checked folder of mode 0700, below FLUIDNB_CACHE or else the user's cache (XDG_CACHE_HOME)."""
    chosen = os.environ.get("FLUIDNB_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluidnb"
    folder = base / name
    base.parent.mkdir(parents=True, exist_ok=True)
    base.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder = folder.resolve()
    if not has_user_numbers():
        return folder
    status = folder.stat()
    if is_own(status) and not status.st_mode & 0o022:
        folder.chmod(0o700)  # created by hand, readable for others: nothing in it can be forged
    else:
        raise _refusal(folder, f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}")
    for parent in folder.parents:
        status = parent.stat()
        open_to_all = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if open_to_all or not (status.st_uid == 0 or is_own(status)):
            raise _refusal(parent, f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}")
    return folder


def _refusal(folder: Path, received: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"Compiled kernels cannot be kept in {folder}: other users could replace them.",
        expected=f"owner {os.geteuid()}, mode 700", received=received,
        hint="set FLUIDNB_CACHE to a folder that only you can write to.",
    )  # fmt: skip
