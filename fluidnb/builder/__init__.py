"""Builder of program lines: recipes, drafts and trial runs, for ``%fluid build`` and ``%fluid add``.

>>> from fluidnb.builder import Draft, find_recipe, rehearse
>>> x = fluid.layers.data("x", [4])
>>> names = {"x": x, "layers": fluid.layers}
>>> draft = Draft(find_recipe("fc"), {"input": "x", "size": "3"}, "h", names)
>>> [(p.name, p.shape) for p in rehearse(draft.source(), draft.targets, names).parameters]
[('fc_0.w_0', (4, 3)), ('fc_0.b_0', (3,))]
"""

from fluidnb.builder.arguments import Argument
from fluidnb.builder.draft import Draft, suggestion
from fluidnb.builder.lines import draft_lines, recipe_lines, rehearsal_lines
from fluidnb.builder.reach import Candidate, in_reach, ordered
from fluidnb.builder.recipes import GROUPS, Recipe, find_recipe, recipes, search
from fluidnb.builder.rehearsal import Rehearsal, rehearse

__all__ = [
    "GROUPS", "Argument", "Candidate", "Draft", "Recipe", "Rehearsal", "draft_lines", "find_recipe", "in_reach",
    "ordered", "recipe_lines", "recipes", "rehearsal_lines", "rehearse", "search", "suggestion",
]  # fmt: skip
