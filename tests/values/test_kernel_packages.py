"""Kernel packages of others are imported before the first look-up, and looking for them costs little where are none."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LOOK = """
import sys
sys.path[:0] = {path!r}
import fluidnb as fluid
out = fluid.layers.relu(fluid.layers.data("x", [2]))
print("others" in sys.modules, "importlib.metadata" in sys.modules)
"""


def look(*path: str) -> str:
    """Whether a program is built with the other package, and with importlib.metadata."""
    code = LOOK.format(path=[*path, *sys.path])
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def package(folder: Path, entry: str) -> str:
    """A folder with an installed package."""
    info = folder / "others-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_bytes(entry.encode("latin-1"))
    (folder / "others.py").write_text("")
    return str(folder)


def test_a_package_that_names_the_group_is_imported(tmp_path: Path) -> None:
    assert (
        look(package(tmp_path, "[console_scripts]\nothers = others:main\n\n[fluidnb.kernels]\nothers = others\n"))
        == "True True"
    )


@pytest.mark.parametrize("entry", ["[console_scripts]\nothers = others:main\n", "\xff"])
def test_others_are_not(tmp_path: Path, entry: str) -> None:
    assert look(package(tmp_path, entry)) == "False False"


def test_a_package_in_an_archive_is_found(tmp_path: Path) -> None:
    folder = Path(package(tmp_path / "folder", "[fluidnb.kernels]\nothers = others\n"))
    with zipfile.ZipFile(tmp_path / "others.zip", "w") as file:
        for path in folder.rglob("*"):
            file.write(path, path.relative_to(folder))
    assert look(str(tmp_path / "others.zip")) == "True True"


FIRST = """
import sys, threading
from fluidnb.op import all_ops, define
sys.setswitchinterval(1e-5)
start, found = threading.Barrier(8), []

def work():
    start.wait()
    found.append({op.type for op in all_ops()})

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), all(types == set(define.registry.ops) for types in found))
"""


def test_threads_that_look_first_find_all_operators() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=100)
    assert (done.stdout.strip(), done.stderr) == ("8 True", "")


def test_after_an_error_of_a_package_the_next_look_tells_it_again(tmp_path: Path) -> None:
    path = [package(tmp_path, "[fluidnb.kernels]\nothers = others\n"), *sys.path]
    (tmp_path / "others.py").write_text("raise ImportError('no device here')")
    code = f"""
import sys
sys.path[:0] = {path!r}
from fluidnb.op import all_ops
for _ in range(2):
    try:
        all_ops()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("no device here\n" * 2, "")
