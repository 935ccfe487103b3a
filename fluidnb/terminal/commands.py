"""The text commands of a debug session, for the prompt, ``%fluid`` and scripts."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluidnb.debug.breakpoints import parse
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.expressions import tree_of
from fluidnb.debug.nan import search_nan
from fluidnb.debug.session import Session
from fluidnb.debug.view import has_value
from fluidnb.distributed.attachment import attach, newest_engine
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.terminal.reachable import require_match
from fluidnb.values.copies import is_on_device
from fluidnb.values.device_array import printed
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.program.block_tree import read_tree, tree_lines
from fluidnb.viz.program.graph_level import level, part
from fluidnb.viz.program.graph_text import graph_lines
from fluidnb.viz.program.reader import read_program
from fluidnb.viz.program.source_code import source_lines
from fluidnb.viz.program.uses import uses_lines, uses_of
from fluidnb.viz.session.difference import Difference, difference, difference_lines, value_at
from fluidnb.viz.session.operator_code import read_code
from fluidnb.viz.session.panel_values import find_value
from fluidnb.viz.session.text import breakpoint_lines, finding_lines, history_lines, session_lines
from fluidnb.viz.session.values import read_values
from fluidnb.viz.values.reader import read_scope, read_tensor
from fluidnb.viz.values.text import scope_lines, tensor_lines

Act = Callable[[Session, str, int], list[Line]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    short: tuple[str, ...]  # its abbreviations
    usage: str  # its arguments
    help: str  # one sentence
    act: Act  # called with the session, the rest of the line and the width of the terminal; returns lines
    example: str  # a line
    offers: str = ""  # what Tab completes after it: ``ops``, ``vars`` or nothing


COMMANDS: dict[str, Command] = {}


def _command(name: str, *short: str, example: str, usage: str = "", offers: str = "") -> Callable[[Act], Act]:
    def put(act: Act) -> Act:
        COMMANDS[name] = Command(name, short, usage, (act.__doc__ or "").strip(), act, example, offers)
        return act

    return put


def command_of(word: str) -> Command | None:
    """The command of a name or an abbreviation, or None."""
    return COMMANDS.get(word) or next((c for c in COMMANDS.values() if word in c.short), None)


def run_command(session: Session, line: str, width: int = 0) -> list[Line]:
    """Execute a line; of a role in another process, there."""
    word, _, rest = line.strip().partition(" ")
    command = command_of(word)
    if session.there is not None and (command is None or command.act not in (_roles, _attach)):
        lines: list[Line] = session.there(run_command, line, width)
        return lines
    if command is None:
        return _expression(session, line.strip(), width)
    return command.act(session, rest.strip(), width)


def _expression(session: Session, text: str, width: int) -> list[Line]:
    """The value of an expression without a command, as in gdb and pdb."""
    word = text.split()[0]
    words = [w for c in COMMANDS.values() for w in (c.name, *c.short)]
    left, sign, right = (part.strip() for part in text.partition("="))
    assigns = bool(sign and left and right) and left[-1] not in "<>!=" and right[0] != "=" and "(" not in left
    if assigns and left in session.names():
        raise NotFound(f"There is no command {word}.", received=text, hint=f"edit {text} sets {left}.")
    if word.isidentifier() and text != word and not _compiles(text):
        raise NotFound(
            f"There is no command {word}.", received=text, hint=near(word, words) or "help lists the commands."
        )
    try:
        return _print(session, text, width)
    except NotFound as error:
        if not word.isidentifier():
            raise
        hint = near(word, [*words, *session.names()]) or "help lists the commands, names the variables."
        raise NotFound(f"There is no command or variable {word}.", received=text, hint=hint) from error


def _compiles(text: str) -> bool:
    try:
        compile(text, "<expression>", "eval")
    except SyntaxError:
        return False
    return True


def view(session: Session, width: int = 0, around: int = 3) -> list[Line]:
    """The current position of a session, with its breakpoints."""
    if session.there is not None:
        lines: list[Line] = session.there(view, width, around)
        return lines
    marks, values = session.marks(), read_values(session)  # after the requests before this one
    return session_lines(session.snapshot, session.program, marks, width, around, values)


def _count(rest: str) -> int:
    if not rest:
        return 1
    if not rest.isdecimal() or int(rest) < 1:
        raise OpValueError("That is not a number of steps.", expected="1, 2, ...", received=rest)
    return int(rest)


# ---- stepping


def _goto(session: Session, rest: str) -> None:
    if not rest.isdecimal():
        raise OpValueError("That is not a step.", expected="its number: 0, 1, ...", received=rest or "nothing")
    session.go(int(rest))


def _until(session: Session, rest: str) -> None:
    require_match(session, parse(rest))
    session.run_to(rest)


def _stepping(move: Callable[[Session, str], object]) -> Act:
    """A command that moves a session and shows its position."""

    def act(session: Session, rest: str, width: int) -> list[Line]:
        if session.role is not None:  # a training step that is over: the next one begins by itself
            session.role.wait()
        move(session, rest)
        if session.role is not None:
            session.role.wait()
        return view(session, width)

    return act


#: (name, abbreviations, arguments, example, help, what it does, what Tab completes)
_STEPS: tuple[tuple[str, str, str, str, str, Callable[[Session, str], object], str], ...] = (
    ("step", "s", "[COUNT]", "step 3", "Run operators one by one, entering the blocks that they run.",
     lambda s, rest: s.step(_count(rest)), ""),
    ("next", "n", "", "next", "Step over: run one operator with the blocks that it runs.", lambda s, _: s.next(), ""),
    ("out", "o return r fin finish", "", "out", "Step out: run to the end of this block and of its iterations.",
     lambda s, _: s.out(), ""),
    ("continue", "c cont", "", "continue", "Run to the next breakpoint, or to the end.",
     lambda s, _: s.continue_(), ""),
    ("until", "unt", "WHERE", "until mul", "Run once to an operator's type, or to anything that break accepts.",
     _until, "ops"),
    ("back", "rs reverse-step", "[COUNT]", "back 2", "Take steps back.", lambda s, rest: s.back(_count(rest)), ""),
    ("rnext", "rn reverse-next", "", "rnext", "Step back over one operator with the blocks that it ran.",
     lambda s, _: s.step_back_over(), ""),
    ("rcontinue", "rc reverse-continue", "", "rcontinue",
     "Go back to where a breakpoint would have stopped last, or to the beginning.",
     lambda s, _: s.reverse_continue(), ""),
    ("who", "", "VARIABLE", "who loss", "Go back to just before the step that gave a variable its value.",
     lambda s, rest: s.last_write(rest), "vars"),
    ("restart", "", "", "restart", "Go back to the beginning of this run.", lambda s, _: s.restart(), ""),
    ("goto", "", "STEP", "goto 0", "Go to a step by its number, backwards or forwards.", _goto, ""),
)  # fmt: skip

for _name, _short, _usage, _example, _help, _move, _offers in _STEPS:
    COMMANDS[_name] = Command(_name, tuple(_short.split()), _usage, _help, _stepping(_move), _example, _offers)


# ---- stopping


@_command("break", "b", "br", example="break op mul, after 3", usage="[WHERE]", offers="ops")
def _break(session: Session, rest: str, width: int) -> list[Line]:
    """Stop at: op TYPE, var NAME, line CELL:3, block 1@5, at 0:12, nan, when EXPRESSION; ", after 3" ignores 3 hits."""
    if not rest:
        return breakpoint_lines(session.breakpoints)
    require_match(session, parse(rest))
    elsewhere = not session.inspect(Debugger.can_reach, session.stop_at(rest))
    note: list[Line] = [[("  only another program has such an operator", "warn")]]
    return [*breakpoint_lines(session.breakpoints), *(note if elsewhere else [])]


@_command("clear", "cl", "delete", example="clear 1", usage="[NUMBER]")
def _clear(session: Session, rest: str, width: int) -> list[Line]:
    """Remove a breakpoint, or all."""
    if rest and not rest.isdecimal():
        raise OpValueError("That is not a breakpoint.", expected="the number of one, or nothing for all", received=rest)
    session.clear(int(rest) if rest else None)
    return breakpoint_lines(session.breakpoints)


@_command("watch", "w", example="watch loss", usage="[EXPRESSION]", offers="vars")
def _watch(session: Session, rest: str, width: int) -> list[Line]:
    """Show a variable or an expression at every stop."""
    if rest:
        session.watch(rest)
    rows = session.snapshot.watches
    return columns([[[(text, "name")], [(value, "")]] for text, value in rows], width) or [[("no watches", "dim")]]


@_command("unwatch", example="unwatch loss", usage="[EXPRESSION]")
def _unwatch(session: Session, rest: str, width: int) -> list[Line]:
    """Remove a watch, or all watches."""
    session.unwatch(rest or None)
    return _watch(session, "", width)


# ---- inspecting

#: session -> the run, the step and the frame of the last up or down
_SHOWN: weakref.WeakKeyDictionary[Session, tuple[int, int, int]] = weakref.WeakKeyDictionary()


@_command("up", "u", example="up", usage="[WHERE]", offers="ops")
def _up(session: Session, rest: str, width: int) -> list[Line]:
    """Show the block around this one; with WHERE, run there as until does."""
    return COMMANDS["until"].act(session, rest, width) if rest else _frame(session, -1, width)


@_command("down", "d", example="down", usage="[NUMBER]")
def _down(session: Session, rest: str, width: int) -> list[Line]:
    """Show the block inside again, after up; with NUMBER, remove a breakpoint as clear does."""
    return _clear(session, rest, width) if rest else _frame(session, 1, width)


def _frame(session: Session, way: int, width: int) -> list[Line]:
    """The block of the frame further out or further in."""
    snapshot, last = session.snapshot, len(session.snapshot.frames) - 1
    run, at, depth = _SHOWN.get(session, (-1, -1, -1))
    depth = (depth if (run, at) == (snapshot.run, snapshot.at) else last) + way
    if not 0 <= depth <= last:
        raise NotFound("There is no block further " + ("out." if way < 0 else "in."), received=snapshot.text)
    _SHOWN[session] = (snapshot.run, snapshot.at, depth)
    shown = replace(snapshot, frames=snapshot.frames[: depth + 1], error=None, wrote=(), watches=())
    return session_lines(shown, session.program, session.marks() if depth == last else (), width)


@_command("where", "bt", "list", "l", example="where")
def _where(session: Session, rest: str, width: int) -> list[Line]:
    """Show the current position with more of the surrounding block."""
    return view(session, width, around=12)


@_command("print", "p", example="print loss.mean()", usage="VARIABLE [--against STEP] or EXPRESSION", offers="vars")
def _print(session: Session, rest: str, width: int) -> list[Line]:
    """Show a variable, its difference from another step, or the value of a Python expression."""
    name, option, step = (part.strip() for part in rest.partition("--against"))
    if option and name:
        if not step.isdecimal():
            raise OpValueError("A step is a number.", expected=f"print {name} --against 12", received=step or "nothing")
        return difference_lines(name, session.inspect(_difference, name, int(step)), width)
    if not rest:
        raise OpValueError("print needs a variable or an expression.", expected="print VARIABLE, or print EXPRESSION")
    value = session.inspect(_on_device, rest)
    value = session.evaluate(rest) if value is None else value
    is_tensor = isinstance(value, LoDTensor)
    if not hasattr(value, "shape") or not has_value(value) or (not is_tensor and np.ndim(value) == 0):
        return [[(rest, "name"), (f"  {value}", "")]]
    summary = read_tensor(value, rest)
    with np.printoptions(precision=4, threshold=24, edgeitems=3, linewidth=width or 100):
        shown = printed(value.array) if isinstance(value, LoDTensor) else np.asarray(value)
        rows = [] if summary.values else str(shown).splitlines()
    return [*tensor_lines(summary), *([("  " + row, "")] for row in rows)]


def _difference(debugger: Debugger, name: str, step: int) -> Difference:
    """A variable's value, compared with that at another step."""
    value = find_value(debugger, name, -1)
    if type(value) is not LoDTensor or not has_value(value):
        debugger.value(name)  # raises where it has no value
        raise OpValueError("Only tensors are compared.", expected="a tensor", received=type(value).__name__)
    return difference(value.array, value_at(debugger, name, -1, step), step)


def _on_device(debugger: Debugger, name: str) -> LoDTensor | None:
    """The tensor of a variable on a device, of which only the shown elements are copied."""
    variable = debugger.tape.interpreter.stack[-1].scope.find_var(name)
    value = None if variable is None else variable.value
    return value if type(value) is LoDTensor and is_on_device(value.array) else None


@_command("names", example="names w_", usage="[PART]")
def _names(session: Session, rest: str, width: int) -> list[Line]:
    """List the variables that have a value here."""
    return [[(name, "name")] for name in session.names() if rest in name] or [[("none", "dim")]]


@_command("scope", example="scope")
def _scope(session: Session, rest: str, width: int) -> list[Line]:
    """Show the scopes from here outwards, with statistics of every tensor."""
    return session.inspect(lambda debugger: _scope_path(debugger.tape.interpreter.stack[-1].scope, width))


@_command("tree", example="tree")
def _tree(session: Session, rest: str, width: int) -> list[Line]:
    """Show the tree of blocks, with the number of operators of each role."""
    return tree_lines(read_tree(session.program), width, roles=True)


@_command("code", example="code", usage="[NUMBER]")
def _code(session: Session, rest: str, width: int) -> list[Line]:
    """Show an operator beside its function in C, the current one or that of a number in this block."""
    if rest and not rest.isdecimal():
        raise OpValueError("An operator is a number in this block.", expected="code 3", received=rest)
    found = session.inspect(read_code, session.program, int(rest) if rest else None)
    return source_lines([found.row], {found.row.function: found.text}, width)


@_command("graph", example="graph 0:1-4", usage="[BLOCK or BLOCK:FIRST-LAST]")
def _graph(session: Session, rest: str, width: int) -> list[Line]:
    """Draw the data flow graph, of a large program one level at a time."""
    picture = read_program(session.program)
    return graph_lines(level(part(picture, rest) if rest else picture), width)


@_command("uses", example="uses loss", usage="VARIABLE", offers="vars")
def _uses(session: Session, rest: str, width: int) -> list[Line]:
    """List the operators that write or read a variable."""
    return uses_lines(uses_of(read_program(session.program), rest), width)


@_command("history", example="history loss", usage="VARIABLE", offers="vars")
def _history(session: Session, rest: str, width: int) -> list[Line]:
    """List the steps that read or wrote a variable or its gradients."""
    return history_lines(session.history(rest), width)


@_command("nan", example="nan 1e6", usage="[LIMIT]")
def _nan(session: Session, rest: str, width: int) -> list[Line]:
    """Run to the first operator that writes NaN, infinity, or a number above a limit."""
    finding = session.do(search_nan, rest)
    return [*finding_lines(finding), *view(session, width)]


# ---- roles of a training


@_command("roles", example="roles")
def _roles(session: Session, rest: str, width: int) -> list[Line]:
    """List trainers and parameter servers of the training that runs, and mark the one that is attached to."""
    engine = newest_engine()
    inside = "" if session.role is None else session.role.name
    rows: list[list[Line]] = []
    for name, role in engine.role_names().items():
        state = "ended" if engine.has_ended(role) else "paused here" if name == inside else "running"
        kind = "forward" if name.startswith("trainer") else "optimizer"
        rows.append([[("→ " if name == inside else "  ", "bold"), (name, kind)], [(state, "")]])
    return columns(rows, width)


@_command("attach", example="attach pserver1", usage="ROLE", offers="roles")
def _attach(session: Session, rest: str, width: int) -> list[Line]:
    """Go into a trainer or a parameter server at its next run; the one before runs on, the others wait for this one."""
    if not rest:
        raise OpValueError("attach needs a role.", expected="attach trainer0, attach pserver1", received="nothing")
    attach(session, rest)
    return view(session, width)


# ---- edits


@_command("edit", "set", example="edit h = 0", usage="VARIABLE = EXPRESSION", offers="vars")
def _edit(session: Session, rest: str, width: int) -> list[Line]:
    """Set a variable; stepping back undoes it."""
    name, sign, text = (part.strip() for part in rest.partition("="))
    if not sign or not text:
        raise OpValueError("That is not an edit.", expected="edit VARIABLE = EXPRESSION", received=rest or "nothing")
    session.edit(name, session.evaluate(text))
    return _print(session, name, width)


@_command("change", example="change 0:1 axis=0", usage="BLOCK:OP NAME=VALUE ...")
def _change(session: Session, rest: str, width: int) -> list[Line]:
    """Set attributes of an operator for the rest of the run, not in the program; stepping back undoes it."""
    place, *pairs = rest.split() or [""]
    block, colon, index = place.partition(":")
    if not (block.isdecimal() and colon and index.isdecimal() and pairs):
        raise OpValueError("That is not a change.", expected="change 0:12 NAME=VALUE ...", received=rest or "nothing")
    session.do(Debugger.change_op, int(block), int(index), dict(_values(pairs)))
    return view(session, width)


def _values(pairs: list[str]) -> Iterator[tuple[str, Any]]:
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            yield name, ast.literal_eval(tree_of(text))
        except (ValueError, TypeError, SyntaxError):  # a list as a key of a dict is a TypeError
            yield name, text


def _scope_path(scope: Any, width: int) -> list[Line]:
    """A scope and those around it, innermost first."""
    lines: list[Line] = []
    while scope is not None:
        title = "user's scope" if scope.block is None else f"scope of block {scope.block.index}"
        row = read_scope(scope, title)
        lines += scope_lines(type(row)(row.title, row.variables), width)
        scope = scope.parent
    return lines
