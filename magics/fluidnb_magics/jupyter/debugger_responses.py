"""Responses to JupyterLab's debugger panel about a paused fluid program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from fluidnb.dap.adapter import Adapter
from fluidnb.debug.session import Session
from fluidnb.errors import FluidError
from fluidnb.terminal.commands import run_command
from fluidnb.viz.base.styled_text import plain
from fluidnb_magics.jupyter.debugger_console import Console
from fluidnb_magics.jupyter.kernel_private import Message

#: A value -> its mime bundle, and the bundle's metadata.
Render = Callable[[Any], tuple[dict[str, Any], dict[str, Any]]]

#: request -> the list that the panel takes from the response, whether or not it could be answered
_LISTS = {"stackTrace": "stackFrames", "scopes": "scopes", "variables": "variables"}

#: Seconds that the panel waits for a command typed into its console.
_PATIENCE = 2.0


class LabAnswers:
    """Answers requests that speak of our thread, frames and values.

    Args:
        names: the user's names, for copies of tensors.
        render: shows a value as a cell would.
        console: the panel's console.
        show: makes the panel show anew where the program is paused.
    """

    def __init__(self, names: dict[str, Any], render: Render, console: Console, show: Callable[[], None]) -> None:
        self._names, self._render, self._console, self._show = names, render, console, show

    async def answer(self, adapter: Adapter, session: Session, request: Message) -> Message:
        """Answer a request.

        Args:
            adapter: answers all that JupyterLab asks as others do.
            session: the session.
            request: the request.

        Returns:
            The response.
        """
        arguments = request.get("arguments") or {}
        if request["command"] == "stackTrace":
            await self._console.release()
        match request["command"]:
            case "evaluate":
                return await self._evaluate(adapter, session, request, str(arguments.get("expression", "")).strip())
            case "stackTrace" if session.snapshot.state != "paused":  # the panel shows no thread then
                return response(request, {"stackFrames": []})
            case "richInspectVariables" | "copyToGlobals" if session.snapshot.state != "paused":
                return refusal(request, "The program is running; pause it first.")
            case "richInspectVariables":
                return self._try(request, partial(self._rendered, session, arguments))
            case "copyToGlobals":
                return self._try(request, partial(self._copied, session, arguments))
        answered = adapter.handle(request)
        wanted = _LISTS.get(request["command"])
        if wanted is not None and not answered["success"]:  # it asked for what was there before the program moved
            answered["body"] = {wanted: []}
        elif wanted == "variables":
            for row in answered["body"]["variables"]:
                row.pop("type", None)  # the panel shows a type in place of the value
            self._console.asked(session)
            await self._console.hold()
        return answered

    async def _evaluate(self, adapter: Adapter, session: Session, request: Message, text: str) -> Message:
        """An expression, or a command of the session: the panel has no button for a step back."""
        if text.startswith("%fluid "):
            work = _told(session, text.removeprefix("%fluid "))
        else:
            work = _value(adapter, request)
        said = await self._console.evaluated(session, work, self._show)
        return response(request, {"result": said, "variablesReference": 0})

    def _rendered(self, session: Session, arguments: Message) -> Message:
        data, metadata = self._render(session[arguments["variableName"]])
        return {"data": data, "metadata": metadata}

    def _copied(self, session: Session, arguments: Message) -> Message:
        self._names[name_of(arguments["dstVariableName"])] = session[arguments["srcVariableName"]]
        return {}

    def _try(self, request: Message, do: Callable[[], Message]) -> Message:
        try:
            return response(request, do())
        except FluidError as error:
            return refusal(request, str(error))


async def _value(adapter: Adapter, request: Message) -> str:
    """The value of an expression; where it has none, why: the panel would print that there was an error, not which."""
    answered = adapter.handle(request)
    return str(answered["body"]["result"] if answered["success"] else answered["message"])


async def _told(session: Session, line: str) -> str:
    """Do a command of the session in another thread, and do not wait longer than a moment."""
    under_way = asyncio.get_running_loop().run_in_executor(None, _run, session, line)
    finished, _ = await asyncio.wait([under_way], timeout=_PATIENCE)
    return under_way.result() if finished else "running; the pause button stops it"


def _run(session: Session, line: str) -> str:
    try:
        return plain(run_command(session, line))
    except FluidError as error:
        return str(error)


def name_of(text: str) -> str:
    """A name for a copy of a variable: ``h.w_0`` is no name in Python.

    Args:
        text: the variable's name.

    Example:
        >>> name_of("h.w_0@GRAD"), name_of("2d")
        ('h_w_0_GRAD', '_2d')
    """
    name = "".join(c if c.isidentifier() or c.isdigit() else "_" for c in text)
    return name if name.isidentifier() else f"_{name}"


def response(request: Message, body: Message) -> Message:
    """The response to a request that was done.

    Args:
        request: the request.
        body: what there is to say.

    Example:
        >>> response({"seq": 7, "command": "pause"}, {})["request_seq"]
        7
    """
    return {
        "type": "response", "seq": 0, "request_seq": request["seq"], "command": request["command"], "success": True,
        "body": body,
    }  # fmt: skip


def refusal(request: Message, text: str) -> Message:
    """The response to a request that cannot be done.

    Args:
        request: the request.
        text: why.

    Example:
        >>> refusal({"seq": 7, "command": "pause"}, "Nothing runs.")["success"]
        False
    """
    return {**response(request, {}), "success": False, "message": text.partition("\n")[0]}
