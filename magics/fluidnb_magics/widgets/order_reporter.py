"""A widget without a picture: its page reports the order of the notebook's cells."""

from __future__ import annotations

from typing import Any

import anywidget

from fluidnb_magics.jupyter.notebook_order import NotebookOrder
from fluidnb_magics.widgets.widget import script


class OrderReporter(anywidget.AnyWidget):
    """Hears from JupyterLab and Notebook 7 which cells there are, in which order; nothing is installed for that.

    Args:
        order: what it is for.
    """

    _esm = script("notebook_order")

    def __init__(self, order: NotebookOrder) -> None:
        super().__init__()
        self._order = order
        self.on_msg(self._hear)

    def _hear(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        if content.get("do") == "order":
            self._order.report(str(each) for each in content.get("ids", ()))
