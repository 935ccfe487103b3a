"""The requests that look at a program that stands still, and those that change values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidnb.dap.edits import assign, evaluate, target
from fluidnb.dap.references import References
from fluidnb.dap.sources import Sources
from fluidnb.dap.values import Held, Names, Row, children, frame_scopes, variable
from fluidnb.debug.look import View
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import FrameSpot, OpSpot, spot_of
from fluidnb.debug.walker import Walker
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError, near

if TYPE_CHECKING:
    from fluidnb.debug.snapshot import Snapshot

Message = dict[str, Any]


class Looking:
    """The half of an `Adapter` that moves nothing."""

    _session: Session
    _sources: Sources
    _known: References
    _client: Mapping[str, Any]
    _writes: bool = False  # whether this client is giving a variable another value right now

    def _around(self) -> Mapping[str, Any]:
        raise NotImplementedError

    # ---- where it stands

    def do_stackTrace(self, a: Message) -> Message:
        """The blocks that are being run, innermost first, each with its iteration."""
        return self._session.aside(self._stack, max(0, a.get("startFrame") or 0), max(0, a.get("levels") or 0))  # type: ignore[no-any-return]

    def _stack(self, walker: Walker, start: int, levels: int) -> Message:
        snapshot = _standing(walker)
        frames = list(enumerate(snapshot.frames))[::-1]
        wanted = frames[start : start + levels if levels else None]
        return {"stackFrames": [self._frame(walker, i, f) for i, f in wanted], "totalFrames": len(frames)}

    def _frame(self, walker: Walker, depth: int, frame: FrameSpot) -> Row:
        stack = walker.tape.machine.stack
        op = frame.op or _last_op(walker, depth)
        where = f"block {frame.block}" + (f", iteration {frame.iteration}" if stack[depth].control is not None else "")
        at = f"{frame.op.index} {frame.op.type}" if frame.op is not None else "the end"
        row: Row = {"id": self._known.named(("frame", depth), depth), "name": f"{where}: {at}", "line": 0, "column": 0}
        if op is not None:
            source, line = self._sources.spot(op)
            row.update(source=source, line=line, column=1 if line else 0)
        return row

    def do_scopes(self, a: Message) -> Message:
        """What the operator reads and writes, then each scope outwards."""
        depth = self._depth(a["frameId"])

        def read(walker: Walker) -> list[Row]:
            _standing(walker)
            return frame_scopes(walker, depth, self._known)

        return {"scopes": self._session.aside(read)}

    def do_variables(self, a: Message) -> Message:
        """What is inside a scope or a value, or a part of that."""
        thing = self._known.find(a["variablesReference"])
        if not isinstance(thing, Held | Names):
            raise NotFound("There is nothing inside.", received=a["variablesReference"])
        kind, start, count = a.get("filter") or "", max(0, a.get("start") or 0), max(0, a.get("count") or 0)
        pages = bool(self._client.get("supportsVariablePaging"))

        def read(walker: Walker) -> list[Row]:
            _standing(walker)
            return children(thing, self._known, kind, start, count, pages)

        return {"variables": self._session.aside(read)}

    def do_exceptionInfo(self, a: Message) -> Message:
        """What went wrong in the operator that comes next."""
        error = self._session.snapshot.error
        if error is None:
            raise NotFound("Nothing has failed here.", received=self._session.snapshot.reason)
        name = type(error).__name__
        return {
            "exceptionId": name, "description": str(error), "breakMode": "always",
            "details": {"message": str(error), "typeName": name},
        }  # fmt: skip

    # ---- expressions and values

    def do_evaluate(self, a: Message) -> Message:
        """What a Python expression gives over the program's variables."""
        text = str(a["expression"]).strip()
        depth = self._depth(a["frameId"]) if a.get("frameId") else -1

        def read(walker: Walker) -> Row:
            _standing(walker)
            stack = walker.tape.machine.stack
            value = evaluate(walker, depth if depth >= 0 else len(stack) - 1, text, self._around())
            return variable("result", Held(value, text), self._known)

        return _result(self._session.aside(read), "result")

    def do_setVariable(self, a: Message) -> Message:
        """Give a variable, or an element of one, another value."""
        thing, name = self._known.find(a["variablesReference"]), str(a["name"])
        if isinstance(thing, Names):
            return self._set(name, (), str(a["value"]))
        if not isinstance(thing, Held) or not thing.root or not name.strip("[]").isdigit():
            raise OpValueError("That cannot be set.", expected="a variable, or an element of one", received=name)
        return self._set(thing.root, (*thing.index, int(name.strip("[]"))), str(a["value"]))

    def do_setExpression(self, a: Message) -> Message:
        """Give what an expression names another value."""
        name, index = target(str(a["expression"]), self._around())
        return self._set(name, index, str(a["value"]), self._depth(a["frameId"]) if a.get("frameId") else -1)

    def _set(self, name: str, index: tuple[Any, ...], text: str, depth: int = -1) -> Message:
        def write(walker: Walker) -> Row:
            _standing(walker)
            at = depth if depth >= 0 else len(walker.tape.machine.stack) - 1
            self._writes = True
            try:
                value = assign(walker, at, name, index, text, self._around())
            finally:
                self._writes = False
            return variable(name, Held(value), self._known)

        return _result(self._session.aside(write), "value")

    def do_dataBreakpointInfo(self, a: Message) -> Message:
        """Whether writes to a variable can be stopped at."""
        name = str(a["name"])
        thing = self._known.find(a["variablesReference"]) if a.get("variablesReference") else None
        if isinstance(thing, Held):
            name = thing.root
        elif thing is None:
            name = target(name, self._around())[0]
        known = {var for block in self._session.program.desc.blocks for var in block.vars}
        if name not in known:
            hint = near(name, known)
            return {"dataId": None, "description": f"{a['name']} is no variable of the program. {hint}".strip()}
        return {"dataId": name, "description": name, "accessTypes": ["write"], "canPersist": True}

    def do_completions(self, a: Message) -> Message:
        """Variables that a text can go on with."""
        text = str(a["text"])[: max(0, a["column"] - 1)]
        part = next((text[i:] for i in range(len(text)) if all(c.isalnum() or c in "_.@" for c in text[i:])), "")

        def names(walker: Walker) -> list[str]:
            return list(View(walker.tape.machine.stack[-1].scope)) if walker.tape.runs else []

        offered = sorted(name for name in self._session.aside(names) if part in name)
        offered.sort(key=lambda name: not name.startswith(part))
        at = len(text) - len(part)
        return {
            "targets": [{"label": n, "type": "variable", "start": at, "length": len(part)} for n in offered[:200]]
        }  # fmt: skip

    # ---- sources

    def do_source(self, a: Message) -> Message:
        """The text of a source that is no file."""
        reference = (a.get("source") or {}).get("sourceReference") or a.get("sourceReference") or 0
        return {"content": self._sources.content(reference), "mimeType": "text/plain"}

    def do_loadedSources(self, a: Message) -> Message:
        """The sources that the program is shown in."""
        return {"sources": self._sources.loaded()}

    def do_breakpointLocations(self, a: Message) -> Message:
        """The lines at which the program can stop."""
        source = a["source"]
        path, first = source.get("path") or source.get("name") or "", a["line"]
        last = a.get("endLine") or first
        return {"breakpoints": [{"line": n} for n in self._sources.lines(path) if first <= n <= last]}

    def _depth(self, frame: Any) -> int:
        depth = self._known.find(frame)
        if not isinstance(depth, int):
            raise NotFound("That is no frame.", received=frame)
        return depth


def _standing(walker: Walker) -> Snapshot:
    """The snapshot of a program that stands still."""
    if walker.snapshot.state not in ("paused", "done"):
        raise EnforceNotMet("The program is running; pause it first.", received=walker.snapshot.text)
    return walker.snapshot


def _last_op(walker: Walker, depth: int) -> OpSpot | None:
    ops = walker.tape.machine.stack[depth].block.ops
    return spot_of(ops[-1]) if ops else None


def _result(row: Row, name: str) -> Message:
    kept = ("type", "variablesReference", "indexedVariables", "namedVariables")
    return {name: row["value"]} | {key: row[key] for key in kept if key in row}
