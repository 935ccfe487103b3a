"""Text and HTML renderings of the lesson on backward."""

from collections.abc import Iterator, Sequence

from fluidnb.viz.base.html import wrapped_html
from fluidnb.viz.base.styled_text import Line, wrapped
from fluidnb.viz.lessons.backward.model import BackwardLesson, BackwardStep, GradientRow
from fluidnb.viz.lessons.backward.svg import backward_svg
from fluidnb.viz.lessons.common import caption, legend, nearest_step
from fluidnb.viz.program.model import OpRow

#: Term -> explanation, for the legend.
WORDS = {
    "forward": "The operators of the program, in the order in which they run. Backward visits the last one first.",
    "backward": "The operators that backward appends, in the order in which they will run. Their role is Backward.",
    "x@GRAD": "The gradient of x: the derivative of the loss by each element of x. It has the shape of x.",
    "gradient maker": "Each operator type has one: it creates the description of the gradient operator.",
    "sum and @RENAME@": "Where several operators read x, each contributes to its gradient under a separate name, and "
    "a sum adds them before x@GRAD is read.",
    "no gradient": "Data, integers, and variables with stop_gradient or in no_grad_set: no gradient is computed "
    "for them or propagated through them.",
    "gradient block": "A loop or branch gets a separate block of gradient operators, which runs as often.",
}

_RUNS = {
    "while": "once for each iteration, in reverse order",
    "recurrent": "once for each step, in reverse order",
    "conditional_block": "if the branch was taken",
}


def backward_lesson_lines(lesson: BackwardLesson, steps: Sequence[int] | None = None, width: int = 0) -> list[Line]:
    """Text rendering of some steps, from 0; None for all of them."""
    words = f"  {lesson.words}" if lesson.words else ""
    lines: list[Line] = [[(f"backward of {lesson.title}", "bold"), (f"  from {lesson.loss}.{words}", "dim")]]
    last = len(lesson.steps) - 1
    for i in range(last + 1) if steps is None else [nearest_step(step, last + 1) for step in steps]:
        op = lesson.op(lesson.steps[i].at)
        head: Line = [(f"step {i} of 0 to {last}", "bold")]
        if op is not None:
            head += [(f"  op {op.block}:{op.index}  ", "dim"), *op.pieces]
        lines += [[], head, *([("  ", ""), *line] for line in step_lines(lesson, i))]
        written = (row for row in lesson.steps[i].listing if row.written == i)
        lines += [[("  + ", "dim"), ("  " * row.depth, ""), *row.op.pieces] for row in written]
    return wrapped(lines, width)


def backward_lesson_html(lesson: BackwardLesson, step: int = 0) -> str:
    """HTML rendering: both listings at a step, and the step in words."""
    step = nearest_step(step, len(lesson.steps))
    head: list[Line] = [[(f"step {step}", "bold")], *step_lines(lesson, step)]
    about = f'<div style="margin-bottom:4px">{caption(lesson.title, lesson.words)}</div>'
    return (
        f'<div class="fluidnb fluidnb-lesson" style="line-height:1.45">{about}'
        f'<div style="overflow:auto">{backward_svg(lesson, step)}</div>'
        f'<div style="min-height:8.5em">{wrapped_html(head)}</div>'
        f"{legend(WORDS)}</div>"
    )


def step_lines(lesson: BackwardLesson, index: int) -> list[Line]:
    """A step in sentences."""
    step = lesson.steps[index]
    op = lesson.op(step.at)
    written = [row for row in step.listing if row.written == index]
    if step.kind == "seed":
        return [[(f"Backward begins at {lesson.loss}. Its gradient with respect to itself is 1: ", ""),
                 (f"{written[0].op.type} writes {written[0].op.left}.", "bold")],
                [("Its role is Backward and Loss; that of all the others is Backward.", "dim")]]  # fmt: skip
    if step.kind == "enter":
        return [[(f"Block {step.block} is processed too, its last operator first. ", ""),
                 ("The new operators become a gradient block.", "bold")]]  # fmt: skip
    if step.kind == "end":
        return list(_end(step, written))
    assert op is not None, "all other steps consider an operator"
    lines = [_nothing(lesson, step, op)] if step.kind == "nothing" else list(_gradient(step, op, written))
    return lines + [[(f"{variable} gets no gradient: {why}.", "dim")] for variable, why in step.unwanted]


def _gradient(step: BackwardStep, op: OpRow, written: list[GradientRow]) -> Iterator[Line]:
    """The step in which the gradient operators of an operator are written."""
    for variable, gradient in step.arrived:
        yield [(f"The gradient of {variable} is available: ", ""), (f"{gradient}.", "bold")]
    for row in written:
        if row.kind == "sum":
            total = row.op.left
            yield [(f"Several operators contribute to {total}: ", ""), ("sum adds them before it is read.", "bold")]
        if row.kind == "zeros":
            yield [(f"{row.op.left} has no contribution, so it is zeros.", "")]
        if row.kind == "copy":
            yield [(f"{row.op.text} saves a value that the gradient block changes.", "")]
        if row.op.type == "increment":
            yield [(f"{row.op.left} is a counter, so backward decrements it, as the iterations run in reverse.", "")]
    for old, new in step.renamed:
        yield [(f"The contribution {old} is renamed to  ", ""), (new, "warn")]
    for i, text in enumerate(step.maker):
        yield [(f"The gradient maker of {op.type} creates  " if i == 0 else "    and  ", ""), (text, "backward")]
    if step.kind != "block":
        return
    runs = next((row.op for row in written if row.kind == "gradient"), op)
    yield [(f"The gradient block is written. {runs.type} runs it {_RUNS.get(op.type, '')}", ""),
           (f", and writes {runs.left}." if runs.outs else ".", "")]  # fmt: skip
    for variable, copy in step.copies:
        yield [(f"Its operators need the value of {variable}, which is overwritten: the forward block saves ", ""),
               (f"{copy}.", "bold")]  # fmt: skip


def _nothing(lesson: BackwardLesson, step: BackwardStep, op: OpRow) -> Line:
    if not step.arrived:
        written = {v.name for v in op.writes}
        read = any(v.name in written for _, other in lesson.forward if other is not op for v in other.reads)
        why = "its consumers propagate none" if read else f"no operator on the path to {lesson.loss} reads it"
        return [(f"No gradient reaches {op.left or op.type}: {why}. ", ""), ("Nothing is written.", "bold")]
    reads = [v.name for v in op.reads]
    why = f"none is needed for {', '.join(reads)}" if reads else f"{op.type} has no input that could have one"
    return [(f"The gradient of {step.arrived[0][0]} is available, but {why}. ", ""), ("Nothing is written.", "bold")]


def _end(step: BackwardStep, written: list[GradientRow]) -> Iterator[Line]:
    for row in written:
        yield [(f"{row.op.text} restores what the gradient blocks have changed.", "")]
    yield [("All operators are written. append_backward returns parameters and gradients to the optimizer:", "bold")]
    for parameter, gradient in step.pairs:
        where = "  in op_role_var of the operator that completes it"
        yield [(parameter, "name"), (f" with {gradient}", ""), (where, "dim")]
    if not step.pairs:
        yield [("no parameter has a gradient: the loss depends on none", "warn")]
