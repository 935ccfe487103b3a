"""The faces of the lesson about backward: a step in words for terminals; both listings with arrows in HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluidnb.viz.base.html import wrapped_html
from fluidnb.viz.base.styled_text import Line, wrapped
from fluidnb.viz.lessons.backward.model import BackwardLesson, BackwardStep, GradientRow
from fluidnb.viz.lessons.backward.svg import backward_svg
from fluidnb.viz.lessons.common import caption, nearest_step
from fluidnb.viz.program.model import OpRow

#: What each thing is, in words.
WORDS = {
    "forward": "The operators of the program, in the order in which they run. Backward looks at the last one first.",
    "backward": "The operators that backward appends, in the order in which they will run. Their role is Backward.",
    "x@GRAD": "The gradient of x: how the loss changes with each number of x. It has the shape of x.",
    "gradient maker": "Each kind of operator has one: it makes the description of the gradient operator.",
    "sum and @RENAME@": "Where several operators read x, each contributes to its gradient under a name of its own, and "
    "a sum joins them before x@GRAD is read.",
    "no gradient": "Data, whole numbers, what has stop_gradient set or is named in no_grad_set: nothing is computed "
    "for them, and nothing passes through them.",
    "gradient block": "A loop or branch gets a block of gradient operators of its own, which runs as often as it did.",
}

_RUNS = {
    "while": "once for each iteration, the last first",
    "recurrent": "once for each step, the last first",
    "conditional_block": "if the branch was taken",
}


def backward_lesson_lines(lesson: BackwardLesson, steps: Sequence[int] | None = None, width: int = 0) -> list[Line]:
    """The text face.

    Args:
        steps: some steps, from 0; None for all of them.

    Example:
        >>> from fluidnb.viz import plain
        >>> from fluidnb.viz.lessons.backward.model import read_backward_example
        >>> print(plain(backward_lesson_lines(read_backward_example("shared"), [1])[3:7]))
        step 1 of 0 to 11  op 0:9  loss = mean(cost)
          The gradient of loss has arrived: loss@GRAD.
          The gradient maker of mean gives  cost@GRAD = mean_grad(Out@GRAD=loss@GRAD, X=cost)
          + cost@GRAD = mean_grad(Out@GRAD=loss@GRAD, X=cost)
    """
    words = f"  {lesson.words}" if lesson.words else ""
    lines: list[Line] = [[(f"backward of {lesson.title}", "bold"), (f"  from {lesson.loss}.{words}", "dim")]]
    last = len(lesson.steps) - 1
    for i in range(last + 1) if steps is None else [nearest_step(step, last + 1) for step in steps]:
        op = lesson.op(lesson.steps[i].at)
        head: Line = [(f"step {i} of 0 to {last}", "bold")]
        if op is not None:
            head += [(f"  op {op.block}:{op.index}  ", "dim"), *op.pieces]
        lines += [[], head, *([("  ", ""), *line] for line in step_lines(lesson, i))]
        lines += _written(lesson.steps[i], i)
    return wrapped(lines, width)


def backward_lesson_html(lesson: BackwardLesson, step: int = 0) -> str:
    """The HTML face: both listings as they stand at a step, and the step in words."""
    step = nearest_step(step, len(lesson.steps))
    head: list[Line] = [[(f"step {step}", "bold")], *step_lines(lesson, step)]
    words = "".join(caption(term, text) for term, text in WORDS.items())
    about = f'<div style="margin-bottom:4px">{caption(lesson.title, lesson.words)}</div>'
    return (
        f'<div class="fluidnb fluidnb-lesson" style="line-height:1.45">{about}'
        f'<div style="overflow:auto">{backward_svg(lesson, step)}</div>'
        f'<div style="min-height:8.5em">{wrapped_html(head)}</div>'
        f'<details><summary style="cursor:pointer">Legend</summary>{words}</details></div>'
    )


def step_lines(lesson: BackwardLesson, index: int) -> list[Line]:
    """What happens in a step, in sentences."""
    step = lesson.steps[index]
    op = lesson.op(step.at)
    made = [row for row in step.listing if row.made == index]
    if step.kind == "seed":
        return [[(f"Backward begins at {lesson.loss}. Its gradient with respect to itself is 1: ", ""),
                 (f"{made[0].op.type} writes {made[0].op.left}.", "bold")],
                [("Its role is Backward and Loss; that of all the others is Backward.", "dim")]]  # fmt: skip
    if step.kind == "enter":
        return [[(f"Block {step.block} is walked as well, its last operator first. ", ""),
                 ("What is written now becomes a gradient block.", "bold")]]  # fmt: skip
    if step.kind == "end":
        return list(_end(step, made))
    assert op is not None, "all other steps consider an operator"
    if step.kind == "nothing":
        return [_nothing(lesson, step, op), *_unwanted(step)]
    return [*_arrived(step), *_sums(step, made), *_maker(step, op), *_block(step, op, made), *_unwanted(step)]


def _written(step: BackwardStep, index: int) -> Iterator[Line]:
    for row in step.listing:
        if row.made == index:
            yield [("  + ", "dim"), ("  " * row.depth, ""), *row.op.pieces]


def _arrived(step: BackwardStep) -> Iterator[Line]:
    for variable, gradient in step.arrived:
        yield [(f"The gradient of {variable} has arrived: ", ""), (f"{gradient}.", "bold")]


def _maker(step: BackwardStep, op: OpRow) -> Iterator[Line]:
    for i, text in enumerate(step.maker):
        yield [(f"The gradient maker of {op.type} gives  " if i == 0 else "    and  ", ""), (text, "backward")]


def _sums(step: BackwardStep, made: list[GradientRow]) -> Iterator[Line]:
    for row in made:
        if row.kind == "sum":
            total = row.op.left
            yield [(f"Several operators contribute to {total}: ", ""), ("sum joins them before it is read.", "bold")]
        if row.kind == "zeros":
            yield [(f"No gradient came to what {row.op.left} is of, so it is zeros.", "")]
        if row.kind == "copy":
            yield [(f"{row.op.text} keeps a value that the gradient block changes.", "")]
        if row.op.type == "increment":
            yield [(f"{row.op.left} counts, so backward counts it back, as the iterations run backwards.", "")]
    for old, new in step.renamed:
        yield [(f"A contribution called {old} is now  ", ""), (new, "warn")]


def _block(step: BackwardStep, op: OpRow, made: list[GradientRow]) -> Iterator[Line]:
    if step.kind != "block":
        return
    runs = next((row.op for row in made if row.kind == "gradient"), op)
    yield [(f"The gradient block is written. {runs.type} runs it {_RUNS.get(op.type, '')}", ""),
           (f", and gives {runs.left}." if runs.outs else ".", "")]  # fmt: skip
    for variable, copy in step.copies:
        yield [(f"Its operators need {variable} as it was, and it is overwritten: the forward block keeps ", ""),
               (f"{copy}.", "bold")]  # fmt: skip


def _unwanted(step: BackwardStep) -> Iterator[Line]:
    for variable, why in step.unwanted:
        yield [(f"{variable} gets no gradient: {why}.", "dim")]


def _nothing(lesson: BackwardLesson, step: BackwardStep, op: OpRow) -> Line:
    if not step.arrived:
        written = {v.name for v in op.writes}
        read = any(v.name in written for _, other in lesson.forward if other is not op for v in other.reads)
        why = "what reads it passes none on" if read else f"nothing on the way to {lesson.loss} reads it"
        return [(f"No gradient comes to {op.left or op.type}: {why}. ", ""), ("Nothing is written.", "bold")]
    reads = [v.name for v in op.reads]
    why = f"nobody asks for one of {', '.join(reads)}" if reads else f"{op.type} reads nothing that could have one"
    return [(f"The gradient of {step.arrived[0][0]} has arrived, but {why}. ", ""), ("Nothing is written.", "bold")]


def _end(step: BackwardStep, made: list[GradientRow]) -> Iterator[Line]:
    for row in made:
        yield [(f"{row.op.text} puts back what the gradient blocks have changed.", "")]
    yield [
        ("Everything is written. append_backward gives the parameters and their gradients to the optimizer:", "bold")
    ]
    for parameter, gradient in step.pairs:
        yield [
            (parameter, "name"),
            (f" with {gradient}", ""),
            ("  in op_role_var of the operator that completes it", "dim"),
        ]
    if not step.pairs:
        yield [("no parameter with a gradient: the loss depends on none", "warn")]
