"""Lines of %fluid and cells of %%fluid with odd words, in a real IPython shell."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import random
import shlex
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import fluidnb as fluid
from tests.fuzz.oracle import REFUSED, RESULT, Outcome, judge

#: Lines that work after `MODEL` ran.
LINES = (
    "show", "show net", "show h", "show --startup", "show --limit 3", "graph", "graph net", "tree", "uses x", "block",
    "block 0", "cells", "undo", "drop net", "reset", "ops relu", "ops --search conv", "kernels", "compat", "seed 3",
    "run --feed x=X --fetch loss", "train --feed x=X --fetch loss --steps 2", "scope", "scope h.w_0", "programs",
    "set h.w_0 0.5", "diff", "diff net", "place cpu", "place", "plan", "memory", "memory --arena", "profile",
    "debug --feed x=X --fetch loss", "step", "next", "back", "continue", "where", "print h", "break relu", "watch h",
    "quit", "nan", "teach", "teach backward", "explore", "panel", "add relu", "build", "build fc size=3", "help",
)  # fmt: skip
WORDS = (
    "", "x", "h", "loss", "net", "no_such", "-1", "0", "3", "1e400", "nan", "None", "[]", "{}", "x=1", "x=X", "=", "--",
    "--help", "--no-such", "--limit", "--limit x", "--feed", "--feed x", "--feed x=no", "--feed x=1/0", "--fetch",
    "--fetch no", "--steps", "--steps -1", "--steps x", "'", '"', "\\", "\ud800", "\0", "é", "../..", "/no/such", "*",
    "h.w_0", "lambda:0", "a" * 3000, "fluid", "fluid.layers", "1" * 500, "[" * 200, "(", "%", "%%", "!", "?", ";", "#",
)  # fmt: skip
MODEL = """%%fluid net
x = fluid.layers.data("x", [2])
h = fluid.layers.fc(x, 3, act="relu")
loss = fluid.layers.mean(h)
"""
CELLS = (
    "%%fluid net\nh = fluid.layers.fc(x, {word})\n", "%%fluid {word}\ny = fluid.layers.relu(x)\n", "%%fluid\n{word}\n",
    "%%fluid a {word}\ny = x\n", "%%fluid net --{word}\npass\n", "%%fluid b\ny = fluid.layers.relu({word})\n",
)  # fmt: skip


def case(dice: random.Random) -> dict[str, Any]:
    """A few lines or cells."""
    rows = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        if dice.random() < 0.2:
            rows.append(dice.choice(CELLS).replace("{word}", dice.choice(WORDS)))
            continue
        words = dice.choice(LINES).split(" ")
        for _ in range(dice.choice([0, 1, 1, 2])):
            at, how = dice.randrange(len(words) + 1), dice.random()
            if how < 0.5 or at == len(words):
                words.insert(max(at, 1), dice.choice(WORDS))
            elif how < 0.8:
                words[at] = dice.choice(WORDS) if at else words[at]
            elif at:
                del words[at]
        rows.append("%fluid " + " ".join(words))
    return {"rows": rows}


@cache
def shell() -> Any:
    """A shell that keeps nothing on disk."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    os.environ["IPYTHONDIR"] = tempfile.mkdtemp()
    if hasattr(builtins, "_"):
        del builtins._
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    made = InteractiveShell.instance(config=config)
    made.user_ns["__name__"] = "__main__"
    with contextlib.redirect_stdout(io.StringIO()):
        made.run_cell("%load_ext fluidnb\nimport numpy as np\nX = np.ones((4, 2), 'float32')")
    return made


def run(one: dict[str, Any]) -> Outcome:
    """Type the lines into a shell with a small model."""
    flags, here = fluid.get_flags(), os.getcwd()
    made, outcome = shell(), Outcome(RESULT)
    with tempfile.TemporaryDirectory() as folder, fluid.fresh(), contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                made.run_cell("%fluid reset")
                made.run_cell(MODEL)
                for row in one["rows"]:
                    result = made.run_cell(row)
                    error = result.error_in_exec or result.error_before_exec
                    if error is not None:
                        found = judge(error, own=("<case>",))
                        if found.is_finding:
                            return found
                        outcome = Outcome(REFUSED, found.signature, found.text)
        except BaseException as error:
            return judge(error, own=(__file__,))
        finally:
            with contextlib.redirect_stderr(io.StringIO()):
                made.run_cell("%fluid quit")
            os.chdir(here)
            fluid.set_flags(flags)
    return outcome


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer rows and words."""
    rows = one["rows"]
    for i in range(len(rows)):
        if len(rows) > 1:
            yield {"rows": rows[:i] + rows[i + 1 :]}
    for i, row in enumerate(rows):
        words = row.split(" ")
        for j in range(2, len(words)):
            yield {"rows": [*rows[:i], " ".join(words[:j] + words[j + 1 :]), *rows[i + 1 :]]}


def show(one: dict[str, Any]) -> str:
    """The rows to type, after the model."""
    return MODEL + "\n" + "\n".join(shlex.quote(row) if "\ud800" in row else row for row in one["rows"])
