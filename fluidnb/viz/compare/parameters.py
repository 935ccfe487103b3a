"""The difference of two sets of parameters as lines of text."""

from collections import Counter

from fluidnb.compare.parameters import ParameterDifference, TensorPair, described_pair
from fluidnb.viz.base.styled_text import Line, columns, plural

#: What makes two tensors partners, as texts say it.
_HOW = {"structure": "by the operators that read them", "values": "by shape and values", "shape": "by shape alone"}


def parameter_lines(difference: ParameterDifference) -> list[Line]:
    """The tensors that differ, and how many agree."""
    states = Counter(pair.state for pair in difference.pairs)
    counted = ", ".join(f"{states[s]} {s}" for s in ("equal", "within tolerance", "differs") if states[s])
    others = ", ".join(f"{states[s]} of another {s}" for s in ("shape", "dtype") if states[s])
    lines: list[Line] = [[(difference.first, "bold"), (" and ", "dim"), (difference.second, "bold")]]
    told = ", ".join(filter(None, (counted, others)))
    lines.append([(f"{plural(len(difference.pairs), 'tensor')} compared" + f": {told}" * bool(told), "dim")])
    hows = Counter(pair.how for pair in difference.pairs if pair.how != "name")
    lines += [[(f"{plural(count, 'pair')} of different names found {_HOW[how]}", "dim")] for how, count in hows.items()]
    if difference.equal:
        lines.append([("The parameters agree.", "bold")])
    lines += columns([_row(pair) for pair in difference.pairs if pair.state != "equal" or pair.how != "name"])
    for title, names in ((difference.first, difference.only_first), (difference.second, difference.only_second)):
        if names:
            lines.append([(f"only in {title}", "bold")])
            lines += columns([[[("  " + name, "name")], [(text, "warn")]] for name, text in names.items()])
    return lines


def _row(pair: TensorPair) -> list[Line]:
    first, second = pair.comparison.first, pair.comparison.second
    name = first if first == second else f"{first} / {second}"
    how = "" if pair.how == "name" else f"  ({_HOW[pair.how]})"
    return [[("  " + name, "name")], [(described_pair(pair), "" if pair.agrees else "warn"), (how, "dim")]]
