"""``%fluid build``: the widget that writes a line of a program."""

from fluidnb.builder import find_recipe, recipe_lines
from fluidnb_magics.commands._command import Section, Workbench, command, show, show_widget, width
from fluidnb_magics.commands._offers import builder_words


@command(Section.BUILD, "build fc", builder_words, raw=True)
def build(bench: Workbench, line: str) -> None:
    """::

      %fluid build [NAME]

    Choose a layer, its inputs and attributes, and insert the line into a cell.

    NAME is the layer, optimizer or operator to start with. The shapes of the results are shown meanwhile. The builder
    needs Jupyter; ``%fluid add`` does the same in a terminal.
    """
    name = line.strip()
    recipe = find_recipe(name) if name else None
    if getattr(bench.shell, "kernel", None) is None:
        if recipe is None:
            hint = "The builder needs Jupyter. In a terminal use: "
            show(bench.shell, [[(hint, ""), ("%fluid add fc x size=10", "name")]])
        else:
            show(bench.shell, recipe_lines(recipe, width(bench.shell)))
        return
    from fluidnb_magics.widgets.builder import Builder

    show_widget(bench.shell, Builder(bench, name))
