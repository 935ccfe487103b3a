"""Pairs of variables of two programs: by name, else by their place among the same operators."""

import difflib
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from fluidnb.op import EMPTY
from fluidnb.program import Program
from fluidnb.proto.desc import BlockDesc, OpDesc

#: Operators that compute the same, under the name by which they are compared.
_SAME = {
    "reshape2": "reshape", "transpose2": "transpose", "squeeze2": "squeeze", "unsqueeze2": "unsqueeze",
    "flatten2": "flatten", "depthwise_conv2d": "conv2d", "matmul_v2": "matmul", "lookup_table_v2": "lookup_table",
}  # fmt: skip


@dataclass
class Alignment:
    """The pairs of two programs.

    Args:
        names: variable of the first -> that of the second.
        ops: operator of the first -> that of the second, each by block and place.
    """

    names: dict[str, str] = field(default_factory=dict)
    ops: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def align(first: Program, second: Program, feeds: dict[str, str], fetches: dict[str, str]) -> Alignment:
    """Pairs the variables and operators of two programs.

    Names decide where both programs have them. Else two operators of one type in the same place of the sequence are
    taken to be the same, and so are the variables in their slots.

    Args:
        feeds: feeds of the first -> those of the second.
        fetches: the same for results.
    """
    found = Alignment({**feeds, **fetches})
    ours, theirs = (_names(program) for program in (first, second))
    shared = ours & theirs
    found.names |= {name: name for name in shared if name not in found.names}
    for old, new in zip(first.desc.blocks, second.desc.blocks, strict=False):
        _pair_ops(old, new, found)
    return found


def _names(program: Program) -> set[str]:
    return {name for block in program.desc.blocks for name in block.vars} - {"feed", "fetch", EMPTY}


def _kind(op: OpDesc) -> str:
    return _SAME.get(op.optype, op.optype)


def _pair_ops(old: BlockDesc, new: BlockDesc, found: Alignment) -> None:
    """Pairs the operators of two blocks, and the variables that have other names."""
    writers: dict[str, list[int]] = defaultdict(list)
    for j, op in enumerate(new.ops):
        for name in op.output_arg_names():
            writers[name].append(j)
    taken: set[int] = set()
    times: Counter[str] = Counter()  # how often each variable was written
    for i, op in enumerate(old.ops):  # first those that write a variable of the same name, as often
        for name in op.output_arg_names():
            listed, at = writers[found.names.get(name, "")], times[name]
            times[name] += 1
            if at < len(listed) and listed[at] not in taken and (old.idx, i) not in found.ops:
                found.ops[old.idx, i] = new.idx, listed[at]
                taken.add(listed[at])
    rest = [i for i in range(len(old.ops)) if (old.idx, i) not in found.ops]
    others = [j for j in range(len(new.ops)) if j not in taken]
    matcher = difflib.SequenceMatcher(
        None, [_kind(old.ops[i]) for i in rest], [_kind(new.ops[j]) for j in others], autojunk=False
    )
    for at, to, size in matcher.get_matching_blocks():
        for k in range(size):
            found.ops[old.idx, rest[at + k]] = new.idx, others[to + k]
    used = set(found.names.values())
    for (block, i), (_, j) in sorted(found.ops.items()):
        if block != old.idx or _kind(old.ops[i]) != _kind(new.ops[j]):
            continue
        for mine, other in ((old.ops[i].ins, new.ops[j].ins), (old.ops[i].outs, new.ops[j].outs)):
            for slot, names in mine.items():
                for name, partner in zip(names, other.get(slot, []), strict=False):
                    if name not in found.names and partner not in used:
                        found.names[name] = partner
                        used.add(partner)
