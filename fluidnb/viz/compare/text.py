"""The difference of two runs as lines of text."""

import numpy as np

from fluidnb.compare.difference import Comparison, Difference, described
from fluidnb.compare.recording import Array, Write
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.values.preview import read_preview

#: Shades of a picture in text, from no difference on.
_SHADES = " .:-=+*#%@"
#: Rows and columns of a picture in text.
_SIDE = 24


def difference_lines(difference: Difference, pictures: bool = True) -> list[Line]:
    """The difference: the operator, the variables that it reads, the results.

    Args:
        difference: what was found.
        pictures: whether to show in characters where two tensors differ.
    """
    first, second = difference.first.title, difference.second.title
    compared, equal = difference.compared
    lines: list[Line] = [[(first, "bold"), (" and ", "dim"), (second, "bold")]]
    lines.append([(f"{plural(compared, 'variable')} compared, {equal} agree", "dim")])
    if difference.equal:
        lines.append([("The results agree.", "bold")])
        if difference.healed:
            listed = ", ".join(difference.healed[:6]) + ", …" * (len(difference.healed) > 6)
            lines.append([(f"On the way {listed} differ; what follows from them agrees.", "dim")])
    elif difference.op is None:
        lines.append([("The results differ, and no operator on the way to them was compared.", "warn")])
    else:
        lines += _cause(difference, difference.op)
        apart = apart_of(difference) if pictures else None
        lines += [] if apart is None else picture_lines(apart)
    lines.append([("results", "bold")])
    lines += [[("  ", ""), *line] for line in _table(difference.results)]
    return lines


def op_name(write: Write) -> str:
    """An operator as text, with the iterations of the loops around it."""
    if write.op is None:
        return next(iter(write.values), "")
    inside = "".join(f", iteration {k}" for k in write.iterations)
    return f"op {write.index} ({write.op.optype}) in block {write.block}{inside}"


def _cause(difference: Difference, op: Write) -> list[Line]:
    lines: list[Line] = [[("First difference: ", "warn"), (op_name(op), "bold")]]
    facts: list[tuple[str, str]] = []
    if difference.output is not None:
        facts.append((difference.output.first, described(difference.output)))
    if difference.between:
        facts.append(("or one of", ", ".join(op_name(each) for each in difference.between[:6])))
    if difference.other is not None:
        facts.append(("in the second", op_name(difference.other)))
    scope = "" if op.op is None else str(op.op.attrs.get("op_namescope", "")).strip("/")
    if scope:
        facts.append(("layer", scope))
    if op.where is not None:
        facts.append(("at", f"{op.where.short()}:  {op.where.source}"))
    elif op.op is not None and op.op.attrs.get("op_callstack"):
        facts.append(("at", str(op.op.attrs["op_callstack"][-2:][0]).strip()))
    lines += columns([[[("  " + title, "dim")], [(text, "")]] for title, text in facts])
    lines += [[("  ", ""), (change, "warn")] for change in difference.changes]
    if difference.inputs:
        lines.append([("what it reads", "bold")])
        lines += [[("  ", ""), *line] for line in _table(difference.inputs)]
    return lines


def _table(comparisons: list[Comparison]) -> list[Line]:
    rows = []
    for each in comparisons:
        name = each.first if each.first == each.second else f"{each.first} / {each.second}"
        rows.append([[(name, "name")], [(described(each), "" if each.equal else "warn")]])
    return columns(rows)


def apart_of(difference: Difference) -> Array | None:
    """The absolute difference of the output that differs; None without numbers of one shape."""
    output, op, other = difference.output, difference.op, difference.other
    if output is None or output.problem or op is None:
        return None
    a = op.values.get(output.first)
    b = other.values.get(output.second) if other is not None else None
    if a is None:
        a = difference.first.value(output.first)
    if b is None:
        b = difference.second.value(output.second)
    if a is None or b is None or a.shape != b.shape:
        return None
    return np.nan_to_num(np.abs(a.astype(np.float64) - b.astype(np.float64)), posinf=0.0)


def picture_lines(apart: Array) -> list[Line]:
    """A picture of where two tensors differ: the largest difference in each part of a matrix, as shades."""
    if apart.ndim < 2 or read_preview(apart) is None or apart.max() == 0:
        return []
    where = np.unravel_index(int(apart.argmax()), apart.shape)[:-2]
    matrix = apart[where]
    rows, cols = (min(n, _SIDE * k) for n, k in zip(matrix.shape, (1, 2), strict=True))
    parts = [np.array_split(part, cols, axis=1) for part in np.array_split(matrix, rows, axis=0)]
    largest = np.array([[cell.max() for cell in row] for row in parts])
    shades = np.ceil(largest / largest.max() * (len(_SHADES) - 1)).astype(int)
    title = "where it differs" + (f", at {list(map(int, where))}" if where else "")
    lines: list[Line] = [[(title, "bold")]]
    lines += [[("  |", "dim"), ("".join(_SHADES[k] for k in row), "warn"), ("|", "dim")] for row in shades]
    return lines
