"""VLOG: levels, modules, and the lines that memory writes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fluidnb import memory
from fluidnb.memory import VLOG, init_glog, vlog_is_on
from fluidnb.values import CPUPlace


@pytest.fixture(autouse=True)
def quiet():
    """Logging off after the test."""
    yield
    init_glog(0, "")


def test_memory_says_what_it_does_at_level_10(capsys: pytest.CaptureFixture[str]) -> None:
    init_glog(10)
    p = memory.alloc(CPUPlace(), 4097)
    memory.free(CPUPlace(), p)
    lines = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["Allocate 4097 bytes on CPUPlace", f"  pointer={p:#x}", f"Free pointer={p:#x} on CPUPlace"]


def test_levels(capsys: pytest.CaptureFixture[str]) -> None:
    init_glog(2)
    VLOG(2, "shown")
    VLOG(3, "hidden")
    err = capsys.readouterr().err
    assert "shown" in err and "hidden" not in err
    assert re.match(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ test_vlog\.py:\d+\] shown\n", err)


@pytest.mark.parametrize(
    ("vmodule", "shown"), [("test_v*=5", True), ("buddy=5", False), ("*.memory.*=5", True), ("x", False)]
)
def test_modules_have_levels_of_their_own(capsys: pytest.CaptureFixture[str], vmodule: str, shown: bool) -> None:
    init_glog(0, vmodule)
    exec("VLOG(5, 'line')", {"VLOG": VLOG, "__name__": "tests.memory.test_vlog"})
    assert ("line" in capsys.readouterr().err) is shown
    assert vlog_is_on(5) is ("=5" in vmodule)


def test_the_environment_switches_it_on() -> None:
    code = "from fluidnb import memory as m, values as v; m.free(v.CPUPlace(), m.alloc(v.CPUPlace(), 1))"
    for v, expected in (("10", 3), ("9", 0), ("much", 0)):
        env = {"PYTHONPATH": ":".join(sys.path), "GLOG_v": v}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert len(done.stderr.splitlines()) == expected
