"""A file has its old content or its new one: full disks, interrupts, other writers, odd paths."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.files import atomic_write as module
from fluidnb.files.atomic_write import atomic_write


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file with content, alone in its folder."""
    path = tmp_path / "w"
    path.write_bytes(b"old")
    return path


def assert_unchanged(path: Path) -> None:
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["w"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no")], ids=["interrupt", "error"])
def test_an_error_in_the_block_leaves_the_old_file(old: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), atomic_write(old) as file:
        file.write(b"half")
        raise error
    assert_unchanged(old)


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_each_system_call_may_fail(old: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    def fails(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.os, call, fails)
    with pytest.raises(EnforceNotMet, match="Cannot write .*/w") as caught, atomic_write(old, size=7_000) as file:
        file.write(b"new")
    monkeypatch.undo()
    assert_unchanged(old)
    if number in (errno.ENOSPC, errno.EDQUOT):
        assert f"7,000 free bytes in {old.parent}" in str(caught.value)


def test_a_full_device_says_how_much_is_needed() -> None:
    with pytest.raises(EnforceNotMet, match="No space left") as caught, atomic_write("/dev/full", size=3) as file:
        file.write(b"new")
    assert "3 free bytes in /dev" in str(caught.value)


LIMITED = """
import resource, sys
import fluidnb as fluid
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
y = fluid.layers.fc(fluid.layers.data("x", [500]), 100)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
try:
    fluid.io.save_inference_model(sys.argv[1], ["x"], [y], exe, params_filename=sys.argv[2] or None)
except fluid.core.EnforceNotMet as e:
    print(e)
"""


@pytest.mark.parametrize("params", ["", "all"])
def test_a_model_that_does_not_fit_leaves_nothing_half_written(tmp_path: Path, params: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), params], capture_output=True, text=True, check=True
    )
    name, size = ("all", 200_400) if params else ("fc_0.w_0", 200_000)
    assert f"Cannot write {tmp_path}/{name}: File too large." in done.stdout
    assert f"expected: {size:,} free bytes in {tmp_path}" in " ".join(done.stdout.split()).replace("  ", " ")
    assert all(not n.endswith(".part") and n != name for n in os.listdir(tmp_path))


def test_what_a_killed_writer_left_is_used_by_the_next_one(old: Path) -> None:
    (old.parent / ".w.part").write_bytes(b"a longer half of something")
    with atomic_write(old) as file:
        file.write(b"new")
    assert old.read_bytes() == b"new"
    assert os.listdir(old.parent) == ["w"]


def test_writers_of_one_path_wait_for_each_other(old: Path) -> None:
    def write(number: int) -> None:
        for _ in range(20):
            with atomic_write(old) as file:
                file.write(b"%d" % number * 5_000)
                file.flush()

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = old.read_bytes()
    assert len(found) == 5_000 and len(set(found)) == 1
    assert os.listdir(old.parent) == ["w"]


def test_a_link_put_in_the_place_of_the_temporary_file_is_refused(old: Path, tmp_path: Path) -> None:
    victim = tmp_path.parent / "victim"
    victim.write_bytes(b"precious")
    for plant in (os.symlink, os.link):
        plant(victim, old.parent / ".w.part")
        with pytest.raises(EnforceNotMet, match="Cannot write"), atomic_write(old) as file:
            file.write(b"new")
        assert victim.read_bytes() == b"precious" and old.read_bytes() == b"old"
        (old.parent / ".w.part").unlink()


def test_permissions_links_and_text_are_kept(old: Path, tmp_path: Path) -> None:
    old.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(old)
    with atomic_write(link, text=True) as file:
        file.write("größer\n")
    assert link.is_symlink() and old.read_text("utf-8") == "größer\n"
    assert old.stat().st_mode & 0o777 == 0o640
    with atomic_write(tmp_path / "deep" / "new", parents=True) as other:
        other.write(b"1")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "deep" / "new").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize(
    "name, text",
    [("n" * 300, "File name too long"), ("w/inside", "Not a directory"), ("no/w", "No such file"), ("", "")],
    ids=["too long", "below a file", "in no folder", "a folder"],
)
def test_paths_that_cannot_be_files(old: Path, name: str, text: str) -> None:
    with pytest.raises(EnforceNotMet, match=f"Cannot write (.|\n)*{text}"), atomic_write(old.parent / name) as file:
        file.write(b"new")
    assert_unchanged(old)


def test_the_longest_name_that_a_file_system_takes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / ("n" * 255)) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["n" * 255]


def test_a_tensor_file_that_promises_too_much_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "w"
    header = b"\x08\x05\x10" + b"\xff\xff\xff\xff\x0f" + b"\x10" + b"\xff\xff\xff\xff\x0f"  # (2**32 - 1) squared floats
    path.write_bytes(b"\0" * 12 + b"\0" * 4 + len(header).to_bytes(4, "little") + header + b"\0" * 64)
    program = fluid.Program()
    program.global_block().create_var(name="w", shape=[3], dtype="float32", persistable=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EnforceNotMet, match="does not hold one tensor|cut off"):
        fluid.io.load_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path), program)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    levels = b"\0" * 4 + (1).to_bytes(8, "little") + (2**62).to_bytes(8, "little")
    path.write_bytes(levels + b"\0" * 64)
    with pytest.raises(EnforceNotMet, match="cut off"):
        fluid.io.load_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path), program)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_link_in_a_shared_folder_is_refused(old: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "profile").symlink_to(old)
    with atomic_write(shared / "profile") as file:  # our own link
        file.write(b"old")
    os.lchown(shared / "profile", 12345, 12345)
    with pytest.raises(EnforceNotMet, match="link of another user"), atomic_write(shared / "profile"):
        pass
    assert old.read_bytes() == b"old"
