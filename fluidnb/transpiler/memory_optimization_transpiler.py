"""memory_optimize and release_memory: variables go as soon as nothing reads them any more."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fluidnb.arguments import checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import NotFound, OpTypeError, OpValueError, near, typed
from fluidnb.memory import size_text
from fluidnb.passes.lifetimes import ROWS, Life, lives, size_of
from fluidnb.passes.memory_reuse import Cell, cells
from fluidnb.passes.uses import Uses
from fluidnb.program import Program, Variable, origin
from fluidnb.program.constants import grad_var_name
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values import strict_feeds as declared
from fluidnb.values.dtypes import VarType


@dataclass(slots=True)
class Line:
    """One operator of a block."""

    op: str  # its type
    before: int  # bytes of the block's variables while it runs, as it was
    after: int  # the same, as it is now
    notes: list[str] = field(default_factory=list)  # what happens there

    def __str__(self) -> str:
        sizes = f"{size_text(self.before):>11}{size_text(self.after):>11}"
        return f"{self.op:<26}{sizes}   {'; '.join(self.notes)}".rstrip()


@dataclass(slots=True)
class Report:
    """The memory of one block at each operator."""

    block: int  # its index
    lines: list[Line]  # its operators

    def __str__(self) -> str:
        before, after = (size_text(max(sizes, default=0)) for sizes in (self.before, self.after))
        head = f"block {self.block}, variables that do not outlive a run, {ROWS} rows to a batch: "
        rows = [f"{i:6} {line}" for i, line in enumerate(self.lines)]
        return "\n".join([f"{head}at most {before} before, {after} after", *rows])

    @property
    def before(self) -> list[int]:
        """Bytes at each operator, as the block was."""
        return [line.before for line in self.lines]

    @property
    def after(self) -> list[int]:
        """Bytes at each operator, as it is now."""
        return [line.after for line in self.lines]


Names = Iterable["Variable | str"]


@checked
def memory_optimize(
    input_program: Program, skip_opt_set: Names | Variable | str | bool | None = None, print_log: bool = False,
    level: int = 0, skip_grads: bool = True,
) -> None:  # fmt: skip
    """Rewrite a program so that it needs less memory: variables share memory, and go after their last use.

    Where one variable's life is over before another's begins, the second takes the name of the first; ``delete_var``
    operators drop what nothing reads any more. It is done in every block. What no operator reads is a result and
    stays, as do parameters and data. A fetch of a variable that is gone raises an error; name it in ``skip_opt_set``.
    While Paddle's names are installed, the program stays as it is: old scripts fetch variables that they do not name
    here, and runs share memory by lifetime anyway.

    Args:
        input_program: the program, complete with backward and optimizer; it is changed.
        skip_opt_set: variables or names that have to stay, because they will be fetched for example; a bool is
            version 0.12's ``print_log``, which came here, before ``level``.
        print_log: whether to print what was done, and the memory in use at each operator before and after.
        level: 0 shares memory among variables of the same shape, 1 also with smaller ones.
        skip_grads: whether the gradients of parameters have to stay, for a fetch of ``w@GRAD``.

    Raises:
        NotFound: the program has no variable of a name in ``skip_opt_set``. Nothing has changed then.

    Example:
        >>> x = fluid.layers.data("x", shape=[4]); h = fluid.layers.relu(x)
        >>> loss = fluid.layers.mean(fluid.layers.tanh(h))
        >>> memory_optimize(fluid.default_main_program(), skip_opt_set=[h], print_log=True)
        block 0, variables that do not outlive a run, 64 rows to a batch: at most 3.0 KB before, 3.0 KB after
             0 relu                           2.0 KB     2.0 KB
             1 tanh                           3.0 KB     3.0 KB
             2 mean                           3.0 KB     3.0 KB   tanh_0.tmp_0 is dropped
    """
    skip: Names | None = None if isinstance(skip_opt_set, bool) else skip_opt_set
    if isinstance(skip_opt_set, bool):
        print_log, level = skip_opt_set, level or int(print_log)
    if level not in (0, 1):
        raise OpValueError(
            "only support opt_level 0 or 1.", received=level,
            expected="0: memory for variables of the same shape, 1: for all that fit", hint="left out, it is 0.",
        )  # fmt: skip
    if not declared.binding:
        return
    reports = _rewrite(input_program, skip, level, skip_grads)
    if print_log:
        print(*reports, sep="\n")


@checked
def release_memory(input_program: Program, skip_opt_set: Names | Variable | str | None = None) -> None:
    """Insert ``delete_var`` operators that drop variables after their last use; names stay.

    The arguments are those of `memory_optimize`.

    Raises:
        NotFound: the program has no variable of a name in ``skip_opt_set``. Nothing has changed then.

    Example:
        >>> x = fluid.layers.data("x", shape=[4]); h = fluid.layers.relu(x); y = fluid.layers.tanh(h)
        >>> release_memory(fluid.default_main_program())
        >>> op = fluid.default_main_program().global_block().ops[-1]; op.type, op.input("X") == [h.name]
        ('delete_var', True)
    """
    _rewrite(input_program, skip_opt_set, None, False)


def _rewrite(program: Program, skip_opt_set: Names | None, level: int | None, skip_grads: bool) -> list[Report]:
    """Do it in all blocks that operators run; ``level`` None shares nothing."""
    skip = _names(program, skip_opt_set)
    if skip_grads:
        skip |= {grad_var_name(v.name()) for b in program.desc.blocks for v in b.vars.values() if v.persistable()}
    origin.saw_list(program)
    origin.writing(program)
    uses = Uses(program.desc)
    run = {0} | {i for block in program.desc.blocks for op in block.ops for i in own_blocks(op)}
    reports = []
    with all_or_nothing(program):
        for index in sorted(run):
            reports.append(_rewrite_block(program, program.desc.blocks[index], uses, skip, level))
    return reports


def _rewrite_block(program: Program, block: BlockDesc, uses: Uses, skip: set[str], level: int | None) -> Report:
    ops = list(block.ops)
    lifetimes = lives(block, uses, skip)
    before, after = _load(block, uses, []), _load(block, uses, lifetimes)
    shared = [Cell([life]) for life in lifetimes] if level is None else cells(block, uses, lifetimes, after, level)
    lines = [Line(op.optype, b, a) for op, b, a in zip(ops, before, after, strict=True)]
    gone: dict[int, list[str]] = defaultdict(list)
    for cell in shared:
        first = cell.lives[0].name
        for life in cell.lives[1:]:
            for op in ops[life.first : life.last + 1]:
                op.rename(life.name, first)
            lines[life.first].notes.append(f"{life.name} takes the memory of {first}")
        gone[cell.last] += cell.names
        lines[cell.last].notes.append(f"{', '.join(cell.names)} {'is' if len(cell.names) == 1 else 'are'} dropped")
    for place in sorted(gone, reverse=True):
        drop = OpDesc("delete_var", {"X": gone[place]})
        for name in ("op_role", "op_namescope"):
            if ops[place].has_attr(name):
                drop.set_attr(name, ops[place].attr(name), ops[place].attr_type(name))
        program.block(block.idx).put_desc(drop, place + 1)
    return Report(block.idx, lines)


def _load(block: BlockDesc, uses: Uses, lifetimes: list[Life]) -> list[int]:
    """Bytes of the block's variables at each operator, when some go after their last use and the others stay."""
    begins: dict[str, int] = {}
    for i, (reads, writes) in enumerate(zip(uses.reads[block.idx], uses.writes[block.idx], strict=True)):
        for name in reads | writes:
            begins.setdefault(name, i)
    change = [0] * (len(block.ops) + 1)
    for name, i in begins.items():
        var = block.vars[name]
        if not var.persistable() and var.type() == VarType.LOD_TENSOR:
            change[0 if var.is_data() else i] += size_of(var)
    for life in lifetimes:
        change[life.last + 1] -= life.size
    load, now = [], 0
    for step in change[:-1]:
        now += step
        load.append(now)
    return load


def _names(program: Program, given: Any) -> set[str]:
    names = set()
    one = isinstance(given, str | Variable) or not isinstance(given, Iterable) and given
    for each in [given] if one else given or ():
        name = each.name if isinstance(each, Variable) else each
        if not isinstance(name, str):
            raise OpTypeError(
                "skip_opt_set has variables and names.", expected="Variables or names",
                received=typed(each), hint="for example skip_opt_set=[loss].",
            )  # fmt: skip
        known = [n for block in program.desc.blocks for n in block.vars]
        if name not in known:
            raise NotFound(
                f'The program has no variable "{name}" to keep.', expected="a variable of the program", received=name,
                hint=near(name, known) or "program.list_vars() has them all.",
            )  # fmt: skip
        names.add(name)
    return names
