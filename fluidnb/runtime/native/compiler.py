"""The C compiler, and compiled libraries by content and CPU in the user's cache folder."""

import atexit
import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

from fluidnb.errors import EnforceNotMet, NotFound
from fluidnb.extras import command as install_command
from fluidnb.extras import is_installed
from fluidnb.files.cache_folder import cache_folder
from fluidnb.files.ownership import has_user_numbers, is_own

#: No contraction of products and sums, and no order of sums but the written one: the bits are numpy's.
#: Without -fno-ivopts gcc spends most of its time there, for loops over many arrays that become no faster.
_FLAGS = (
    "-O3", "-march=native", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
    "-fno-trapping-math", "-fopenmp-simd", "-fno-ivopts", "-shared", "-fPIC", "-w",
)  # fmt: skip
_MAC = ("-undefined", "dynamic_lookup")
#: Seconds before a compiler is ended.
PATIENCE = 60.0
#: Bytes of all libraries before the oldest are removed; age in seconds of folders that an ended process left.
MOST_BYTES, _STALE = 64 << 20, 3600
_DIGITS = 32
#: Compilers under way: number of the process -> its folder.
_running: dict[int, str] = {}


def compiler() -> tuple[str, ...] | None:
    """The command of the C compiler: the environment variable CC, else gcc, clang or the package ziglang; or None."""
    if sys.platform == "win32":  # a library there cannot use functions that the process brings
        return None
    chosen = os.environ.get("CC")
    if chosen:
        words = shlex.split(chosen)
        path = shutil.which(words[0]) if words else None
        return (path, *words[1:]) if path else None
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        if path:
            return (path,)
    return (sys.executable, "-m", "ziglang", "cc") if is_installed("ziglang") else None


@cache
def cpu() -> str:
    """The model and the features of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.version()}"
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))


def library(text: str, *flags: str) -> Path:
    """The compiled library of a C text, from the cache or from the compiler.

    Args:
        flags: what the compiler gets beside what it gets for all.

    Raises:
        NotFound: there is no compiler.
        EnforceNotMet: the compiler fails or takes too long, or the cache folder is not private.
        OSError: the cache folder cannot be written.
    """
    command = compiler()
    if command is None:
        raise NotFound(
            "Native code needs a C compiler, and none was found.", expected="gcc, clang or the package ziglang",
            received=f"CC={os.environ['CC']}" if os.environ.get("CC") else "none on the path",
            hint=f"{install_command('native')} installs one; FLAGS_native=off does without.",
        )  # fmt: skip
    command = _with_flags(command, flags)
    folder, key = cache_folder("native"), _key(text, command)
    kept = _kept(folder, key)
    if kept is not None:
        return kept
    made = _compiled(text, command, folder, key)
    _limit(folder, made)
    return made


def kept_library(text: str, *flags: str) -> Path | None:
    """The compiled library of a C text from the cache; None where it is not there, or where there is no compiler."""
    command = compiler()
    if command is None:
        return None
    return _kept(cache_folder("native"), _key(text, _with_flags(command, flags)))


def _with_flags(command: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, *_FLAGS, *(_MAC if sys.platform == "darwin" else ()), *flags)


def _key(text: str, command: tuple[str, ...]) -> str:
    """The name of a library in the cache, of all that it depends on."""
    parts = (text, *command, _version(command[0]), cpu(), sys.implementation.cache_tag or "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]


def _kept(folder: Path, key: str) -> Path | None:
    """An intact library of the cache; others of its name are removed."""
    for path in folder.glob(f"{key}-*.so"):
        if _is_intact(path):
            os.utime(path)
            return path
        path.unlink(missing_ok=True)
    return None


@cache
def _version(path: str) -> str:
    """The size and the time of a compiler's file, which change when it is replaced."""
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def _is_intact(path: Path) -> bool:
    """Whether a library belongs to this user alone and has the content that its name says."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        return False
    if has_user_numbers() and (not is_own(status) or status.st_mode & 0o022):
        return False
    return path.stem.partition("-")[2] == _digest(path.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _compiled(text: str, command: tuple[str, ...], folder: Path, key: str) -> Path:
    with tempfile.TemporaryDirectory(dir=folder, prefix="work-") as work:
        source, out = Path(work) / "code.c", Path(work) / "code.so"
        source.write_text(text, "utf-8")
        low = () if threading.current_thread() is threading.main_thread() else _low_priority()
        # in a session of its own, so that all processes that it starts can be ended
        with subprocess.Popen(
            [*low, *command, str(source), "-o", str(out)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, cwd=work,
        ) as process:  # fmt: skip
            _running[process.pid] = work
            try:
                _, errors = process.communicate(timeout=PATIENCE)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise _failed(command, f"it ran longer than {PATIENCE:g} s") from None
            finally:
                _running.pop(process.pid, None)
        if process.returncode or not out.is_file():
            raise _failed(command, errors.decode(errors="replace").strip()[:2000] or f"status {process.returncode}")
        content = out.read_bytes()
        out.chmod(0o600)
        made = folder / f"{key}-{_digest(content)}.so"
        os.replace(out, made)
    return made


@cache
def _low_priority() -> tuple[str, ...]:
    """The command in front of a compiler that runs in the background."""
    path = shutil.which("nice")
    return (path, "-n", "10") if path else ()


@atexit.register
def _stop() -> None:
    """End the compilers of this process and remove their folders."""
    for pid, work in list(_running.items()):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(work, ignore_errors=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


def _failed(command: tuple[str, ...], received: str) -> EnforceNotMet:
    return EnforceNotMet(
        "The C compiler cannot compile native code.", expected=f"a compiler that works: {command[0]}",
        received=received, hint="the environment variable CC chooses another; FLAGS_native=off does without.",
    )  # fmt: skip


def _limit(folder: Path, newest: Path) -> None:
    """Remove the libraries that were used least recently, where all take too much, and folders left by others."""
    rows = []
    for path in folder.iterdir():
        try:
            status = path.lstat()
        except FileNotFoundError:  # another process was faster
            continue
        if path.suffix == ".so" and path != newest:
            rows.append((status.st_mtime, status.st_size, path))
        elif path.name.startswith("work-") and time.time() - status.st_mtime > _STALE:
            shutil.rmtree(path, ignore_errors=True)
    total = newest.stat().st_size
    for _, size, path in sorted(rows, reverse=True):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
