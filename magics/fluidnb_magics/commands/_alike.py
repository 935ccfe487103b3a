"""Similar commands, distinguished in the help of each."""

#: Groups of commands: word -> what distinguishes it from the others of the group.
_GROUPS: tuple[dict[str, str], ...] = (
    {
        "show": "all operators, as a listing in the cell's output",
        "explore": "all operators, in a widget with search that follows the program",
        "tree": "the blocks alone, with the number of their operators",
        "graph": "operators and the variables that flow between them, as a drawing",
        "uses": "one variable: the operators that write or read it",
    },
    {
        "uses": "in the program: all operators that write or read a variable",
        "history": "in the run of the debug session: the steps so far that wrote or read it",
        "who": "in the run of the debug session: goes back to the step that wrote it last",
    },
    {
        "set": "a flag, or a value in the global scope, between runs",
        "edit": "a variable of the debug session; stepping back undoes it",
        "change": "attributes of an operator in the debug session; stepping back undoes it",
    },
    {
        "drop": "removes the named cells from the program",
        "reset": "removes all cells, or with --params the trained values",
        "undo": "undoes the last change of cells, also a drop or a reset",
        "clear": "removes breakpoints of the debug session; the program stays",
    },
    {
        "ops": "documents operators: slots, attributes, gradient",
        "kernels": "lists their kernels by place, and those that cells define",
    },
    {
        "panel": "the debug session beside the notebook, with its kernel",
        "share": "the recorded steps of the session in a file, for readers without a kernel",
    },
    {
        "nan": "finds the operator in one run; on checks all later runs",
        "debug": "begins a session that steps; its break nan stops there, too",
    },
)


def beside(word: str) -> str:
    """The lines of a command's help that distinguish it from similar ones; empty where there are none."""
    groups = [group for group in _GROUPS if word in group]
    blocks = []
    for group in groups:
        wide = max(map(len, group))
        rows = (f"  {'>' if each == word else ' '} {each:<{wide}}  {text}" for each, text in group.items())
        blocks.append("\n".join(rows))
    return "\n\n".join(["similar commands:", *blocks]) if blocks else ""
