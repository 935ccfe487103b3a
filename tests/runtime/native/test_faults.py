"""Native code on machines where something is wrong: one notice, and the numbers of numpy."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError, NotFound
from fluidnb.runtime.native import compiler
from fluidnb.runtime.native.segment_code import OFTEN, SegmentCode

FEED = {"x": np.linspace(-3, 3, 50, dtype="float32").reshape(5, 10)}
WANTED = np.float32(1) / (np.exp(-np.maximum(FEED["x"], 0)) + np.float32(1))
TEXT = "void *call_0(void *self, void *kept) { return self; }\n"


def run(mode: str, times: int = OFTEN + 4) -> SegmentCode:
    """Run a small program often and check its numbers; gives the code of its segment."""
    fluid.set_flags({"FLAGS_native": mode})
    with fluid.fresh():
        out = layers.sigmoid(layers.relu(layers.data("x", [10])))
        exe = fluid.Executor()
        for k in range(times):
            result = exe.run(feed=FEED, fetch_list=[out])[0]
            if k == OFTEN:
                assert fluid.runtime.wait_for_native_code(30)
            assert np.array_equal(result, WANTED)
    code: Any = exe._hot
    found: SegmentCode = code.root.code
    return found


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Messages that were logged."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_it_is_used(mode: str) -> None:
    (call,) = run(mode).native
    assert call.replaced == 5 and [op.desc.optype for op in call.ops] == ["relu", "sigmoid"]


def test_off_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "compiler", lambda: pytest.fail("it looked for a compiler"))
    assert run("off").native == []


def script(folder: Path, text: str) -> Path:
    """An executable that is called as a compiler."""
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """CC names nothing."""
    monkeypatch.setenv("CC", str(folder / "absent"))
    return "Native code needs a C compiler"


def failing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """CC ends with an error."""
    monkeypatch.setenv("CC", str(script(folder, "echo broken >&2; exit 3")))
    return "broken"


def silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """CC ends well and writes nothing."""
    monkeypatch.setenv("CC", str(script(folder, "exit 0")))
    return "cannot compile native code"


def nonsense(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """CC writes something that is no library."""
    monkeypatch.setenv("CC", str(script(folder, 'while [ "$1" != -o ]; do shift; done; echo no library > "$2"')))
    return "cannot be loaded"


def hanging(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """CC starts a process and waits for it."""
    monkeypatch.setattr(compiler, "PATIENCE", 0.3)
    monkeypatch.setenv("CC", str(script(folder, f"sleep 30 & echo $! > {folder}/pid; wait")))
    return "longer than 0.3 s"


def no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cache folder cannot be created."""
    (folder / "file").write_text("")
    monkeypatch.setenv("FLUIDNB_CACHE", str(folder / "file" / "cache"))
    return "cannot be kept"


def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cache folder takes no files; root may write anywhere, so that the write itself fails here."""

    def refuse(*args: object, **kw: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setenv("FLUIDNB_CACHE", str(folder))
    monkeypatch.setattr(compiler.tempfile, "TemporaryDirectory", refuse)
    return "Read-only file system"


def open_to_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Others may write to the cache folder."""
    (folder / "native").mkdir()
    (folder / "native").chmod(0o777)
    monkeypatch.setenv("FLUIDNB_CACHE", str(folder))
    return "other users could replace them"


FAULTS = [no_compiler, failing, silent, nonsense, hanging, no_folder, read_only, open_to_all]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_fault_gives_one_notice_and_right_numbers(
    fault: Callable[[Path, pytest.MonkeyPatch], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    words = fault(tmp_path, monkeypatch)
    assert run("auto").native == []
    assert run("auto").native == []
    if fault is no_compiler:  # most machines of users have none
        assert notices(caplog) == []
        return
    (notice,) = notices(caplog)
    assert "without native code" in notice and words in notice
    if fault is hanging:  # what it had started is gone too
        pid, until = int((tmp_path / "pid").read_text()), time.monotonic() + 10
        while is_alive(pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and has no parent that asks counts as gone."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_require_raises(
    fault: Callable[[Path, pytest.MonkeyPatch], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = fault(tmp_path, monkeypatch)
    with pytest.raises(FluidError) as caught:
        run("require")
    assert words in str(caught.value) and "FLAGS_native=off" in str(caught.value) or fault is open_to_all
    assert run("off").native == []  # as the hint says


def entries(folder: Path) -> list[Path]:
    """The libraries of a cache."""
    return sorted((folder / "native").glob("*.so"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test alone."""
    monkeypatch.setenv("FLUIDNB_CACHE", str(tmp_path))
    return tmp_path


def test_an_entry_serves_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiler.library(TEXT)
    monkeypatch.setattr(compiler.subprocess, "Popen", lambda *a, **k: pytest.fail("it compiled again"))
    assert compiler.library(TEXT) == made
    assert made.stat().st_mode & 0o777 == 0o600 and made.parent.stat().st_mode & 0o777 == 0o700


def cut_short(path: Path) -> None:
    """Half of the file."""
    path.write_bytes(path.read_bytes()[:1000])


def changed(path: Path) -> None:
    """One bit of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def writable(path: Path) -> None:
    """Others may write to the file."""
    path.chmod(0o666)


def foreign(path: Path) -> None:
    """The file belongs to another user."""
    os.chown(path, 12345, 12345)


def linked(path: Path) -> None:
    """A link to a file elsewhere."""
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("harm", [cut_short, changed, writable, foreign, linked], ids=lambda f: f.__name__)
def test_an_entry_that_may_be_forged_is_compiled_again(cache: Path, harm: Callable[[Path], None]) -> None:
    if harm is foreign and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    made = compiler.library(TEXT)
    good = made.read_bytes()
    harm(made)
    again = compiler.library(TEXT)
    assert again.read_bytes() == good and compiler._is_intact(again) and entries(cache) == [again]


def test_another_cpu_has_its_own_entry(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiler.library(TEXT)
    monkeypatch.setattr(compiler, "cpu", lambda: "another")
    other = compiler.library(TEXT)
    assert other != made and entries(cache) == sorted([made, other])


def test_the_cache_is_bounded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler.library(TEXT)
    monkeypatch.setattr(compiler, "MOST_BYTES", 3 * first.stat().st_size)
    stale = first.parent / "work-of-before"
    stale.mkdir()
    os.utime(stale, (0, 0))
    for k in range(4):
        if first.exists():
            os.utime(first, (0, 0))
        last = compiler.library(f"{TEXT}/* {k} */")
        os.utime(last, (k + 1, k + 1))
    assert last in entries(cache) and first not in entries(cache) and 2 <= len(entries(cache)) <= 3
    assert not stale.exists()


CHILD = """
import sys; sys.path[:0] = {path!r}
from fluidnb.runtime.native.compiler import library
print(library({text!r}))
"""


def test_two_processes_compile_at_once(cache: Path) -> None:
    code = CHILD.format(path=sys.path, text=TEXT)
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outs = {process.communicate(timeout=100)[0].strip() for process in both}
    assert outs == {str(path) for path in entries(cache)} and len(outs) == 1
    assert compiler._is_intact(entries(cache)[0])


def test_a_forked_process_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    run("auto")
    code = (
        f"import os, sys; sys.path[:0] = {sys.path!r}\n"
        "from fluidnb.runtime.native import segment_code; segment_code.LONG = 0.0\n"
        "from tests.runtime.native.test_faults import run\n"
        "run('auto'); pid = os.fork()\n"
        "if pid == 0:\n    code = run('auto'); os._exit(not code.native)\n"
        "sys.exit(os.waitpid(pid, 0)[1] != 0)"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=200).returncode == 0


def test_the_end_of_a_process_ends_its_compiler(cache: Path) -> None:
    """Nothing stays of a compiler that runs in the background."""
    script(cache, f"echo $$ > {cache}/pid; exec sleep 60")
    code = (
        f"import sys, threading, time; sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from fluidnb.runtime.native.compiler import library\n"
        f"threading.Thread(target=library, args=({TEXT!r},), daemon=True).start()\n"
        f"pid = Path({str(cache / 'pid')!r})\n"
        "while not (pid.exists() and pid.read_text()): time.sleep(0.02)\n"
    )
    env = os.environ | {"CC": str(cache / "compiler"), "FLUIDNB_CACHE": str(cache)}
    assert subprocess.run([sys.executable, "-c", code], timeout=100, env=env).returncode == 0
    pid, until = int((cache / "pid").read_text()), time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_alive(pid) and list((cache / "native").iterdir()) == []


def test_no_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "absent")
    with pytest.raises(NotFound, match="(?s)gcc, clang or the package ziglang.*CC=absent.*FLAGS_native=off"):
        compiler.library(TEXT)
