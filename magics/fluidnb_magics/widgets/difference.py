"""The difference of two runs as a widget: both programs side by side; a click on an operator shows both values."""

from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.compare.difference import Difference
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.compare.html import difference_html, difference_svg, summary_html
from fluidnb.viz.compare.operators import compared_operators
from fluidnb.viz.compare.text import difference_lines
from fluidnb_magics.widgets.widget import NotebookWidget, script, style


class DifferenceWidget(NotebookWidget):
    """Two runs compared; the page needs no kernel."""

    _esm = script("difference")
    _css = style("difference")
    summary = traitlets.Unicode().tag(sync=True)  # HTML of the answer
    graphs: traitlets.List[Any] = traitlets.List().tag(sync=True)  # SVG of both programs, empty without one
    operators: traitlets.List[Any] = traitlets.List().tag(sync=True)  # places in both, title, state, HTML of values
    first = traitlets.Int(-1).tag(sync=True)  # the operator whose output differs first, as its number in `operators`

    def __init__(self, difference: Difference, **traits: Any) -> None:
        self._difference = difference
        found = compared_operators(difference)
        cause = difference.op
        first = next((i for i, op in enumerate(found) if cause is not None and op.index == cause.index), -1)
        super().__init__(
            summary=summary_html(difference), graphs=[difference_svg(difference, second) for second in (False, True)],
            operators=[[op.index, op.other, op.title, op.state, lines_html(op.lines)] for op in found],
            first=first if cause is not None and cause.block == 0 else -1, **traits,
        )  # fmt: skip

    def lines(self) -> Sequence[Line]:
        return difference_lines(self._difference)

    def html(self) -> str:
        return difference_html(self._difference)
