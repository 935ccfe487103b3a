"""The compiled program of the last run: operators, and copies, casts and layout conversions around them."""

from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.runtime.program_state import program_state
from fluidnb.viz.base.device_names import device_name
from fluidnb.viz.base.styled_text import Line


def compiled_lines(program: Program) -> list[Line]:
    """Text rendering of the compiled program of the last run."""
    recent = program_state(program.desc).recent
    if not recent or recent[-1].version != program.desc.version:
        raise NotFound("This program has not run yet, or was changed since.", hint="%fluid run runs it.")
    lowered = recent[-1]
    names = {"fed": lowered.feeds, "fetched": lowered.fetches}
    ends = [f"{word} {', '.join(variables)}" for word, variables in names.items() if variables]
    facts = "; ".join(filter(None, (" on " + str(lowered.place), device_name(lowered.place), *ends)))
    lines: list[Line] = [[("the last run", "name"), (facts, "dim")]]
    changed = 0
    for block in lowered.blocks:
        lines.append([(f"block {block.index}", "bold")])
        for op in block.ops:
            notes = lowered.notes.get((block.index, op.index), [])
            changed += bool(notes)
            flow = f"  {', '.join(op.reads())} -> {', '.join(op.writes())}"
            row: Line = [(f"  {op.index} ", "dim"), (op.desc.optype, ""), (flow, "dim")]
            lines.append(row + [(f"  [{note}]", "warn") for note in notes])
    count = sum(len(block.ops) for block in lowered.blocks)
    summary = f"copies, casts or layout conversions around the kernels of {changed} of {count} operators"
    return [*lines, [(summary if changed else "no copies, casts or layout conversions", "dim")]]
