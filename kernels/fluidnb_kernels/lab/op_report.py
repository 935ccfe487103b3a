"""The report of a written operator, as lines of text."""

from fluidnb.op import get_op
from fluidnb.viz.base.styled_text import Line, columns
from fluidnb_kernels.lab.new_op import OpTrial
from fluidnb_kernels.lab.report import shapes_of, spilled


def op_lines(trial: OpTrial) -> list[Line]:
    """The report of a written operator."""
    definition = get_op(trial.op)
    attrs = "".join(f", {name}" for name in definition.attrs)
    signature = f"  {', '.join(definition.inputs)}{attrs} -> {', '.join(definition.outputs)}"
    lines: list[Line] = [[(trial.op, "name"), (signature, ""), ("   registered", "dim")]]
    rows: list[list[Line]] = []

    def say(title: str, text: str, style: str = "") -> None:
        rows.append([[("  " + title, "dim")], [(text, style)]])

    for fault in trial.faults:
        say("WRONG", fault, "warn")
    if not trial.faults:
        say("proto", "complete: each slot and attribute has its phrase")
        say("results", f"shapes as inferred, all written, the same in both executors: {shapes_of(trial.tried)}")
    say("gradient", str(trial.slopes))
    for name, (made, ran_on, far) in trial.on_cuda.items():
        figures = f": {made.registers} registers, {spilled(made.spilled)}" if made.registers else ""
        say("cuda", f"{name}, compiled by {made.compiler}{figures}")
        say("", f"ran on {ran_on}; the largest distance from numpy is {far:.1e}")
    others = [name for name in trial.defined if name != trial.op]
    if others:
        say("with", ", ".join(others))
    say(
        "use",
        f"{trial.op}({', '.join(definition.inputs)}{attrs}), append_op; %fluid kernels drop {trial.op} takes it back",
    )
    return lines + columns(rows)
