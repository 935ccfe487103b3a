"""Atomic writes: a file has either its old content or all of its new content, whatever happens in between."""

import contextlib
import errno
import hashlib
import importlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, Literal, overload

from fluidnb.errors import ArgumentError, EnforceNotMet, typed
from fluidnb.files.ownership import is_own

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no locks, and no open file is renamed or removed
    fcntl = None

#: Flags that not every system has: follow no link, close at exec, no translation of line ends.
_OPEN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
#: Longest name, in bytes, that may carry a suffix: file systems allow 255.
_LONGEST = 240
#: What a file system without locks answers; writers of one path are not serialised there.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
#: Error codes of the operating system for a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@overload
def atomic_write(
    path: str | os.PathLike[str], *, text: Literal[False] = ..., overwrite: bool = ..., parents: bool = ...,
    size: int | None = ...,
) -> contextlib.AbstractContextManager[BinaryIO]: ...  # fmt: skip
@overload
def atomic_write(
    path: str | os.PathLike[str], *, text: Literal[True], overwrite: bool = ..., parents: bool = ...,
    size: int | None = ...,
) -> contextlib.AbstractContextManager[IO[str]]: ...  # fmt: skip
@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, text: bool = False, overwrite: bool = True, parents: bool = False,
    size: int | None = None,
) -> Iterator[Any]:  # fmt: skip
    """Opens a file for writing that replaces `path` when the block ends without an error.

    The content goes to ``.<name>.part`` in the same folder, is flushed to the disk, and is renamed; the folder is
    flushed too. An error or Ctrl-C removes the temporary file. After a kill or a power failure it stays, and the next
    write of the same path uses and renames it. Two writers of one path wait for each other (``flock``); on a system
    without locks each has a temporary file of its own, and the last one that ends wins. A path that is no regular file
    (a pipe, ``/dev/stdout``) is written directly.

    Args:
        text: True opens it for UTF-8 text, False for bytes.
        overwrite: False refuses a path that exists.
        parents: True creates missing folders.
        size: bytes that will be written, if known; reported when the disk is full.
    """
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or "\0" in name:
        raise ArgumentError("The path of a file is a text without null bytes.", received=typed(path))
    if not overwrite and os.path.exists(name):
        raise EnforceNotMet(
            f"{name} exists!, cannot save to it when overwrite=false",
            expected="a path without a file", received=name, hint="overwrite=True replaces it.",
        )  # fmt: skip
    target = os.path.realpath(name)
    try:
        _check_link(name)
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as direct, _as_text(direct, text) as file:
                yield file
            return
        if parents:
            with contextlib.suppress(FileExistsError):  # then a part of the path is a file, which opening says better
                os.makedirs(os.path.dirname(target), exist_ok=True)
        partial = _partial(target)
        with io.BufferedWriter(_locked(partial)) as buffered:
            try:
                with _as_text(buffered, text) as file:
                    yield file
                buffered.flush()
                _keep_mode(buffered.fileno(), target)
                os.fsync(buffered.fileno())  # before the rename: the new name must never mean data that is not on disk
                if fcntl is None:
                    buffered.close()
                os.replace(partial, target)
            except BaseException:
                _remove(partial, buffered)
                raise
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        raise _refusal(name, error, size) from error


@contextlib.contextmanager
def _as_text(file: IO[bytes], text: bool) -> Iterator[IO[Any]]:
    """The file itself, or a text layer over it that leaves it open."""
    if not text:
        yield file
        return
    wrapper = io.TextIOWrapper(file, "utf-8", newline="\n")
    try:
        yield wrapper
    finally:
        wrapper.detach()


def _check_link(path: str) -> None:
    """Refuse another user's link in a shared folder, as Linux does for what is opened through it."""
    if os.path.islink(path):
        folder = os.stat(os.path.dirname(os.path.abspath(path)))
        shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
        if shared and not is_own(status := os.lstat(path)) and status.st_uid != folder.st_uid:
            raise OSError(errno.EACCES, "the path is a link of another user in a shared folder", path)


def _partial(target: str) -> str:
    """Path of the temporary file: one name for each target, so that what a killed process left is used again.

    Without locks each writer has another name.
    """
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > _LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    writer = "" if fcntl is not None else f".{os.urandom(4).hex()}"
    return os.path.join(folder, f".{name}{writer}.part")


def _locked(partial: str) -> io.FileIO:
    """Open and lock an empty temporary file."""
    while True:
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | _OPEN, 0o666)
        file = io.FileIO(handle, "w")
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not is_own(status):
                # Another user may have put it into a shared folder, to be written through.
                raise OSError(errno.EPERM, "the temporary file belongs to another user", partial)
            if fcntl is None:
                return file
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            if _is_open_as(partial, handle):
                file.truncate(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # the writer before us has renamed or removed it: take a new one


def _is_open_as(partial: str, handle: int) -> bool:
    """Whether a path still is the file that a handle has open."""
    try:
        return os.path.samestat(os.stat(partial, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove(partial: str, file: "io.BufferedWriter[Any]") -> None:
    """Remove the temporary file, unless it has been renamed and the path is another writer's now."""
    with contextlib.suppress(OSError):
        if fcntl is None:
            file.raw.close()
            os.unlink(partial)
        elif _is_open_as(partial, file.fileno()):
            os.unlink(partial)


def _keep_mode(handle: int, target: str) -> None:
    """Give the new file the permissions of the one that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        if hasattr(os, "fchmod"):
            os.fchmod(handle, stat.S_IMODE(os.stat(target).st_mode))


def _sync_folder(folder: str) -> None:
    """Flush a rename to the disk, where the system and the file system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _OPEN)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _refusal(path: str, error: OSError, size: int | None) -> EnforceNotMet:
    """The error for a path that cannot be written."""
    if error.errno not in _FULL:
        hint = {
            errno.EACCES: "choose a folder that you may write to.",
            errno.EROFS: "choose a folder on another file system: this one is read-only.",
            errno.ENAMETOOLONG: "choose a shorter name.",
            errno.ENOTDIR: "a part of the path is a file: choose another folder.",
            errno.EISDIR: "the path is a folder: add a file name.",
        }.get(error.errno or 0)
        return EnforceNotMet(f"Cannot write {path}.", received=error.strerror or str(error), hint=hint)
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return EnforceNotMet(
        f"Cannot write {path}: {error.strerror}.",
        expected="more free space" if size is None else f"{size:,} free bytes in {folder}",
        received=_free_space(folder, error.errno),
        hint="free some space, or choose another folder; the file that was there before is unchanged.",
    )


def _free_space(folder: str, number: int | None) -> str:
    """Free space of a folder, or the size limit of files, as text."""
    if number == errno.EFBIG:
        return "a limit on the size of files (ulimit -f, or the file system's)"
    if number == errno.EDQUOT:
        return "a used-up quota"
    return f"{shutil.disk_usage(folder).free:,} free bytes"
