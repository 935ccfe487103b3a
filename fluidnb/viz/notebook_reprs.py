"""HTML representations of the objects of fluidnb in notebooks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fluidnb.average import WeightedAverage
from fluidnb.debug.session import Session
from fluidnb.metrics import MetricBase
from fluidnb.optimizer import Optimizer
from fluidnb.optimizer.base import Minimized
from fluidnb.passes.diff import ProgramDiff
from fluidnb.program.block import Block
from fluidnb.program.cost import ProgramCost
from fluidnb.program.operator import Operator
from fluidnb.program.program import Program
from fluidnb.program.summary import ProgramSummary
from fluidnb.program.variable import Variable
from fluidnb.runtime import Executor
from fluidnb.runtime.last_values import latest_held
from fluidnb.runtime.opened_model import OpenedModel
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.values import variable as cells
from fluidnb.values.place import Place
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray, array_of
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.program.cost import cost_lines, summary_table_lines
from fluidnb.viz.program.diff import marked_lines
from fluidnb.viz.program.html import SHOWN, program_html
from fluidnb.viz.program.model import ProgramPicture
from fluidnb.viz.program.reader import read_block, read_op, read_program, read_var
from fluidnb.viz.program.text import op_lines
from fluidnb.viz.roles.reader import read_roles
from fluidnb.viz.roles.svg import roles_html
from fluidnb.viz.session.html import session_html
from fluidnb.viz.summary import reader as summaries
from fluidnb.viz.summary.model import Summary
from fluidnb.viz.summary.text import summary_lines
from fluidnb.viz.values.html import scope_html, tensor_html, variable_html
from fluidnb.viz.values.preview import read_preview
from fluidnb.viz.values.reader import read_scope, read_tensor, read_variable
from fluidnb.viz.values.text import tensor_lines

#: Classes that are shown as a `Summary`, and the functions that read them.
_SUMMARIES: tuple[tuple[type[Any], Callable[[Any], Summary]], ...] = (
    (Executor, summaries.read_executor), (Optimizer, summaries.read_optimizer), (Minimized, summaries.read_minimized),
    (MetricBase, summaries.read_metric), (WeightedAverage, summaries.read_average), (Place, summaries.read_place),
)  # fmt: skip


def repr_html(thing: Any) -> str | None:
    """The HTML representation of an object of fluidnb; None for another object."""
    if isinstance(thing, Variable):
        return lines_html(variable_lines(thing))
    if isinstance(thing, LoDTensor):
        summary, preview = read_tensor(thing), read_preview(array_of(thing))
        return tensor_html(summary, preview) if preview or summary.lod else lines_html(tensor_lines(summary))
    if isinstance(thing, Scope):
        return scope_html(read_scope(thing, previews=True))
    if isinstance(thing, Program):
        return program_html(read_program(thing, limit=SHOWN))
    if isinstance(thing, Operator):
        return lines_html(op_lines(read_op(thing)))
    if isinstance(thing, OpenedModel):
        return lines_html([[(f"{title:8}  ", "dim"), (text, "")] for title, text in thing.facts()])
    if isinstance(thing, Session):
        return session_html(thing)
    if isinstance(thing, Block):
        return program_html(ProgramPicture(read_block(thing), title=f"block {thing.idx}"))
    if isinstance(thing, LoDTensorArray | SelectedRows):
        return variable_html(read_variable("", thing, previews=True))
    if isinstance(thing, cells.Variable):
        return variable_html(read_variable(thing.name, thing.value, previews=True))
    if isinstance(thing, ProgramCost):
        return lines_html(cost_lines(thing))
    if isinstance(thing, ProgramSummary):
        return lines_html(summary_table_lines(thing))
    if isinstance(thing, ProgramDiff):
        return lines_html(marked_lines(thing))
    if isinstance(thing, DistributeTranspiler):
        return roles_html(read_roles(thing)) if thing.is_divided else None
    read = next((read for kind, read in _SUMMARIES if isinstance(thing, kind)), None)
    return None if read is None else lines_html(summary_lines(read(thing)))


def variable_lines(variable: Variable) -> list[Line]:
    """A variable in two lines: type and writer; last known value."""
    row = read_var(variable.desc)
    line: Line = [(row.name, "name"), (f"  {row.facts}", "")]
    words = [word for word, true in (("parameter", row.parameter), ("data", row.data)) if true]
    origin = variable.origin
    if origin is not None and origin.fate:
        return [line, [("   " + origin.fate, "warn")]]
    block = variable.desc.block
    ops = () if block is None or block.view is None else reversed(block.ops)
    op = next((op for op in ops if variable.name in op.output_arg_names()), None)  # without recording an access
    if op is not None and block is not None and block.view is not None:
        writer = Operator.over(block.view, op)
        words.append(f"by {writer.type}" + (f" in {writer.where.short()}" if writer.where else ""))
    elif row.location:
        words.append(row.location)
    line.append(("  " + ", ".join(words), "dim"))
    array = latest_held(variable)
    if array is None:
        return [line, [("   no value yet: run its program and fetch it", "dim")]]
    return [line, [("   last value ", "dim"), *tensor_lines(replace(read_tensor(array), name=""))[0]]]
