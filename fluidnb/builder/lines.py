"""Text rendering of a draft: the line, its results, its errors."""

import textwrap

from fluidnb.builder.draft import Draft
from fluidnb.builder.recipes import Recipe
from fluidnb.builder.rehearsal import Rehearsal
from fluidnb.viz.base.styled_text import Line, columns, plural


def draft_lines(draft: Draft, rehearsal: Rehearsal | None) -> list[Line]:
    """A draft and the results of its trial run; its errors while it cannot be tried (None).

    Example:
        >>> from fluidnb.builder import find_recipe, rehearse
        >>> from fluidnb.viz import plain
        >>> names = {"layers": fluid.layers, "x": fluid.layers.data("x", [4])}
        >>> draft = Draft(find_recipe("fc"), {"input": "x", "size": "10"}, "h", names)
        >>> print(plain(draft_lines(draft, rehearse(draft.source(), draft.targets, names))))
        h = layers.fc(x, 10)
          h (fc_0.tmp_1)  float32[-1, 10]
          2 parameters: fc_0.w_0 [4, 10], fc_0.b_0 [10]
          2 ops: mul, elementwise_add
    """
    if rehearsal is None:
        return [[("  " * (i > 0) + row, "warn")] for e in draft.problems.values() for i, row in enumerate(_rows(e))]
    lines: list[Line] = [[(row, "bold")] for row in draft.source().splitlines()]
    return lines + [[("  ", ""), *line] for line in rehearsal_lines(rehearsal)]


def rehearsal_lines(rehearsal: Rehearsal) -> list[Line]:
    """The results, parameters and operators of a trial run, or its error."""
    if rehearsal.problem is not None:
        return [[(row, "warn")] for row in _rows(rehearsal.problem)]
    lines: list[Line] = [
        [(name if name == row.name else f"{name} ({row.name})", "name"), (f"  {row.facts}", "")]
        for name, row in rehearsal.results
    ]
    new = rehearsal.parameters
    if new:
        shown = ", ".join(f"{p.name} {list(p.shape or ())}" for p in new[:6]) + (", …" if len(new) > 6 else "")
        lines.append([(f"{plural(len(new), 'parameter')}: {shown}", "")])
    count = sum(rehearsal.ops.values())
    words: Line = [(f"{plural(count, 'op')}: ", "dim")]
    if set(rehearsal.ops) <= {"forward"}:
        words.append((", ".join(rehearsal.types), "forward"))
    else:
        for role, number in rehearsal.ops.items():
            words += [(", ", "dim")] * (len(words) > 1) + [(f"{number} {role}", role)]
    return [*lines, words] if count else lines


def recipe_lines(recipe: Recipe, width: int = 0) -> list[Line]:
    """A recipe's summary and arguments; ``width``: characters of a line, 0 for any number."""
    rows: list[list[Line]] = []
    for argument in recipe.arguments:
        kind = argument.kind + ("" if argument.required else f" = {argument.default!r}")
        rows.append([[(f"  {argument.name}", "name")], [(kind, "dim")], [(argument.doc, "")]])
    head = textwrap.wrap(recipe.summary, width or 100)
    return [[(recipe.name, "name"), ("  " + head[0], "")], *[[(row, "")] for row in head[1:]], *columns(rows, width)]


def _rows(error: Exception) -> list[str]:
    return (str(error) or type(error).__name__).splitlines()
