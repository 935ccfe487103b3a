"""The kernels of each operator: dtypes, files, or the reason why it stays on the host."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from types import FunctionType, ModuleType
from typing import Any

from fluidnb.errors import NotFound, near
from fluidnb.op import OpDef, all_ops
from fluidnb.op.kernel_type import Kernel
from fluidnb.utils.escapes import escape
from fluidnb.viz import boxed
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb_kernels.cuda import Source
from fluidnb_kernels.lab.trial import written

#: dtypes in the order in which they are shown, and what stands for them in a table
_SHORT = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16",
    "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Places:
    """The kernels of an operator."""

    op: str  # its type
    family: str  # the folder of its kernels, or its module when it is somebody's own
    cpu: tuple[str, ...]  # the dtypes of its numpy kernels; ``any`` where one takes all
    cuda: tuple[str, ...] = ()  # the dtypes of its CUDA kernels
    file: str = ""  # where the CUDA kernel that wins is written
    host: str = ""  # why it has none
    mine: tuple[str, ...] = ()  # the places for which a kernel was written in this process

    @property
    def state(self) -> str:
        """In one word: ``cuda``, ``host only``, or ``cpu`` where a CUDA kernel is still to come."""
        return "cuda" if self.cuda else "host only" if self.host else "cpu"


def read_catalog(pattern: str = "") -> list[Places]:
    """The kernels of operators, by family and name; ``pattern``: an operator, a family, or a glob of names."""
    rows = [_places(d) for d in all_ops()]
    if pattern:
        exact = [r for r in rows if pattern in (r.op, r.family)]
        found = exact or [r for r in rows if fnmatch(r.op, pattern)]
        if not found:
            known = [*(r.op for r in rows), *dict.fromkeys(r.family for r in rows)]
            raise NotFound(
                f"no operator and no family is called {pattern}.", received=pattern,
                hint=near(pattern, known) or "%fluid kernels lists the families.",
            )  # fmt: skip
        rows = found
    return sorted(rows, key=lambda r: (r.family, r.op))


def _places(d: OpDef) -> Places:
    head, _, rest = d.module.partition(".")
    family = rest.partition(".")[0] if head == "fluidnb_kernels" else d.module
    on = {place: [k for k in d.kernels if k.place == place] for place in ("cpu", "cuda")}
    return Places(
        d.type, family, _dtypes(on["cpu"]), _dtypes(on["cuda"]), _file(on["cuda"][-1]) if on["cuda"] else "",
        d.host_only, tuple(t.place for t in written(d.type)),
    )  # fmt: skip


def _dtypes(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    if any(k.dtypes is None for k in kernels):
        return ("any",)
    taken = {name for k in kernels for name in k.dtypes or ()}
    return tuple(name for name in _SHORT if name in taken)


def _file(kernel: Kernel) -> str:
    """The file of a CUDA kernel: a ``.cu`` file that its module uses, a cell, or the module."""
    name = getattr(kernel.function, "__module__", "") or ""
    module = sys.modules.get(name)
    if name.startswith("fluidnb_kernels.lab"):
        return "a cell"
    space = {} if module is None else vars(module)
    names, every = _names_in(kernel.function), list(space.values())
    used = [space[n] for n in names if n in space]
    for found in (used, _through(used, names), every, _beside(used), _beside(every)):
        files = dict.fromkeys(v.path.name for v in found if isinstance(v, Source))
        if files:
            return ", ".join(files)
    return name.removeprefix("fluidnb_kernels.")


def _through(values: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The globals of modules that functions called by their module use: ``verbs.copy`` uses ``strided_copy``."""
    modules = [v for v in values if isinstance(v, ModuleType) and v.__name__.startswith("fluidnb_kernels.")]
    called = [getattr(m, n) for m in modules for n in names if isinstance(getattr(m, n, None), FunctionType)]
    spaces = [(f.__globals__, n) for f in called for n in _names_in(f)]
    inner = [space[n] for space, n in spaces if isinstance(space.get(n), ModuleType)]
    ours = [m for m in inner if m.__name__.startswith("fluidnb_kernels.")]
    return [v for m in (*modules, *ours) for v in vars(m).values()]


def _beside(values: Sequence[Any]) -> list[Any]:
    """The sources of our modules that define functions."""
    modules = dict.fromkeys(str(getattr(v, "__module__", "")) for v in values if callable(v))
    ours = [vars(sys.modules[m]) for m in modules if m.startswith("fluidnb_kernels.") and m in sys.modules]
    return [v for space in ours for v in space.values()]


def _names_in(function: Any) -> Sequence[str]:
    """The names that a function reads."""
    code = getattr(function, "__code__", None)
    return () if code is None else tuple(code.co_names)


def _words(dtypes: Sequence[str]) -> str:
    return " ".join(_SHORT.get(name, name) for name in dtypes) or "-"


def catalog_lines(rows: Sequence[Places], width: int = 0) -> list[Line]:
    """The catalog as lines: a row a family where there are many, else one for each operator."""
    families = dict.fromkeys(r.family for r in rows)
    return _by_family(rows, families, width) if len(families) > 3 else _by_op(rows, width)


def _by_family(rows: Sequence[Places], families: Iterable[str], width: int) -> list[Line]:
    heads = ("family", "operators", "on cuda", "host only", "on cpu alone")
    table: list[list[Line]] = [[[(text, "dim")] for text in heads]]
    for family in families:
        of = [r for r in rows if r.family == family]
        counts = [sum(r.state == state for r in of) for state in ("cuda", "host only", "cpu")]
        table.append([[(family, "name")], [(str(len(of)), "")], *([(str(n or "-"), "")] for n in counts)])
    own = [f"{r.op} ({', '.join(r.mine)})" for r in rows if r.mine]
    lines = columns(table, width)
    lines.append([(f"{plural(len(rows), 'operator')}; %fluid kernels FAMILY or OP says more", "dim")])
    if own:
        lines.append([("written in this session: ", "dim"), (", ".join(own), "name")])
    return lines


def _by_op(rows: Sequence[Places], width: int) -> list[Line]:
    table: list[list[Line]] = [[[(text, "dim")] for text in ("operator", "cpu", "cuda", "")]]
    for r in rows:
        where = f"host only: {r.host}" if r.state == "host only" else r.file
        mine = [(f"  written in this session: {', '.join(r.mine)}", "name")] if r.mine else []
        table.append([[(r.op, "name")], [(_words(r.cpu), "")], [(_words(r.cuda), "")], [(where, "dim"), *mine]])
    return columns(table, width)


def catalog_html(rows: Sequence[Places]) -> str:
    """The catalog as a table that folds by family."""
    families = dict.fromkeys(r.family for r in rows)
    opened = " open" if len(families) <= 3 else ""
    parts = []
    for family in families:
        of = [r for r in rows if r.family == family]
        counts = {state: sum(r.state == state for r in of) for state in ("cuda", "host only", "cpu")}
        said = f"{counts['cuda']} of {len(of)} on cuda"
        said += f", {counts['host only']} host only" if counts["host only"] else ""
        body = "".join(_row_html(r) for r in of)
        head = "".join(f'<th style="{_CELL};opacity:.6">{text}</th>' for text in ("operator", "cpu", "cuda", ""))
        parts.append(
            f'<details{opened}><summary style="cursor:pointer;list-style-position:outside"><b>{escape(family)}</b> '
            f'<span style="opacity:.6">{said}</span></summary>'
            f'<table style="{_TABLE}"><tr>{head}</tr>{body}</table></details>'
        )
    return boxed(f'<div style="padding-left:1.3em;font-size:13px;line-height:1.5">{"".join(parts)}</div>')


_TABLE = "border-collapse:collapse;margin:.2em 0 .6em;font-size:inherit;color:inherit"
_CELL = "text-align:left;padding:0 .8em 0 0;font-weight:400;vertical-align:top"


def _row_html(r: Places) -> str:
    where = f"host only: {r.host}" if r.state == "host only" else r.file
    mine = f" <b>written in this session: {', '.join(r.mine)}</b>" if r.mine else ""
    cells = [f"<b>{escape(r.op)}</b>", escape(_words(r.cpu)), escape(_words(r.cuda))]
    cells.append(f'<span style="opacity:.7">{escape(where)}</span>{mine}')
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
