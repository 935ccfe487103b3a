"""The debug channel of real kernels: what JupyterLab asks, and what comes back, in each supported ipykernel."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.kernel import LiveKernel, live_kernel, python_of

#: Minor versions that `make test-full` has in environments of their own; the installed one is always tested.
VERSIONS = ("6.29", "7.0", "newest")

LOOP = """%%fluid net
i = layers.zeros([1], 'int64')
n = layers.fill_constant([1], 'int64', 3)
x = layers.fill_constant([8, 8], 'float32', 1.0)
cond = layers.less_than(i, n)
loop = layers.While(cond)
with loop.block():
    layers.increment(i)
    y = layers.scale(x, scale=2.0)
    layers.assign(y, x)
    layers.less_than(i, n, cond=cond)
total = layers.reduce_sum(x)"""
PYTHON = "def double(a):\n    b = a * 2\n    return b\n\nprint(double(4))"
RUN = "%fluid run --fetch total"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The installed ipykernel, and with ``--full`` the others."""
    if "version" in metafunc.fixturenames:
        others = VERSIONS if metafunc.config.getoption("--full") else ()
        metafunc.parametrize("version", ["installed", *others])


@pytest.fixture
def kernel(version: str, tmp_path: Path) -> Iterator[LiveKernel]:
    """A kernel with the extension and a loop."""
    python = sys.executable if version == "installed" else python_of(f"ipykernel-{version}")
    with live_kernel(python, tmp_path) as started:
        started.run("%load_ext fluidnb\nimport numpy as np")
        assert "10 ops" in started.run(LOOP, "net-cell")
        if version not in ("installed", "newest"):
            assert version in started.run("import ipykernel; ipykernel.__version__")
        yield started


def switch_on(kernel: LiveKernel) -> dict[str, Any]:
    """Send the requests of JupyterLab when its debugger is switched on, and return the response to ``initialize``."""
    kernel.debug("debugInfo")
    answer = kernel.debug(
        "initialize", clientID="jupyterlab", adapterID="python3", pathFormat="path", linesStartAt1=True,
        columnsStartAt1=True, supportsVariableType=True, supportsVariablePaging=True,
    )  # fmt: skip
    kernel.debug("attach")
    kernel.debug("inspectVariables")
    kernel.debug("modules")
    return answer


def click(kernel: LiveKernel, cell: str, *lines: int) -> list[dict[str, Any]]:
    """Set breakpoints at lines of a cell, and return those of the response."""
    path = kernel.debug("dumpCell", code=cell)["body"]["sourcePath"]
    points = [{"line": line} for line in lines]
    answer = kernel.debug("setBreakpoints", source={"path": path}, breakpoints=points, sourceModified=False)
    return list(answer["body"]["breakpoints"])


def frames(kernel: LiveKernel, event: dict[str, Any]) -> list[dict[str, Any]]:
    """The stack of the thread that stopped."""
    return list(kernel.debug("stackTrace", threadId=event["body"]["threadId"])["body"]["stackFrames"])


def scopes(kernel: LiveKernel, frame: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Everything in the variables panel: scope -> name -> row."""
    rows = kernel.debug("scopes", frameId=frame["id"])["body"]["scopes"]
    return {row["name"]: children(kernel, row) for row in rows}


def children(kernel: LiveKernel, row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows inside a row, by name."""
    inside = kernel.debug("variables", variablesReference=row["variablesReference"])["body"]["variables"]
    return {found["name"]: found for found in inside}


def test_a_click_stops_the_next_run(kernel: LiveKernel) -> None:
    assert "nan" in [row["filter"] for row in switch_on(kernel)["body"]["exceptionBreakpointFilters"]]
    assert [(p["verified"], p["line"]) for p in click(kernel, LOOP, 9)] == [(True, 9)]
    cell = kernel.start(RUN)
    kernel.until(lambda: bool(kernel.events("stopped")))
    event = kernel.events("stopped")[-1]
    inner, outer = frames(kernel, event)
    assert (inner["name"], inner["line"]) == ("block 1, iteration 0: 1 scale", 9)
    assert (outer["name"], outer["line"]) == ("block 0: 4 while", 7)
    info = kernel.debug("debugInfo")["body"]
    assert info["stoppedThreads"] == [event["body"]["threadId"]]
    assert info["breakpoints"] == [{"source": inner["source"]["path"], "breakpoints": [{"line": 9}]}]

    seen = scopes(kernel, inner)
    assert list(seen)[:3] == ["scale: inputs", "scale: outputs", "scale: attributes"]
    assert seen["scale: attributes"]["scale"]["value"] == "2"
    tensor = seen["scale: inputs"]["x"]
    assert "type" not in tensor, "the panel would show it in place of the value"
    assert tensor["value"].startswith("float32[8, 8]")
    opened = children(kernel, tensor)
    assert opened["mean"]["value"] == "1"
    assert list(children(kernel, opened["[3]"]))[-1] == "[7]"
    frame = inner["id"]
    assert kernel.debug("evaluate", expression="x.sum()", frameId=frame)["body"]["result"] == "64.0"
    wrong = kernel.debug("evaluate", expression="nowhere + 1", frameId=frame)
    assert "nowhere" in wrong["body"]["result"]
    rich = kernel.debug("richInspectVariables", variableName="x", frameId=frame)["body"]["data"]
    assert rich["text/plain"].startswith("array(")
    assert not kernel.debug("richInspectVariables", variableName="gone", frameId=frame)["success"]
    assert kernel.debug("copyToGlobals", srcVariableName="x", dstVariableName="x.now", srcFrameId=frame)["success"]

    event = kernel.after("stopped", lambda: kernel.debug("next", threadId=event["body"]["threadId"]))
    assert frames(kernel, event)[0]["name"] == "block 1, iteration 0: 2 assign"
    event = kernel.after("stopped", lambda: kernel.debug("continue", threadId=1))  # as JupyterLab does
    inner = frames(kernel, event)[0]
    assert inner["name"] == "block 1, iteration 1: 1 scale"
    event = kernel.after("stopped", lambda: kernel.debug("evaluate", expression="%fluid back 3", frameId=inner["id"]))
    assert frames(kernel, event)[0]["name"] == "block 1, iteration 0: 3 less_than"
    click(kernel, LOOP)
    kernel.after("continued", lambda: kernel.debug("continue", threadId=1))
    assert "[512]" in kernel.finish(cell)
    assert kernel.debug("debugInfo")["body"]["stoppedThreads"] == []
    assert "(8, 8)" in kernel.run("x_now.shape")
    told = len(kernel.events("stopped"))
    assert "[512]" in kernel.run(RUN)
    assert "None" in kernel.run("from fluidnb.debug.session import current; print(current())")
    assert len(kernel.events("stopped")) == told


def test_another_process_has_the_port_of_the_debugger(kernel: LiveKernel) -> None:
    text = kernel.run("print('port', get_ipython().kernel.debugger.debugpy_client.get_host_port()[1])")
    found = re.search(r"port (\d+)", text)
    assert found
    with socket.create_server(("127.0.0.1", int(found[1]))):
        assert switch_on(kernel)["success"]
        click(kernel, PYTHON, 2)
        cell = kernel.start(PYTHON)
        kernel.until(lambda: bool(kernel.events("stopped")))
        assert frames(kernel, kernel.events("stopped")[-1])[0]["name"] == "double"
        kernel.debug("continue", threadId=kernel.events("stopped")[-1]["body"]["threadId"])
        assert "8" in kernel.finish(cell)


def test_a_second_initialize_keeps_the_debugger(kernel: LiveKernel) -> None:
    switch_on(kernel)
    kernel.debug("initialize", clientID="jupyterlab", adapterID="python3", pathFormat="path")
    click(kernel, PYTHON, 2)
    cell = kernel.start(PYTHON)
    kernel.until(lambda: bool(kernel.events("stopped")))
    kernel.debug("continue", threadId=kernel.events("stopped")[-1]["body"]["threadId"])
    assert "8" in kernel.finish(cell)


def test_python_and_program_side_by_side(kernel: LiveKernel) -> None:
    switch_on(kernel)
    click(kernel, PYTHON, 2)
    click(kernel, LOOP, 9)

    def python_stops() -> str:
        cell = kernel.start(PYTHON)
        before = len(kernel.events("stopped"))
        kernel.until(lambda: len(kernel.events("stopped")) > before)
        event = kernel.events("stopped")[-1]
        stack = frames(kernel, event)
        assert (stack[0]["name"], stack[0]["line"]) == ("double", 2)
        assert "a" in scopes(kernel, stack[0])["Locals"]
        event = kernel.after("stopped", lambda: kernel.debug("next", threadId=event["body"]["threadId"]))
        assert frames(kernel, event)[0]["line"] == 3
        kernel.debug("continue", threadId=event["body"]["threadId"])
        return kernel.finish(cell)

    assert "8" in python_stops()
    event = kernel.after("stopped", lambda: kernel.run("%fluid debug --fetch total"))
    ours = event["body"]["threadId"]
    assert frames(kernel, event)[0]["name"] == "block 0: 0 fill_constant"
    assert "8" in python_stops()
    kernel.until(lambda: kernel.events("stopped")[-1]["body"]["threadId"] == ours)
    event = kernel.after("stopped", lambda: kernel.debug("continue", threadId=1))
    assert frames(kernel, event)[0]["name"] == "block 1, iteration 0: 1 scale"
    globals_ = {row["name"]: row for row in kernel.debug("inspectVariables")["body"]["variables"]}
    assert children(kernel, globals_["np"]), "numbers of debugpy are not ours"
    kernel.after("continued", lambda: kernel.run("%fluid debug off"))
    assert "8" in python_stops()


def test_a_session_is_shown_when_the_panel_is_switched_on(kernel: LiveKernel) -> None:
    kernel.run("%fluid debug --fetch total")
    kernel.run("%fluid until line net:9")
    assert kernel.debug("debugInfo")["body"]["stoppedThreads"] == []
    event = kernel.after("stopped", lambda: switch_on(kernel))
    assert frames(kernel, event)[0]["line"] == 9
    source = frames(kernel, event)[0]["source"]
    assert "layers.scale" in kernel.debug("source", source=source)["body"]["content"]
    for command, name in (("back", "0 increment"), ("step 2", "2 assign"), ("rnext", "1 scale")):
        event = kernel.after("stopped", lambda line=command: kernel.run(f"%fluid {line}"))
        assert frames(kernel, event)[0]["name"] == f"block 1, iteration 0: {name}"
        assert name.split()[1] in kernel.run("%fluid where")
    kernel.debug("disconnect", restart=False, terminateDebuggee=False)
    told = len(kernel.events("stopped"))
    assert "assign" in kernel.run("%fluid step")
    assert len(kernel.events("stopped")) == told
    kernel.after("stopped", lambda: switch_on(kernel))
    kernel.after("continued", lambda: kernel.run("%fluid continue"))
    kernel.after("stopped", lambda: kernel.run("%fluid back"))
    kernel.after("continued", lambda: kernel.run("%fluid debug off"))


def test_ctrl_c_and_pause(kernel: LiveKernel) -> None:
    switch_on(kernel)
    click(kernel, LOOP, 9)
    cell = kernel.start(RUN)
    kernel.until(lambda: bool(kernel.events("stopped")))
    frame = frames(kernel, kernel.events("stopped")[-1])[0]["id"]
    main = "__import__('sys')._current_frames()[__import__('threading').main_thread().ident].f_code.co_qualname"
    kernel.until(
        lambda: kernel.debug("evaluate", expression=main, frameId=frame)["body"]["result"] == "'DebuggerProxy._wait'"
    )
    kernel.manager.interrupt_kernel()
    shown = kernel.finish(cell)
    assert "The run was left paused." in shown
    assert "File" not in shown
    assert "1:1" in kernel.run("%fluid where")
    kernel.run("%fluid debug off")
    click(kernel, LOOP)

    endless = LOOP.replace("[1], 'int64', 3)", "[1], 'int64', 1 << 60)").replace("scale=2.0", "scale=1.0")
    kernel.run(endless, "net-cell")
    kernel.after("stopped", lambda: kernel.run("%fluid debug --fetch total"))
    kernel.debug("continue", threadId=1)
    event = kernel.after("stopped", lambda: kernel.debug("pause", threadId=1))
    assert frames(kernel, event)
    cell = kernel.start("%fluid continue")
    kernel.until(lambda: kernel.text(cell) != "" or not kernel.debug("debugInfo")["body"]["stoppedThreads"])
    event = kernel.after("stopped", kernel.manager.interrupt_kernel)
    assert "paused" in kernel.finish(cell)


def test_a_failing_operator_goes_on_to_its_error(kernel: LiveKernel) -> None:
    switch_on(kernel)
    bad = "%%fluid bad\ndata = layers.data('data', shape=[2])\nr = layers.reshape(layers.relu(data), [-1, 3])"
    kernel.run(bad, "bad-cell")
    click(kernel, bad, 3)
    cell = kernel.start("fluid.Executor().run(feed={'data': np.ones((2, 2), 'float32')}, fetch_list=[r])")
    kernel.until(lambda: bool(kernel.events("stopped")))
    event = kernel.after("stopped", lambda: kernel.debug("continue", threadId=1))
    assert event["body"]["reason"] == "exception"
    assert "reshape" in frames(kernel, event)[0]["name"]
    kernel.debug("continue", threadId=1)
    assert "sizes do not divide" in kernel.finish(cell)


def test_switching_off_lets_a_run_go_on(kernel: LiveKernel) -> None:
    switch_on(kernel)
    click(kernel, LOOP, 9)
    cell = kernel.start(RUN)
    kernel.until(lambda: bool(kernel.events("stopped")))
    kernel.debug("disconnect", restart=False, terminateDebuggee=False)
    assert "[512]" in kernel.finish(cell)
    assert "[512]" in kernel.run(RUN)


def test_unloading_leaves_no_trace(kernel: LiveKernel) -> None:
    look = (
        "k = get_ipython().kernel; 'do_debug_request' in vars(k), k.debugger.event_callback == k._publish_debug_event"
    )
    assert "(True, False)" in kernel.run(look)
    switch_on(kernel)
    click(kernel, LOOP, 9)
    cell = kernel.start(RUN)
    kernel.until(lambda: bool(kernel.events("stopped")))
    click(kernel, LOOP)
    kernel.debug("continue", threadId=1)
    kernel.finish(cell)
    kernel.run("%unload_ext fluidnb")
    assert "(False, True)" in kernel.run(look)
    assert kernel.debug("debugInfo")["body"]["isStarted"]
