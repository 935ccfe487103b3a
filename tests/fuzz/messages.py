"""Requests of the Debug Adapter Protocol with odd arguments, and bytes that are no messages."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import fluidnb as fluid
from fluidnb.dap import Adapter, ScriptSources
from fluidnb.dap.references import BASE
from fluidnb.dap.wire import encoded, read_message
from fluidnb.errors import FluidError
from tests.dap import programs
from tests.fuzz.oracle import REFUSED, RESULT, Outcome, judge

#: request -> arguments as a client would send them
REQUESTS: dict[str, dict[str, Any]] = {
    "initialize": {"adapterID": "x", "linesStartAt1": True}, "attach": {}, "launch": {"stopOnEntry": True},
    "configurationDone": {}, "disconnect": {}, "terminate": {}, "threads": {}, "pause": {"threadId": BASE},
    "next": {"threadId": BASE}, "stepIn": {"threadId": BASE}, "stepOut": {"threadId": BASE},
    "continue": {"threadId": BASE}, "stepBack": {"threadId": BASE, "granularity": "instruction"},
    "reverseContinue": {"threadId": BASE}, "restart": {}, "restartFrame": {"frameId": BASE},
    "setBreakpoints": {"source": {"path": programs.__file__}, "breakpoints": [
        {"line": 20, "condition": "v['x'][0, 0] == 1", "hitCondition": "2", "logMessage": "x is {v['x']}"}]},
    "setFunctionBreakpoints": {"breakpoints": [{"name": "relu", "condition": "True"}]},
    "setDataBreakpoints": {"breakpoints": [{"dataId": "x", "accessType": "write"}]},
    "setExceptionBreakpoints": {"filters": ["nan", "error"], "filterOptions": [{"filterId": "nan"}]},
    "stackTrace": {"threadId": BASE, "startFrame": 0, "levels": 2}, "scopes": {"frameId": BASE},
    "variables": {"variablesReference": BASE + 1, "filter": "indexed", "start": 0, "count": 2},
    "exceptionInfo": {"threadId": BASE}, "evaluate": {"expression": "v['x']", "frameId": BASE, "context": "repl"},
    "setVariable": {"variablesReference": BASE + 1, "name": "x", "value": "1"},
    "setExpression": {"expression": "v['x']", "value": "np.ones((1, 2))", "frameId": BASE},
    "dataBreakpointInfo": {"variablesReference": BASE + 1, "name": "x"},
    "completions": {"text": "v['", "column": 4, "frameId": BASE, "line": 1},
    "source": {"sourceReference": BASE, "source": {"path": "x"}}, "loadedSources": {},
    "breakpointLocations": {"source": {"path": programs.__file__}, "line": 20, "endLine": 25},
    "no_such_request": {}, "_response": {},
}  # fmt: skip

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, "", "\ud800", "a\0b", "x" * 5000, "1 +", "1 / 0",
    "__import__('os')", "v", "v['no']", "lambda: 0", [], [1], ["x"], [None], [[]], {}, {"a": 1}, [{}], [{"line": "x"}],
    [{"line": 2**40}], [{"name": 3}], [{"line": 20, "condition": 7}], [{"line": 20, "hitCondition": "x"}],
    [{"line": 20, "logMessage": "{"}], {"path": 3}, {"path": "\0"}, {"sourceReference": 7}, BASE, BASE + 1,
)  # fmt: skip

_MASKED = re.compile(r"^\w*(Error|Exception|Interrupt|StopIteration)\b: ?")


def case(dice: random.Random) -> dict[str, Any]:
    """A few requests, each with a change; or bytes."""
    if dice.random() < 0.15:
        data = bytearray(encoded({"seq": 1, "type": "request", "command": "threads", "arguments": {}}))
        for _ in range(dice.choice([1, 2, 8])):
            data[dice.randrange(len(data))] = dice.choice([0, 10, 13, 48, 57, 58, 125, 255, dice.randrange(256)])
        return {"bytes": bytes(data[: dice.choice([len(data), dice.randrange(len(data))])]).hex()}
    rows = []
    for _ in range(dice.choice([1, 1, 2, 4])):
        command = dice.choice(sorted(REQUESTS))
        arguments: Any = json.loads(json.dumps(REQUESTS[command]))
        how = dice.choice(["value", "value", "value", "inner", "drop", "whole", "none"])
        names = sorted(arguments)
        if how == "value" and names:
            arguments[dice.choice(names)] = dice.choice(ODD)
        elif how == "drop" and names:
            del arguments[dice.choice(names)]
        elif how == "whole":
            arguments = dice.choice(ODD)
        elif how == "inner":
            for value in arguments.values():
                row = value[0] if isinstance(value, list) and value else value
                if isinstance(row, dict) and row:
                    row[dice.choice(sorted(row))] = dice.choice(ODD)
        rows.append([command, arguments])
    return {"requests": rows}


@cache
def loss() -> Any:
    """The program that is debugged."""
    return programs.counting()


def run(one: dict[str, Any]) -> Outcome:
    """Send the messages to a new session."""
    if "bytes" in one:
        try:
            read_message(io.BytesIO(bytes.fromhex(one["bytes"])))
        except BaseException as error:
            return judge(error, own=(__file__,))
        return Outcome(RESULT)
    with fluid.fresh() as (main, _):
        found = programs.counting()
        session = fluid.debug(feed={"x": programs.ROW}, fetch_list=[found])
        try:
            return _ask(session, main, one["requests"])
        except BaseException as error:
            return judge(error, own=(__file__,))
        finally:
            session.close()


def _ask(session: Any, main: Any, rows: list[Any]) -> Outcome:
    told: list[Any] = []
    adapter = Adapter(told.append, session, ScriptSources(lambda: main))
    start = [["initialize", {"adapterID": "x"}], ["attach", {}], ["configurationDone", {}], ["stackTrace", {}]]
    outcome = Outcome(RESULT)
    for seq, (command, arguments) in enumerate([*start, *rows]):
        message = {"seq": seq + 1, "type": "request", "command": command, "arguments": arguments}
        response = adapter.handle(message)
        json.dumps(response)
        if not response["success"]:
            text = response["message"]
            if _MASKED.match(text) and command not in ("evaluate", "setVariable", "setExpression"):
                return Outcome("silent", f"{command}: {text[:40]}", f"{message}\n{text}")
            outcome = Outcome(REFUSED, command, text)
    try:
        adapter.close()
    except FluidError:
        pass
    masked = [e for e in told if _MASKED.match(str(e.get("body", {}).get("output", "")))]
    if masked:
        return Outcome("silent", f"event {masked[0]['body']['output'][:40]}", str(masked[0]))
    return outcome


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer requests and arguments."""
    rows = one.get("requests", [])
    for i in range(len(rows)):
        if len(rows) > 1:
            yield {"requests": rows[:i] + rows[i + 1 :]}
    for i, (command, arguments) in enumerate(rows):
        if isinstance(arguments, dict):
            for name in arguments:
                rest = {n: v for n, v in arguments.items() if n != name}
                yield {"requests": [*rows[:i], [command, rest], *rows[i + 1 :]]}


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import messages\nprint(messages.run({one!r}))"
