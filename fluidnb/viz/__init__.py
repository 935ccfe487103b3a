"""Pictures of programs, values, memory and sessions: a plain model, then text, SVG and HTML renderings.

Example:
    >>> from fluidnb.viz import plain, program_lines, read_program
    >>> print(plain(program_lines(read_program(fluid.Program()))))
    program  1 block
"""

from fluidnb.viz.base.curves import Curve, bars, sparkline
from fluidnb.viz.base.curves_svg import curves_svg
from fluidnb.viz.base.display_object import Picture
from fluidnb.viz.base.html import boxed, lines_html
from fluidnb.viz.base.styled_text import ansi, plain, rich_text
from fluidnb.viz.memory.growth import Growth, growth_html, growth_lines
from fluidnb.viz.memory.reader import read_memory
from fluidnb.viz.memory.svg import arena_svg, memory_html
from fluidnb.viz.memory.text import memory_lines
from fluidnb.viz.notebook_reprs import repr_html
from fluidnb.viz.program.block_tree import BlockLine, read_tree, tree_lines
from fluidnb.viz.program.filter import select
from fluidnb.viz.program.graph_level import level, part
from fluidnb.viz.program.graph_text import graph_lines
from fluidnb.viz.program.graphviz import dot_svg, dot_text
from fluidnb.viz.program.html import graph_html, program_html
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow
from fluidnb.viz.program.op_type import OpSheet, read_op
from fluidnb.viz.program.op_type_text import card_lines, list_lines, sheet_lines
from fluidnb.viz.program.reader import read_block, read_program
from fluidnb.viz.program.svg import program_svg
from fluidnb.viz.program.text import program_lines
from fluidnb.viz.program.uses import Uses, uses_lines, uses_of
from fluidnb.viz.time.gradients import Gradients, gradient_lines
from fluidnb.viz.time.gradients_svg import gradients_html, gradients_svg
from fluidnb.viz.time.scaling import scaling_picture, scaling_svg
from fluidnb.viz.time.timeline import read_timeline, timeline_lines
from fluidnb.viz.time.timeline_svg import timeline_html, timeline_svg
from fluidnb.viz.values.html import scope_html, tensor_html
from fluidnb.viz.values.model import ScopeRow, ScopeVariable, TensorSummary
from fluidnb.viz.values.preview import Preview, read_preview
from fluidnb.viz.values.reader import read_scope, read_tensor
from fluidnb.viz.values.text import scope_lines, tensor_lines

__all__ = [
    "BlockLine", "BlockRow", "Curve", "Gradients", "Growth", "OpRow", "OpSheet", "Picture", "Preview", "ProgramPicture",
    "ScopeRow", "ScopeVariable", "SlotRow", "TensorSummary", "Uses", "VarRow", "ansi", "arena_svg", "bars", "boxed",
    "card_lines", "curves_svg", "dot_svg", "dot_text", "gradient_lines", "gradients_html", "gradients_svg",
    "graph_html", "graph_lines", "growth_html", "growth_lines", "level", "lines_html", "list_lines", "memory_html",
    "memory_lines", "part", "plain", "program_html", "program_lines", "program_svg", "read_block", "read_memory",
    "read_op", "read_preview", "read_program", "read_scope", "read_tensor", "read_timeline", "read_tree", "repr_html",
    "rich_text", "scaling_picture", "scaling_svg", "scope_html", "scope_lines", "select", "sheet_lines", "sparkline",
    "tensor_html", "tensor_lines", "timeline_html", "timeline_lines", "timeline_svg", "tree_lines", "uses_lines",
    "uses_of",
]  # fmt: skip
