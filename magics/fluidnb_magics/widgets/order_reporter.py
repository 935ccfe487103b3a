"""A widget without a picture: its page reports the order of the notebook's cells."""

from typing import Any

import anywidget

from fluidnb_magics.jupyter.notebook_order import NotebookOrder
from fluidnb_magics.widgets.widget import script


class OrderReporter(anywidget.AnyWidget):
    """Receives from JupyterLab and Notebook 7 the ids of the notebook's cells in order; installs nothing."""

    _esm = script("notebook_order")

    def __init__(self, order: NotebookOrder) -> None:
        super().__init__()
        self._order = order
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        if content.get("do") == "order":
            self._order.report(str(each) for each in content.get("ids", ()))
