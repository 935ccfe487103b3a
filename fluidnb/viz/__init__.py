"""Pictures of programs, values, memory and sessions: a plain model, then text, SVG and HTML renderings.

Example:
    >>> from fluidnb.viz import plain, program_lines, read_program
    >>> print(plain(program_lines(read_program(fluid.Program()))))
    program  1 block
"""

from importlib import import_module
from typing import Any

#: Module -> the names that it gives to the package. It is imported when one of them is first used: any part of the
#: package imports this file, and all of them are 70 modules.
_NAMES = {
    "base.curves": "Curve bars sparkline",
    "base.curves_svg": "curves_svg",
    "base.display_object": "Picture",
    "base.html": "boxed lines_html",
    "base.styled_text": "ansi plain rich_text",
    "memory.growth": "Growth growth_html growth_lines",
    "memory.reader": "read_memory",
    "memory.svg": "arena_svg memory_html",
    "memory.text": "memory_lines",
    "notebook_reprs": "repr_html",
    "program.block_tree": "BlockLine read_tree tree_lines",
    "program.filter": "select",
    "program.graph_level": "level part",
    "program.graph_text": "graph_lines",
    "program.graphviz": "dot_svg dot_text",
    "program.html": "graph_html program_html",
    "program.model": "BlockRow OpRow ProgramPicture SlotRow VarRow",
    "program.op_type": "OpSheet read_op",
    "program.op_type_text": "card_lines list_lines sheet_lines",
    "program.reader": "read_block read_program",
    "program.svg": "program_svg",
    "program.text": "program_lines",
    "program.uses": "Uses uses_lines uses_of",
    "time.gradients": "Gradients gradient_lines",
    "time.gradients_svg": "gradients_html gradients_svg",
    "time.scaling": "scaling_picture scaling_svg",
    "time.timeline": "read_timeline timeline_lines",
    "time.timeline_svg": "timeline_html timeline_svg",
    "values.html": "scope_html tensor_html",
    "values.model": "ScopeRow ScopeVariable TensorSummary",
    "values.preview": "Preview read_preview",
    "values.reader": "read_scope read_tensor",
    "values.text": "scope_lines tensor_lines",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fluidnb.viz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"fluidnb.viz.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
