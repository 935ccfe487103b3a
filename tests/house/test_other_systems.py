"""The core runs where the system has less than Linux: macOS and Windows, simulated in a process of its own.

What these systems lack is removed before fluidnb is imported; what they refuse (to rename an open file, for example) is
refused. It is no run on these systems: it finds what is used of Linux alone.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: numpy, protobuf and the standard library are imported whole before anything is removed.
BEGIN = """
import ctypes, io, mmap, os, pathlib, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import numpy as np
from google.protobuf import descriptor_pool, message_factory, text_format

def without(owner, *names):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)

def read_text(self, *args, real=pathlib.Path.read_text, **kwargs):
    if str(self).startswith(("/proc", "/sys")):
        raise FileNotFoundError(str(self))
    return real(self, *args, **kwargs)

pathlib.Path.read_text = read_text
"""

MACOS = (
    BEGIN
    + """
without(os, "sched_getaffinity", "memfd_create", "posix_fadvise", "O_TMPFILE", "O_PATH")
without(mmap, "MAP_NORESERVE", "MAP_POPULATE")

class NoMlock2:
    def __init__(self, name=None, *args, **kwargs):
        pass

ctypes.CDLL = NoMlock2
"""
)

WINDOWS = (
    BEGIN
    + """
without(os, "sysconf", "geteuid", "getuid", "getegid", "getgid", "fchmod", "fchown", "fork", "getloadavg", "uname",
        "sched_getaffinity", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "killpg", "setsid", "statvfs", "mkfifo")
without(mmap, "MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_ANON", "MAP_SHARED", "MAP_NORESERVE", "PROT_READ", "PROT_WRITE")
without(signal, "pthread_kill", "pthread_sigmask", "SIGKILL", "SIGALRM", "SIGUSR1", "setitimer", "alarm")
sys.modules.update(dict.fromkeys(("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "readline")))

class Pages(mmap.mmap):
    def __new__(cls, fileno, length, tagname=None, access=0, offset=0):
        return super().__new__(cls, fileno, length)

mmap.mmap = Pages

class Kernel32:
    @staticmethod
    def GlobalMemoryStatusEx(pointer):
        assert pointer._obj.size == 64
        pointer._obj.total = 8 << 30

class Windll:
    kernel32 = Kernel32

ctypes.windll = Windll

def no_library(name, *args, real=ctypes.CDLL, **kwargs):
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    return real(name, *args, **kwargs)

ctypes.CDLL = no_library

def refuses_open_files(call):
    def checked(path, *args, **kwargs):
        target = os.path.realpath(path)
        for handle in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{handle}") == target:
                    raise PermissionError(13, "The process cannot access the file", str(path))
            except FileNotFoundError:
                pass
        return call(path, *args, **kwargs)
    return checked

os.replace, os.unlink, os.remove = map(refuses_open_files, (os.replace, os.unlink, os.remove))
"""
)

#: fit_a_line: built, trained, saved, loaded, printed; a debug session; Ctrl-C.
TRAINING = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
import fluidnb as fluid
from fluidnb.memory import system_allocator
from fluidnb.utils.main_signal import signal_main
fluid.seed(1)
x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
predict = fluid.layers.fc(x, 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
fluid.optimizer.SGD(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(0)
rows = rng.rand(64, 13).astype("float32")
feed = {"x": rows, "y": rows.sum(1, keepdims=True)}
losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(200)]
assert losses[-1] < losses[0] / 20, losses[::50]
folder = sys.argv[1]
for _ in range(2):  # the second time files are replaced
    fluid.io.save_inference_model(folder, ["x"], [predict], exe)
    fluid.io.save_persistables(exe, folder + "_all", filename="all")
assert not [name for name in os.listdir(folder) if name.endswith(".part")]
program, feeds, targets = fluid.io.load_inference_model(folder, exe)
assert np.allclose(exe.run(program, {"x": rows}, targets)[0], exe.run(program, {"x": rows}, targets)[0])
from fluidnb.viz import plain, program_lines, read_program
assert "sgd" in plain(program_lines(read_program(fluid.default_main_program())))
with fluid.debug(feed=feed, fetch_list=[loss]) as session:
    session.step(2)
    session.back(1)
from fluidnb.files.cache_folder import cache_folder
os.environ["FLUIDNB_CACHE"] = folder + "_cache"
assert cache_folder("kernels").is_dir()
from fluidnb.files.atomic_write import atomic_write
try:
    with atomic_write(folder + "/half") as file:
        file.write(b"half")
        raise ValueError
except ValueError:
    pass
assert not [name for name in os.listdir(folder) if "half" in name]
pinned = system_allocator.CPUAllocator(pinned=True)
address, index = pinned.alloc(1 << 16)
assert index == pinned.PAGEABLE
pinned.free(address, 1 << 16, index)
try:
    threading.Timer(0.05, signal_main, (signal.SIGINT,)).start()
    for _ in range(1000):
        time.sleep(0.01)
    raise AssertionError("no interrupt came")
except KeyboardInterrupt:
    pass
print("memory", system_allocator.host_memory(), system_allocator.host_available())
"""


@pytest.mark.parametrize(("system", "code"), [("macOS", MACOS), ("Windows", WINDOWS)], ids=["macOS", "Windows"])
def test_a_model_trains_and_is_saved(system: str, code: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", code + TRAINING, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    total, available = map(int, done.stdout.split()[-2:])
    assert 0 < available <= total
    if system == "Windows":
        assert total == 8 << 30


def test_text_files_are_read_as_utf_8() -> None:
    """Windows reads and writes another encoding unless one is named."""
    wrong = []
    for folder in ("fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and _is_text_without_encoding(node):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, wrong


def _is_text_without_encoding(call: ast.Call) -> bool:
    """Whether a call reads or writes a text file in the encoding of the system."""
    if any(word.arg == "encoding" for word in call.keywords):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("read_text", "write_text"):
        return len(call.args) < (1 if call.func.attr == "read_text" else 2)
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        mode = call.args[1] if len(call.args) > 1 else ast.Constant("r")
        return isinstance(mode, ast.Constant) and "b" not in str(mode.value)
    return False


@pytest.mark.parametrize("name", ["3.12", "3.13", "3.14"])
def test_nothing_is_imported_that_newer_pythons_have_removed(name: str) -> None:
    removed = {
        "3.12": {"asynchat", "asyncore", "distutils", "imp", "smtpd"},
        "3.13": {"aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
                 "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"},
        "3.14": {"pkgutil.find_loader", "pkgutil.get_loader", "ast.Num", "ast.Str", "asyncio.get_child_watcher"},
    }[name]  # fmt: skip
    found = []
    for folder in ("fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    names = {f"{node.value.id}.{node.attr}"}
                found += [f"{path}:{getattr(node, 'lineno', 0)} {n}" for n in names & removed]
    assert not found, found


def test_every_python_that_is_here_compiles_the_code(tmp_path: Path) -> None:
    """Every file compiles without a warning; ruff knows the syntax of the Pythons that are not here."""
    named = [f"python3.{minor}" for minor in range(11, 15) if shutil.which(f"python3.{minor}")]
    pythons = [sys.executable, *(name for name in named if subprocess.run([name, "-c", ""]).returncode == 0)]
    code = "import compileall, sys; sys.exit(not all(compileall.compile_dir(d, quiet=1) for d in sys.argv[1:]))"
    folders = [str(ROOT / name) for name in ("fluidnb", "kernels", "magics")]
    for python in pythons:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / Path(python).name)}
        done = subprocess.run([python, "-W", "error", "-c", code, *folders], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
