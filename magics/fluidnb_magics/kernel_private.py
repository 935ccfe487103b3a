"""All private names of ipykernel and ipywidgets that fluidnb uses; where one is missing, nothing breaks."""

from __future__ import annotations

from typing import Any


def answer_anywhere(widget: Any) -> None:
    """Let a widget answer while its cell, or another one, is still running.

    ipykernel 7.4 ties a comm to the (sub)shell that published on it last, so that a widget which a cell made would
    answer on the busy main shell; without that tie the front end chooses. Where the name is missing, nothing happens.

    Args:
        widget: a widget with a comm.
    """
    comm = getattr(widget, "comm", None)
    if comm is not None:
        vars(comm).pop("_reply_subshell_id", None)
