"""Putting gradient operators and their variables into a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fluidnb.arguments import checked
from fluidnb.backward.path import is_array
from fluidnb.backward.walk import Walk
from fluidnb.op import EMPTY, GRAD
from fluidnb.program import Block, Program, layer_calls, unique_name
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import VarType

#: ``callback(block, context)`` is called after each gradient operator; ``context``: name of a gradient -> its variable,
#: without the contributions from which a gradient is summed.
Callback = Callable[[Block, Mapping[str, str]], object]


#: The programs that a call around restores when it fails.
_protected: set[Program] = set()


@checked
@contextmanager
def all_or_nothing(*programs: Program) -> Iterator[None]:
    """Restore programs and the counters of names when the body raises.

    Inside another one for the same programs, what the body has made is removed.
    """
    if all(program in _protected for program in programs):  # copies of large programs are most of the time
        with layer_calls.all_or_nothing():
            yield
        return
    around = _protected.copy()
    before = [(p, p.snapshot()) for p in programs]
    counters, counts = unique_name.generator.ids, dict(unique_name.generator.ids)
    _protected.update(programs)
    try:
        yield
    except BaseException:
        for program, snapshot in before:
            program.restore(snapshot)
        counters.clear()
        counters.update(counts)
        raise
    finally:
        _protected.intersection_update(around)


def free_name(block: BlockDesc) -> Callable[[str], str]:
    """A function that gives a wished name, or it with a number where a block has it; each name is given once."""
    taken: set[str] = set()

    def free(name: str) -> str:
        wish = name
        while name in taken or block.has_var_recursive(name):
            name = unique_name.generate(wish)
        taken.add(name)
        return name

    return free


def emit(block: Block, walk: Walk, callbacks: Sequence[Callback]) -> None:
    """Append the gradient operators of a walk, each gradient block before the operator that runs it."""
    variable_of = {**walk.part_of, **walk.variable_of}
    with block.program.role_guard(OpRole.Backward):
        for desc in walk.ops:
            inner = walk.inner.get(id(desc))
            if inner is not None:
                _emit_block(block, desc, inner, callbacks)
            for name in desc.output_arg_names():
                if name in variable_of and name not in walk.outer and not block.desc.has_var(name):
                    _declare(block, name, variable_of[name])
            operator = block.put_desc(desc, strict=False)
            forward = walk.repeated.get(id(desc))
            if forward is not None:
                operator.where = None if forward.view is None else forward.view.where
                continue
            for callback in callbacks:
                callback(block, walk.variable_of)


def _emit_block(block: Block, desc: OpDesc, inner: Walk, callbacks: Sequence[Callback]) -> None:
    for name in desc.output_arg_names() + desc.input_arg_names():  # the block reads and writes some of these itself
        variable = name.partition(GRAD)[0]
        if name != EMPTY and name != variable and not block.desc.has_var_recursive(name):
            _declare(block, name, variable)
    _emit_copies(block.program.block(inner.block.idx), inner)
    gradient = block.program.create_block(block.idx)
    try:
        gradient.set_forward_block_idx(inner.block.idx)
        # Paddle wants the gradients of arrays declared inside too; they are the outer ones all the same
        arrays = {name for name in inner.outer if is_array(block.desc, name.partition(GRAD)[0])}
        for name in sorted(inner.given | arrays):
            _declare(gradient, name, name.partition(GRAD)[0])
        emit(gradient, inner, callbacks)
        desc.set_attr("sub_block", gradient.desc)
    finally:
        block.program.rollback()


def _emit_copies(forward: Block, walk: Walk) -> None:
    """Append to a forward block the copies that its gradient block reads."""
    with forward.program.role_guard(OpRole.Forward):
        for (variable, _), copy in walk.copies.made.items():
            _declare(forward, copy.name, variable)
            desc = OpDesc("assign", {"X": [variable]}, {"Out": [copy.name]})
            place = next(i for i, op in enumerate(forward.desc.ops) if op is copy.beside)
            view = copy.beside.view
            forward.put_desc(desc, place + copy.after).where = None if view is None else view.where


def _declare(block: Block, name: str, variable: str) -> None:
    """Declare a gradient like its variable."""
    like = block.desc.find_var_recursive(variable)
    assert like is not None
    kind = like.type()
    if kind == VarType.LOD_TENSOR:
        block._like(name, like)
        return
    lod_level = None if kind == VarType.SELECTED_ROWS else like.lod_level()
    block._declared(name, kind, like.shape(), like.dtype(), lod_level, False)
