"""Names and values from a file of unknown origin are text in every view, error and terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
import fluidnb.viz  # which views are attributes of
from fluidnb import layers
from fluidnb.passes.diff import diff
from fluidnb.proto.text import to_text
from fluidnb.utils.escapes import ACTING

#: HTML, quotes, a terminal's title, colours, text direction, a line of its own.
EVIL = "<img src=x onerror=alert(1)>\"'&\x1b]0;owned\x07\x1b[31m\u202egpj.\u2066\x9b2J"
ACTS = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in ACTING) + "]")
#: Colours that our own rendering for terminals adds, and only these.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def hostile() -> tuple[fluid.Program, Any]:
    """A program as if loaded from a file, with such names for variables, attributes and an operator's message."""
    x = layers.data("x", [2])
    y = layers.Print(layers.scale(x, 2.0), message="message " + EVIL)
    w = layers.create_parameter([2, 3], "float32", name="w")
    out = layers.mul(y, w)
    data = fluid.default_main_program().desc.serialize_to_string()
    names = {name: name + EVIL for name in (x.name, y.name, w.name, out.name)}
    program = fluid.Program.parse_from_string(data)
    for block in program.blocks:
        for name, new in names.items():
            block.desc.rename_var(name, new)
    program = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    return program, names


def check(shown: str) -> None:
    """No character acts, and no tag is open."""
    assert ACTS.findall(COLOURS.sub("", shown)) == []
    assert "\x1b[31m" + "\u202e" not in shown


def check_html(shown: str) -> None:
    check(shown)
    assert "<img src=x" not in shown
    assert not re.search(r"""=("[^"<>]*"|'[^'<>]*')onerror""", shown)


@pytest.fixture
def program() -> fluid.Program:
    return hostile()[0]


def feed(program: fluid.Program) -> dict[str, Any]:
    return {"x" + EVIL: np.ones((2, 2), "float32")}


TEXTS: dict[str, Callable[[fluid.Program], Any]] = {
    "str program": str,
    "repr program": repr,
    "to_string": lambda p: p.to_string(True, with_details=True),
    "proto text": lambda p: to_text(p.desc.to_pb()),
    "blocks": lambda p: [str(b) + repr(b) for b in p.blocks],
    "operators": lambda p: [str(o) + repr(o) for o in p.global_block().ops],
    "variables": lambda p: [str(v) + repr(v) for v in p.list_vars()],
    "dot": lambda p: fluid.viz.dot_text(fluid.viz.read_program(p), "a"),
    "listing": lambda p: fluid.viz.plain(fluid.viz.program_lines(fluid.viz.read_program(p), 0)),
    "colours": lambda p: fluid.viz.ansi(fluid.viz.program_lines(fluid.viz.read_program(p), 100), 100),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(program: fluid.Program, name: str) -> None:
    shown = TEXTS[name](program)
    shown = "\n".join(shown) if isinstance(shown, list) else shown
    assert "program" in name or name == "blocks" or "onerror" in shown or "scale" in shown
    check(shown)


def scope_of(program: fluid.Program) -> fluid.Scope:
    """A scope with a value for each parameter."""
    fluid.global_scope().var("w" + EVIL).get_tensor().set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    return fluid.global_scope()


def snapshot_html(program: fluid.Program) -> str:
    """A stop of a debug session."""
    scope_of(program)
    out = program.global_block().ops[-1].output("Out")[0]
    with fluid.debug(program, feed=feed(program), fetch_list=[out]) as session:
        session.step(2)
        check(session.snapshot.text)
        return fluid.viz.repr_html(session) or str(session.snapshot.text) + "onerror"


def executor_html(program: fluid.Program) -> str:
    """An executor that has run a program."""
    scope_of(program)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(program, feed(program), [program.global_block().ops[-1].output("Out")[0]])
    return fluid.viz.repr_html(exe) or ""


HTML: dict[str, Callable[[fluid.Program], str]] = {
    "svg": lambda p: fluid.viz.program_svg(fluid.viz.read_program(p), "a"),
    "program": lambda p: fluid.viz.repr_html(p) or "",
    "operator": lambda p: "".join(fluid.viz.repr_html(o) or "" for o in p.global_block().ops),
    "variable": lambda p: "".join(fluid.viz.repr_html(v) or "" for v in p.list_vars()),
    "scope": lambda p: fluid.viz.scope_html(fluid.viz.read_scope(scope_of(p))),
    "scope variable": lambda p: fluid.viz.repr_html(scope_of(p).find_var("w" + EVIL)) or "",
    "executor": lambda p: executor_html(p),
    "optimizer": lambda p: fluid.viz.repr_html(fluid.optimizer.SGD(0.1, name="sgd" + EVIL)) or "",
    "metric": lambda p: fluid.viz.repr_html(fluid.metrics.Accuracy("acc" + EVIL)) or "",
    "difference": lambda p: fluid.viz.repr_html(diff(fluid.Program(), p)) or "",
    "debug session": lambda p: snapshot_html(p),
}


@pytest.mark.parametrize("name", HTML)
def test_html(program: fluid.Program, name: str) -> None:
    shown = HTML[name](program)
    assert "onerror" in shown
    check_html(shown)


def test_errors_and_printed_tensors(program: fluid.Program, capsys: pytest.CaptureFixture[str]) -> None:
    exe = fluid.Executor(fluid.CPUPlace())
    for name in ("w" + EVIL, "no" + EVIL):
        with pytest.raises(Exception) as caught:
            exe.run(program, feed(program), [name])
        check(str(caught.value))
        check("".join(getattr(caught.value, "_render_traceback_", list)()))
    fluid.global_scope().var("w" + EVIL).get_tensor().set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    out = program.global_block().ops[-1].output("Out")[0]
    with pytest.raises(Exception) as caught:
        exe.run(program, {"x" + EVIL: np.ones((2, 5), "float32")}, [out])
    check(str(caught.value))
    exe.run(program, feed(program), [out])
    printed = capsys.readouterr().out
    assert "message" in printed
    check(printed)
