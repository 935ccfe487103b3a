"""The compiled program of the last run: operators, and copies, casts and layout conversions around them."""

from __future__ import annotations

from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.viz.base.device_names import device_name
from fluidnb.viz.base.styled_text import Line


def last_plan(program: Program) -> LoweredProgram:
    """The compiled program of the last run.

    Raises:
        NotFound: it has not run since it was last changed.
    """
    recent = program_state(program.desc).recent
    if not recent or recent[-1].version != program.desc.version:
        raise NotFound("This program has not run yet, or was changed since.", hint="%fluid run runs it.")
    return recent[-1]


def plan_lines(program: Program) -> list[Line]:
    """Text rendering of the compiled program of the last run.

    Raises:
        NotFound: it has not run since it was last changed.

    Example:
        >>> from fluidnb.viz.base.styled_text import plain
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     y = fluid.layers.relu(fluid.layers.data("x", shape=[2]))
        >>> got = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])
        >>> print(plain(plan_lines(main)))
        the last run on CPUPlace; fed x; fetched relu_0.tmp_0
        block 0
          0 relu  x -> relu_0.tmp_0
        no copies, casts or layout conversions
    """
    plan = last_plan(program)
    ends = [f"{word} {', '.join(names)}" for word, names in (("fed", plan.feeds), ("fetched", plan.fetches)) if names]
    facts = "; ".join(filter(None, (" on " + str(plan.place), device_name(plan.place), *ends)))
    lines: list[Line] = [[("the last run", "name"), (facts, "dim")]]
    changed = 0
    for block in plan.blocks:
        lines.append([(f"block {block.index}", "bold")])
        for op in block.ops:
            notes = plan.notes.get((block.index, op.index), [])
            changed += bool(notes)
            lines.append(_row(op, notes))
    count = sum(len(block.ops) for block in plan.blocks)
    summary = f"copies, casts or layout conversions around the kernels of {changed} of {count} operators"
    return [*lines, [(summary if changed else "no copies, casts or layout conversions", "dim")]]


def _row(op: LoweredOp, notes: list[str]) -> Line:
    row: Line = [(f"  {op.index} ", "dim"), (op.desc.optype, "")]
    row += [(f"  {', '.join(op.reads())} -> {', '.join(op.writes())}", "dim")]
    return row + [(f"  [{note}]", "warn") for note in notes]
