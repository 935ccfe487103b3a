"""A program as a graph laid out by Graphviz, where installed.

The text and the call of ``dot`` are written here: the package ``graphviz`` renders without a time limit and cannot be
cancelled, brings no ``dot``, and would save one line, the quoting.
"""

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.errors import EnforceNotMet
from fluidnb.utils.escapes import escape
from fluidnb.viz.base.styled_text import COLOURS, cut_text, legible
from fluidnb.viz.base.svg import new_uid
from fluidnb.viz.program.data_flow import flows
from fluidnb.viz.program.model import BlockRow, ProgramPicture, VarRow

#: Without limits of the network simplex, 100 nodes whose edges span the whole graph take 20 s and not 3.
_LIMITS = "nslimit=1 nslimit1=1"
_GRAPH = f'bgcolor="transparent" rankdir=TB nodesep=0.2 ranksep=0.28 compound=true fontname="Helvetica" {_LIMITS}'
_NODE = 'shape=box style="rounded,filled" fontname="Helvetica" fontsize=12 height=0.28 margin="0.1,0.04"'
_GREY = "#88929e"
_WEIGHT = f'shape=box style="rounded,dashed" color="{_GREY}" fontcolor="{_GREY}" fontsize=11 height=0.25'
#: Characters of a node's first line, at most.
_LABEL = 44
#: Characters of a tooltip, at most: Graphviz takes no text of more than 16,384.
_TIP = 1000
#: Edges and nodes up to which edges are labelled with shapes, and parameters are drawn as nodes.
_DETAIL = 150
#: The colour of a text in a layout.
_TEXT = re.compile(r'(<text[^>]*?) fill="(#[0-9a-f]{6})"')
#: Seconds that a layout may take.
PATIENCE = 20.0
#: Seconds between two checks for cancellation.
_POLL = 0.1


@dataclass(frozen=True, slots=True)
class Layout:
    """Result of a layout."""

    svg: str = ""  # the graph as one SVG element; empty if there is none
    why: str = ""  # the reason why there is none


def dot_text(picture: ProgramPicture, uid: str = "") -> str:
    """A program in the DOT language: a node an operator, a cluster a nested block, an edge a value."""
    uid = uid or new_uid()
    lines = [
        "digraph program {", f"  graph [{_GRAPH}]", f"  node [{_NODE}]",
        f'  edge [color="{_GREY}" arrowsize=0.6 fontname="Helvetica" fontsize=11 fontcolor="{_GREY}"]',
    ]  # fmt: skip
    for block in picture.blocks:
        _cluster(block, uid, "  ", lines)
    ops = [op for block in picture.blocks for _, op in block.walk()]
    carried: dict[tuple[int, int], list[str]] = {}
    for name, first, last in flows(list(enumerate(ops))):
        carried.setdefault((first, last), []).append(name)
    known = {v.name: v for op in ops for v in (*op.writes, *op.reads)}
    for (first, last), names in carried.items():
        a, b = ops[first], ops[last]
        shapes = [f"{name}  {known[name].facts}".rstrip() for name in names]
        label = _shape(known[names[0]]) if len(names) == 1 else f"{len(names)} values"
        shown = f" label={_quoted(label)}" if len(carried) <= _DETAIL and not (a.hides or b.hides) else ""
        lines.append(f"  op_{a.block}_{a.index} -> op_{b.block}_{b.index} [tooltip={_quoted(_tip(shapes))}{shown}]")
    weights = [(v, op) for op in ops if not op.hides for v in op.reads if v.parameter and op.role == "forward"]
    if len(weights) + len(ops) <= _DETAIL:
        for i, v in enumerate(dict.fromkeys(v for v, _ in weights)):
            label = f"label={_quoted(v.name, _shape(v))} tooltip={_quoted(v.name)}"
            lines.append(f'  var_{i} [id="{uid}var_{escape(v.name)}" {label} {_WEIGHT}]')
            lines += [f"  var_{i} -> op_{op.block}_{op.index} [style=dashed]" for w, op in weights if w == v]
    return "\n".join([*lines, "}"])


def dot_svg(
    picture: ProgramPicture, uid: str = "", patience: float = PATIENCE, stop: threading.Event | None = None
) -> Layout:
    """A program as one SVG element laid out by ``dot``; Ctrl-C cancels the layout only."""
    uid = uid or new_uid()
    drawn = _draw(dot_text(picture, uid), "svg", patience, stop or threading.Event())
    if isinstance(drawn, str):
        return Layout(why=drawn)
    text = drawn.decode()
    start = text.find("<svg")
    # Graphviz numbers its own groups graph0, node1, …: the same in every picture.
    # A page that shrinks pictures to its width would make the text unreadable: the box around it scrolls.
    text = text[start:].replace("<svg", '<svg style="max-width:none"', 1)
    for own in ("graph", "node", "edge", "clust"):
        text = text.replace(f'id="{own}', f'id="{uid}{own}')
    return Layout(_TEXT.sub(lambda match: f"{match[1]} {legible(match[2])}", text))


def dot_file(picture: ProgramPicture, kind: str, patience: float = PATIENCE) -> bytes:
    """A program as a file laid out by ``dot`` on a white ground.

    Args:
        kind: ``png`` or ``pdf``.

    Raises:
        EnforceNotMet: Graphviz is missing, or the layout takes more seconds than ``patience``.
    """
    drawn = _draw(dot_text(picture, "fluidnb_"), kind, patience, threading.Event(), "-Gbgcolor=white", "-Gdpi=144")
    if isinstance(drawn, str):
        raise EnforceNotMet(f"There is no {kind.upper()}: {drawn}.", hint="an SVG needs no Graphviz.")
    return drawn


class _Cancelled(Exception):
    """The layout was cancelled."""


def _draw(graph: str, kind: str, patience: float, stop: threading.Event, *options: str) -> bytes | str:
    """A graph in a format of ``dot``, or the reason why there is none."""
    program = shutil.which("dot")
    if program is None:
        return "there is no dot on PATH; apt-get install graphviz or brew install graphviz brings it"
    try:
        done = _run([program, f"-T{kind}", *options], graph.encode(), patience, stop)
    except (KeyboardInterrupt, _Cancelled):
        return "the layout was cancelled"
    except subprocess.TimeoutExpired:
        return f"dot took more than {patience:g} s"
    except OSError as error:
        return f"dot does not start: {error.strerror}"
    if done.returncode or not done.stdout:
        message = (done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.returncode}"])[0]
        return f"dot failed: {message}"
    return done.stdout


def _run(command: list[str], data: bytes, patience: float, stop: threading.Event) -> subprocess.CompletedProcess[bytes]:
    """`subprocess.run` with cancellation."""
    end = time.monotonic() + patience
    pending: bytes | None = data
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            while not stop.is_set():
                try:
                    out, err = process.communicate(pending, timeout=_POLL)
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
                except subprocess.TimeoutExpired:
                    pending = None
                    if time.monotonic() > end:
                        raise
            raise _Cancelled
        except BaseException:
            process.kill()
            raise


def _cluster(block: BlockRow, uid: str, pad: str, lines: list[str]) -> None:
    for op in block.ops:
        colour = COLOURS[op.role]
        label = [cut_text(op.type, _LABEL), op.hidden, *([op.types] if op.hides else [])] if op.hidden else [op.type]
        lines.append(
            f'{pad}op_{op.block}_{op.index} [id="{uid}op_{op.block}_{op.index}" label={_quoted(*label)} '
            f'tooltip={_quoted(_tip([op.text]))} color="{colour}" fillcolor="{colour}26" fontcolor="{colour}"]'
        )
        for inner in op.blocks:
            lines += [
                f"{pad}subgraph cluster_{inner.index} {{",
                f'{pad}  id="{uid}block_{inner.index}" label="block {inner.index}" fontsize=11 style=dashed',
                f'{pad}  color="{_GREY}" fontcolor="{_GREY}"',
            ]
            _cluster(inner, uid, pad + "  ", lines)
            lines.append(pad + "}")


def _shape(variable: VarRow) -> str:
    """The shape of a variable; empty if unknown."""
    return "" if variable.shape is None else "×".join("N" if n < 0 else str(n) for n in variable.shape)


def _tip(rows: Sequence[str]) -> str:
    """The tooltip of a node or an edge, cut to what Graphviz accepts."""
    text = "\n".join(rows)
    return text if len(text) <= _TIP else f"{text[:_TIP]} …" + (f" ({len(rows):,} values)" if len(rows) > 1 else "")


def _quoted(*lines: str) -> str:
    """Lines as a quoted string in DOT."""
    return '"' + "\\n".join(escape(x, quote=False).replace("\\", "\\\\").replace('"', '\\"') for x in lines) + '"'
