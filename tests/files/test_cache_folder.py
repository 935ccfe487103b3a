"""Folders of compiled kernels: private, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.files.cache_folder import cache_folder


def test_it_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUIDNB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old = os.umask(0)
    try:
        folder = cache_folder("emulator")
    finally:
        os.umask(old)
    assert folder == tmp_path / "fluidnb" / "emulator"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_a_folder_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setenv("FLUIDNB_CACHE", str(tmp_path))
    (tmp_path / "emulator").mkdir()
    (tmp_path / "emulator").chmod(mode)
    with pytest.raises(EnforceNotMet, match="other users could replace them(.|\n)*set FLUIDNB_CACHE"):
        cache_folder("emulator")


def test_a_parent_that_others_can_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("FLUIDNB_CACHE", str(shared / "mine"))
    with pytest.raises(EnforceNotMet, match=str(shared)):
        cache_folder("emulator")
    shared.chmod(0o1777)  # as /tmp: others cannot rename what is mine
    assert cache_folder("emulator").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUIDNB_CACHE", str(tmp_path))
    (tmp_path / "emulator").mkdir(mode=0o700)
    os.chown(tmp_path / "emulator", 12345, 12345)
    with pytest.raises(EnforceNotMet, match="owner 12345"):
        cache_folder("emulator")


def test_cupy_keeps_its_kernels_there(tmp_path: Path) -> None:
    code = (
        "import os; from fluidnb_kernels.cuda import backend\n"
        "try: backend.cupy()\nexcept ImportError: pass\nprint(os.environ['CUPY_CACHE_DIR'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "CUPY_CACHE_DIR"} | {"FLUIDNB_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "cupy")]
