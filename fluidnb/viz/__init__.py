"""Pictures of programs, scopes and values: plain data first, then a text face and an SVG or HTML face over it.

Example:
    >>> from fluidnb.viz import plain, program_lines, read_program
    >>> print(plain(program_lines(read_program(fluid.Program()))))
    program  1 block
"""

from fluidnb.viz.curves import Curve, bars, curves_svg
from fluidnb.viz.dot import dot_svg, dot_text
from fluidnb.viz.html import lines_html, program_html
from fluidnb.viz.model import BlockRow, Held, OpRow, ProgramPicture, ScopeRow, SlotRow, TensorSummary, VarRow
from fluidnb.viz.picture import Picture
from fluidnb.viz.program_reader import read_block, read_program
from fluidnb.viz.reprs import install, repr_html
from fluidnb.viz.spans import ansi, plain, rich_text
from fluidnb.viz.svg import program_svg
from fluidnb.viz.text import program_lines, scope_lines, tensor_lines
from fluidnb.viz.values_reader import read_scope, read_tensor, sparkline

__all__ = [
    "BlockRow",
    "Curve",
    "Held",
    "OpRow",
    "Picture",
    "ProgramPicture",
    "ScopeRow",
    "SlotRow",
    "TensorSummary",
    "VarRow",
    "ansi",
    "bars",
    "curves_svg",
    "dot_svg",
    "dot_text",
    "install",
    "lines_html",
    "plain",
    "program_html",
    "program_lines",
    "program_svg",
    "read_block",
    "read_program",
    "read_scope",
    "read_tensor",
    "repr_html",
    "rich_text",
    "scope_lines",
    "sparkline",
    "tensor_lines",
]
