"""Responses to JupyterLab's debugger panel about a paused fluid program."""

import asyncio
from collections.abc import Callable
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
#: request -> the list that the panel takes from the response, whether or not it succeeded
_LISTS = {"stackTrace": "stackFrames", "scopes": "scopes", "variables": "variables"}
_PATIENCE = 2.0  # seconds that the panel waits for a command typed into its console


class DebugResponses:
    """Responses to requests about the thread, frames and values of a session."""

    def __init__(self, names: dict[str, Any], render: Render, console: Console, show: Callable[[], None]) -> None:
        self._names, self._render, self._console, self._show = names, render, console, show

    async def respond(self, adapter: Adapter, session: Session, request: Message) -> Message:
        """The response to a request."""
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
            case "richInspectVariables" | "copyToGlobals":
                return self._inspected(session, request, arguments)
        result = adapter.handle(request)
        field = _LISTS.get(request["command"])
        if field is not None and not result["success"]:  # the program has moved since
            result["body"] = {field: []}
        elif field == "variables":
            for row in result["body"]["variables"]:
                row.pop("type", None)  # the panel shows a type in place of the value
            self._console.requested(session)
            await self._console.delay()
        return result

    async def _evaluate(self, adapter: Adapter, session: Session, request: Message, text: str) -> Message:
        """An expression, or a command of the session: the panel has no button for a step back."""
        is_command = text.startswith("%fluid ")
        work = _output(session, text.removeprefix("%fluid ")) if is_command else _value(adapter, request)
        result = await self._console.evaluated(session, work, self._show)
        return response(request, {"result": result, "variablesReference": 0})

    def _inspected(self, session: Session, request: Message, arguments: Message) -> Message:
        try:
            if request["command"] == "copyToGlobals":
                self._names[name_of(arguments["dstVariableName"])] = session[arguments["srcVariableName"]]
                return response(request, {})
            data, metadata = self._render(session[arguments["variableName"]])
            return response(request, {"data": data, "metadata": metadata})
        except FluidError as error:
            return refusal(request, str(error))


async def _value(adapter: Adapter, request: Message) -> str:
    """The value of an expression, or its error: the panel would print that there was an error, not which."""
    result = adapter.handle(request)
    return str(result["body"]["result"] if result["success"] else result["message"])


async def _output(session: Session, line: str) -> str:
    """The output of a command of the session, which runs in another thread."""
    future = asyncio.get_running_loop().run_in_executor(None, _run, session, line)
    finished, _ = await asyncio.wait([future], timeout=_PATIENCE)
    return future.result() if finished else "running; the pause button stops it"


def _run(session: Session, line: str) -> str:
    try:
        return plain(run_command(session, line))
    except FluidError as error:
        return str(error)


def name_of(text: str) -> str:
    """A Python name for a copy of a variable such as ``h.w_0``."""
    name = "".join(c if c.isidentifier() or c.isdigit() else "_" for c in text)
    return name if name.isidentifier() else f"_{name}"


def response(request: Message, body: Message) -> Message:
    """The response to a request, with a body."""
    return {
        "type": "response", "seq": 0, "request_seq": request["seq"], "command": request["command"], "success": True,
        "body": body,
    }  # fmt: skip


def refusal(request: Message, text: str) -> Message:
    """The response to a request that failed."""
    return {**response(request, {}), "success": False, "message": text.partition("\n")[0]}
