"""Comparison of a cell's new pieces with its former ones, so that the former can stay.

Later cells refer to the former operators and variables. Where the new ones are alike, the former are applied again, and
the new handles become aliases of them: a list of the user's that got a new handle works as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from types import FunctionType
from typing import Any

from fluidnb.cells.delta import Addition, Delta, Rewrite
from fluidnb.cells.saved_layer_objects import attributes, is_record
from fluidnb.program.block import Block
from fluidnb.program.operator import Operator
from fluidnb.program.origin import Origin
from fluidnb.program.program import Program, programs
from fluidnb.program.snapshot import Desc, view_facts
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, VarDesc

#: New descriptions and programs -> the old ones that are alike.
Pairs = dict[Any, Any]
#: Values that `alike` compares at most: a data set in a list is not worth the time.
_MOST_VALUES = 20_000
_FIXED = ("block", "desc", "origin", "_op")
_PLAIN = (str, bytes, int, float, complex, bool, type(None), range, slice, frozenset)


def pairs_of(old: Iterable[Delta], new: Iterable[Delta], origin: Origin, named: Mapping[Any, Any]) -> Pairs | None:
    """New piece -> old piece of two runs of a cell; None when anything differs."""
    pairs: Pairs = {}
    if {p for p in list(programs) if p.origin is not None and p.origin.whole is origin.whole} - named.keys():
        return None
    for now, before in named.items():
        if not _pair_programs(now, before, pairs):
            return None
    for before, now in zip_longest(old, new):
        if isinstance(before, Addition) and isinstance(now, Addition):
            fine = before.program is now.program and _pair_additions(before, now, pairs)
        elif isinstance(before, Rewrite) and isinstance(now, Rewrite):
            fine = before.program is now.program and _pair_rewrites(before, now, pairs)
        else:
            return None
        if not fine:
            return None
    facts = all(_same_view(now, before, pairs) for now, before in pairs.items())
    return pairs if facts else None


def take_over(pairs: Pairs) -> None:
    """Make the new handles aliases of the old ones, which get the lines and titles of the new run."""
    for now, before in pairs.items():
        if isinstance(now, Program):
            now.__dict__ = before.__dict__
            continue
        view, its = now.view, before.view
        if view is None:
            continue
        if its is None:
            before.view, its = view, view
            if isinstance(view, Variable):
                view.__dict__["desc"] = before
            else:
                view.desc = before
        elif isinstance(view, Variable):
            object.__setattr__(view, "__dict__", its.__dict__)
        elif isinstance(view, Operator):
            its.where = view.where
            view.block, view.desc = its.block, before
        else:
            view.program, view.desc = its.program, before
        if view is not its and its.origin is not None and view.origin is not None:
            its.origin.title = view.origin.title
            if not isinstance(view, Variable):
                view.origin = its.origin


def alike(now: Any, before: Any, pairs: Pairs) -> bool:
    """Whether two values are the same to a cell: plain values, arrays, functions, pieces of programs, containers."""
    left = [_MOST_VALUES]
    seen: set[tuple[int, int]] = set()

    def same(a: Any, b: Any) -> bool:
        left[0] -= 1
        if a is b or (id(a), id(b)) in seen:
            return True
        if left[0] < 0 or type(a) is not type(b):
            return False
        seen.add((id(a), id(b)))
        return _compared(a, b, pairs, same)

    return same(now, before)


def _compared(a: Any, b: Any, pairs: Pairs, same: Callable[[Any, Any], bool]) -> bool:
    if isinstance(a, Variable | Operator | Block):
        return pairs.get(a.desc, a.desc) is b.desc
    if isinstance(a, Program):
        return pairs.get(a) is b
    if isinstance(a, _PLAIN):
        return bool(a == b)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is dict:
        return len(a) == len(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    if type(a) is set:
        return bool(a == b)
    if isinstance(a, FunctionType):
        return _same_function(a, b, same)
    if is_record(a):
        return same(attributes(a), attributes(b))
    if hasattr(a, "dtype") and hasattr(a, "tobytes"):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.dtype != object and a.tobytes() == b.tobytes())
    if type(a).__module__.partition(".")[0] == "fluidnb" and hasattr(a, "__dict__"):
        return same(a.__dict__, b.__dict__)
    return False


def _same_function(a: FunctionType, b: FunctionType, same: Callable[[Any, Any], bool]) -> bool:
    parts = ("__defaults__", "__kwdefaults__", "__dict__")
    cells = [[c.cell_contents for c in f.__closure__ or ()] for f in (a, b)]
    return (
        a.__globals__ is b.__globals__
        and a.__code__ == b.__code__  # with lines, since errors name them
        and all(same(getattr(a, p), getattr(b, p)) for p in parts)
        and same(*cells)
    )


def _pair(now: list[Any] | tuple[Any, ...], before: list[Any] | tuple[Any, ...], pairs: Pairs) -> bool:
    if len(now) != len(before):
        return False
    for new, old in zip(now, before, strict=True):
        if new.pb.SerializePartialToString() != old.pb.SerializePartialToString():
            return False
        pairs[new] = old
    return True


def _pair_blocks(now: BlockDesc, before: BlockDesc, pairs: Pairs) -> bool:
    heads = now.pb.SerializePartialToString() == before.pb.SerializePartialToString()
    pairs[now] = before
    return (
        heads
        and _pair(list(now.vars.values()), list(before.vars.values()), pairs)
        and _pair(now.ops, before.ops, pairs)
    )


def _pair_programs(now: Program, before: Program, pairs: Pairs) -> bool:
    pairs[now] = before
    ours, its = now.desc.blocks, before.desc.blocks
    facts = [name for name in now.FACTS if now.__dict__[name] != before.__dict__[name]]
    if facts or len(ours) != len(its):
        return False
    return all(_pair_blocks(a, b, pairs) for a, b in zip(ours, its, strict=True))


def _pair_additions(before: Addition, now: Addition, pairs: Pairs) -> bool:
    if len(before.growths) != len(now.growths) or len(before.blocks) != len(now.blocks):
        return False
    for mine, its in zip(now.growths, before.growths, strict=True):
        parts = ((mine.front, its.front), (mine.back, its.back), (mine.vars, its.vars))
        if mine.block is not its.block or not all(_pair(a, b, pairs) for a, b in parts):
            return False
    for (block, *around), (old, *old_around) in zip(now.blocks, before.blocks, strict=True):
        if [pairs.get(b, b) for b in around] != old_around or not _pair_blocks(block, old, pairs):
            return False
    views = [(var, facts) for var, _, facts in now.views], [(var, facts) for var, _, facts in before.views]
    return (
        [(part, data) for part, _, data in now.edits] == [(part, data) for part, _, data in before.edits]
        and [var for var, _ in views[0]] == [var for var, _ in views[1]]
        and all(_same_facts(a, b, pairs) for (_, a), (_, b) in zip(*views, strict=True))
        and [(name, fact) for name, _, fact in now.facts] == [(name, fact) for name, _, fact in before.facts]
    )


def _pair_rewrites(before: Rewrite, now: Rewrite, pairs: Pairs) -> bool:
    mine, its = now.after, before.after
    if (mine.head, mine.facts, len(mine.blocks)) != (its.head, its.facts, len(its.blocks)):
        return False
    for new, old in zip(mine.blocks, its.blocks, strict=True):
        mine_parts: list[Desc] = [*new.ops, *new.vars.values()]
        its_parts: list[Desc] = [*old.ops, *old.vars.values()]
        if new.head != old.head or len(new.ops) != len(old.ops) or len(new.vars) != len(old.vars):
            return False
        if new.desc is not old.desc:
            pairs[new.desc] = old.desc
        for a, b in zip(mine_parts, its_parts, strict=True):
            if type(a) is not type(b) or mine.data[a] != its.data[b]:
                return False
            if isinstance(a, VarDesc) and isinstance(b, VarDesc):
                if not _same_facts(mine.views.get(a), its.views.get(b), pairs):
                    return False
            if a is not b:
                pairs[a] = b
    return True


def _same_view(now: Any, before: Any, pairs: Pairs) -> bool:
    """Whether the Python facts and the cell of two pieces are the same."""
    if isinstance(now, Program) or now.view is None or before.view is None:
        return True
    mine, its = now.view.origin, before.view.origin
    if (None if mine is None else mine.key) != (None if its is None else its.key):
        return False
    return not isinstance(now, VarDesc) or _same_facts(view_facts(now), view_facts(before), pairs)


def _same_facts(now: dict[str, Any] | None, before: dict[str, Any] | None, pairs: Pairs) -> bool:
    if now is None or before is None:
        return now is before
    mine = {name: fact for name, fact in now.items() if name not in _FIXED}
    its = {name: fact for name, fact in before.items() if name not in _FIXED}
    return mine.keys() == its.keys() and all(alike(fact, its[name], pairs) for name, fact in mine.items())
