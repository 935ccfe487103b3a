"""The Tab key for ``fluidnb``, as bash asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

argcomplete = pytest.importorskip("argcomplete")
ROOT = Path(__file__).parents[2]
#: What bash does at the Tab key: it calls the function that the script has registered.
ASK = """
eval "$CODE"
COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
read -ra COMP_WORDS <<< "$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete fluidnb
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fluidnb sh", {"show"}),
        ("fluidnb show --li", {"--limit"}),
        ("fluidnb cost --by ", {"op", "layer", "cell", "role"}),
        ("fluidnb show READ", {"README.md", "README.zh.md"}),
    ],
)
def test_bash_completes(line: str, offered: set[str], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    command = tmp_path / "fluidnb"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fluidnb "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "CODE": argcomplete.shellcode(["fluidnb"], shell="bash")}
    done = subprocess.run(
        [bash, "-c", ASK, "bash", line], env=environment, capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert set(done.stdout.split()) == offered, done.stderr


def test_zsh_gets_a_script_too() -> None:
    assert "compdef" in argcomplete.shellcode(["fluidnb"], shell="zsh")
