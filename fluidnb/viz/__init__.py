"""Pictures of programs, scopes and values: plain data first, then a text face and an SVG or HTML face over it.

Example:
    >>> from fluidnb.viz import plain, program_lines, read_program
    >>> print(plain(program_lines(read_program(fluid.Program()))))
    program  1 block
"""

from fluidnb.viz.curves import Curve, bars
from fluidnb.viz.curves_svg import curves_svg
from fluidnb.viz.dot import dot_svg, dot_text
from fluidnb.viz.gradients import Gradients, gradient_lines
from fluidnb.viz.gradients_svg import gradients_html, gradients_svg
from fluidnb.viz.graph_text import graph_lines
from fluidnb.viz.growth import Growth, growth_html, growth_lines
from fluidnb.viz.html import boxed, graph_html, lines_html, program_html
from fluidnb.viz.level import level, part
from fluidnb.viz.memory_reader import read_memory
from fluidnb.viz.memory_svg import arena_svg
from fluidnb.viz.memory_view import memory_html, memory_lines
from fluidnb.viz.model import BlockRow, Held, OpRow, ProgramPicture, ScopeRow, SlotRow, TensorSummary, VarRow
from fluidnb.viz.op_card import card_lines
from fluidnb.viz.op_sheet import OpSheet, read_op
from fluidnb.viz.op_text import list_lines, sheet_lines
from fluidnb.viz.picture import Picture
from fluidnb.viz.preview import Preview, read_preview
from fluidnb.viz.program_reader import read_block, read_program
from fluidnb.viz.reprs import install, repr_html
from fluidnb.viz.scope_html import scope_html, tensor_html
from fluidnb.viz.select import select
from fluidnb.viz.spans import ansi, plain, rich_text
from fluidnb.viz.svg import program_svg
from fluidnb.viz.text import program_lines, scope_lines, tensor_lines
from fluidnb.viz.timeline import read_timeline, timeline_lines
from fluidnb.viz.timeline_svg import timeline_html, timeline_svg
from fluidnb.viz.tree import BlockLine, read_tree, tree_lines
from fluidnb.viz.uses import Uses, uses_lines, uses_of
from fluidnb.viz.values_reader import read_scope, read_tensor, sparkline

__all__ = [
    "BlockLine",
    "BlockRow",
    "Curve",
    "Gradients",
    "Growth",
    "Held",
    "OpRow",
    "OpSheet",
    "Picture",
    "Preview",
    "ProgramPicture",
    "ScopeRow",
    "SlotRow",
    "TensorSummary",
    "Uses",
    "VarRow",
    "ansi",
    "arena_svg",
    "bars",
    "boxed",
    "card_lines",
    "curves_svg",
    "dot_svg",
    "dot_text",
    "gradient_lines",
    "gradients_html",
    "gradients_svg",
    "graph_html",
    "graph_lines",
    "growth_html",
    "growth_lines",
    "install",
    "level",
    "lines_html",
    "list_lines",
    "memory_html",
    "memory_lines",
    "part",
    "plain",
    "program_html",
    "program_lines",
    "program_svg",
    "read_block",
    "read_memory",
    "read_op",
    "read_preview",
    "read_program",
    "read_scope",
    "read_tensor",
    "read_timeline",
    "read_tree",
    "repr_html",
    "rich_text",
    "scope_html",
    "scope_lines",
    "select",
    "sheet_lines",
    "sparkline",
    "tensor_html",
    "tensor_lines",
    "timeline_html",
    "timeline_lines",
    "timeline_svg",
    "tree_lines",
    "uses_lines",
    "uses_of",
]
