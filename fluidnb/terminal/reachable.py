"""Refusal of breakpoints that no operator matches, with what there is instead."""

from collections.abc import Iterator

from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.session import Session
from fluidnb.errors import NotFound, near
from fluidnb.op import has_op
from fluidnb.program import Program
from fluidnb.program.program import programs
from fluidnb.runtime.compile.lowering import LoweredOp


def require_match(session: Session, point: Breakpoint) -> None:
    """Raises NotFound where no operator matches a breakpoint, neither in this program nor, by name, in another one."""
    if any(map(point.may_stop, _ops(session.program))):
        return
    declared = any(point.what in block.vars for block in session.program.desc.blocks)
    named = point.kind in ("op", "line") or (point.kind == "var" and not declared)
    if named and any(point.may_stop(op) for program in list(programs) for op in _ops(program)):
        return
    expected, hint = _instead(session, point)
    raise NotFound(
        f'No operator of this program matches "{point.text}".', expected=expected, received=point.what, hint=hint
    )


def _ops(program: Program) -> Iterator[LoweredOp]:
    for block in program.desc.blocks:
        for index, op in enumerate(block.ops):
            if has_op(op.optype):
                yield LoweredOp(op, index, block.idx)


def _instead(session: Session, point: Breakpoint) -> tuple[str, str | None]:
    """The names that a breakpoint of its kind may have, and a hint."""
    ops = list(_ops(session.program))
    match point.kind:
        case "op":
            types = list(dict.fromkeys(op.desc.optype for op in ops))
            return _list(types), near(point.what, types) or None
        case "var":
            written = list(dict.fromkeys(name for op in ops for name in op.writes()))
            declared = any(point.what in block.vars for block in session.program.desc.blocks)
            fed = f"it has its value before the first operator: print {point.what} shows it."
            return _list(written), fed if declared else near(point.what, written) or "names lists those with a value."
        case "line":
            name, _, _ = point.what.rpartition(":")
            places = [where for op in ops if (where := op.where()) is not None]
            mine = [p for p in places if name in ("", p.cell, p.file, p.file.rsplit("/", 1)[-1])]
            lines = dict.fromkeys(str(p.line) for p in sorted(mine, key=lambda p: p.line))
            titles = list(dict.fromkeys(p.cell or p.file.rsplit("/", 1)[-1] for p in places))
            if mine:
                return f"a line that appends operators: {', '.join(lines)}", None
            return f"a line of {', '.join(titles)}", near(name, titles) or None
        case "block":
            return f"a block up to {len(session.program.desc.blocks) - 1}", None
        case _:
            ends = {op.block: f"{op.block}:0 to {op.block}:{op.index}" for op in ops}
            return ", ".join(ends.values()), None


def _list(names: list[str]) -> str:
    """Names in words, the first eight."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
