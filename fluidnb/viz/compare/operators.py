"""The operators of two runs side by side: what each wrote, and the statistics of both values."""

from dataclasses import dataclass

from fluidnb.compare.difference import Comparison, Difference, described
from fluidnb.compare.recording import Array, Write
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.compare.text import op_name
from fluidnb.viz.values.reader import read_tensor
from fluidnb.viz.values.text import tensor_lines

#: State of an operator -> the word by which it is coloured.
WORDS = {True: "same", False: "differs", None: "not compared"}


@dataclass(frozen=True)
class ComparedOperator:
    """An operator of the first program beside that of the second.

    Args:
        index: its place in block 0.
        other: the place of the second's; None where none computes the same.
        title: its name and state.
        state: ``same``, ``differs`` or ``not compared``.
        lines: its results compared, with the statistics of both.
    """

    index: int
    other: int | None
    title: str
    state: str
    lines: list[Line]


def compared_operators(difference: Difference) -> list[ComparedOperator]:
    """The operators of block 0 that ran, in order."""
    theirs = {(w.block, w.index): w for w in difference.second.writes if w.op is not None and not w.iterations}
    found = []
    for i, write in enumerate(w for w in difference.first.writes if w.block == 0):
        partner = difference.pairs.get((0, write.index))
        other = theirs.get(partner) if partner is not None else None
        state = WORDS[difference.states.get(i)]
        lines: list[Line] = []
        for each in difference.outputs.get(i, []):
            lines += _result_lines(difference, each, write, other)
        for name, value in write.values.items():
            if name not in [each.first for each in difference.outputs.get(i, [])]:
                lines += [[(name, "name"), ("  the second has no such value", "dim")], _statistics("first", value)]
        place = partner[1] if partner is not None and partner[0] == 0 else None
        found.append(ComparedOperator(write.index, place, op_name(write), state, lines))
    return found


def _result_lines(difference: Difference, each: Comparison, write: Write, other: Write | None) -> list[Line]:
    """A result compared, and the statistics of both values."""
    name = each.first if each.first == each.second else f"{each.first} / {each.second}"
    theirs = other.values.get(each.second) if other is not None else None
    if theirs is None:
        theirs = difference.second.value(each.second)
    lines: list[Line] = [[(name, "name"), ("  " + described(each), "" if each.equal else "warn")]]
    lines.append(_statistics("first", write.values[each.first]))
    return lines if theirs is None else [*lines, _statistics("second", theirs)]


def _statistics(title: str, value: Array) -> Line:
    return [(f"  {title:8}", "dim"), *tensor_lines(read_tensor(value))[0]]
