"""Commands show names from a file of unknown origin as text."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from tests.magics.conftest import Session
from tests.viz.test_hostile_names import EVIL, check, feed, hostile

COMMANDS = [
    "show", "show --ops", "vars", "scope", "memory", "ops", "cells", "summary", "plan", "profile --feed feed", "lint",
    "diff main main", "step", "print x", "where", "bt", "watch", "graph", "history",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_notebook(session: Session, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = hostile()[0]
    session.names.update(p=program, EVIL=EVIL, feed=feed(program), np=np, fluid=fluid)
    session.run("fluid.switch_main_program(p)")
    session.run("fluid.global_scope().var('w' + EVIL).get_tensor().set(np.ones((2, 3), 'float32'), fluid.CPUPlace())")
    result = session.shell.run_cell(f"%fluid {command}")
    shown = capsys.readouterr()
    check(shown.out + shown.err)
    assert result is not None
