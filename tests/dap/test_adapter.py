"""The debug adapter on a session: where it stands, what is looked at and changed, breakpoints, ways back, refusals."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.dap import ScriptSources
from fluidnb.dap.references import BASE
from fluidnb.dap.wire import read_message
from fluidnb.debug.session import Session
from fluidnb.distributed.training import Shares, Training
from tests.dap import programs
from tests.dap.client import Direct
from tests.dap.programs import ROW, line_of


@pytest.fixture
def session() -> Iterator[Session]:
    """The counting program at its first operator."""
    loss = programs.counting()
    d = fluid.debug(feed={"x": ROW}, fetch_list=[loss])
    yield d
    d.close()


def client(session: Session, **hello: bool) -> Direct:
    return Direct(session, ScriptSources(lambda: session.program), **hello)


@pytest.fixture
def c(session: Session) -> Iterator[Direct]:
    """One client that sees the first stop."""
    c = client(session, supportsInvalidatedEvent=True, supportsVariablePaging=True)
    assert c.start()["reason"] == "entry"
    yield c
    c.adapter.close()


HERE = {"path": programs.__file__}


def test_frames_are_blocks_at_the_users_lines(c: Direct) -> None:
    c.ask(
        "setBreakpoints",
        source=HERE,
        breakpoints=[{"line": line_of("layers.increment(i)"), "condition": "v['x'][0, 0] == 1"}],
    )
    stopped = c.move("continue")
    assert stopped["reason"] == "breakpoint" and stopped["hitBreakpointIds"]
    inner, outer = c.frames()
    assert (inner["name"], inner["line"]) == ("block 1, iteration 0: 0 increment", line_of("layers.increment(i)"))
    assert (outer["name"], outer["line"]) == ("block 0: 5 while", line_of("with layers.While(more)"))
    assert inner["source"]["path"] == programs.__file__
    page = c.ask("stackTrace", threadId=c.thread, startFrame=1, levels=1)
    assert page["stackFrames"] == [outer] and page["totalFrames"] == 2


def test_scopes_open_from_the_operator_outwards(c: Direct) -> None:
    c.move("next")
    names = [row["name"] for row in c.ask("scopes", frameId=c.frames()[0]["id"])["scopes"]]
    assert names == [
        "fill_constant: inputs", "fill_constant: outputs", "fill_constant: attributes", "block 0", "user's scope",
    ]  # fmt: skip
    relu = next(row for row in c.scope("block 0") if row["name"] == "relu_0.tmp_0")
    assert (relu["value"], relu["evaluateName"], relu["indexedVariables"]) == (
        "float32[1, 2]  [1, 0]",
        "v['relu_0.tmp_0']",
        1,
    )
    facts = c.ask("variables", variablesReference=relu["variablesReference"], filter="named")["variables"]
    assert {row["name"]: row["value"] for row in facts}["shape"] == "[1, 2]"
    (row,) = c.ask("variables", variablesReference=relu["variablesReference"], filter="indexed")["variables"]
    cells = c.ask("variables", variablesReference=row["variablesReference"], filter="indexed")["variables"]
    assert [(cell["name"], cell["value"], cell["evaluateName"]) for cell in cells] == [
        ("[0]", "1.0", "v['relu_0.tmp_0'][0][0]"), ("[1]", "0.0", "v['relu_0.tmp_0'][0][1]"),
    ]  # fmt: skip
    assert c.ask("evaluate", expression=cells[1]["evaluateName"])["result"] == "0.0"
    attrs = {row["name"]: row["value"] for row in c.scope("fill_constant: attributes")}
    assert attrs["shape"] == "[1]"


def test_a_step_goes_into_a_loop_over_it_and_out_of_it(c: Direct, session: Session) -> None:
    for _ in range(5):
        c.move("next")
    assert session.snapshot.op.type == "while"
    c.move("stepIn")
    assert [f.block for f in session.snapshot.frames] == [0, 1]
    c.move("stepOut")
    assert session.snapshot.op.type == "mean"
    c.move("stepBack")
    assert session.snapshot.op.type == "while"
    c.move("next")
    c.move("stepBack", granularity="instruction")
    assert (session.snapshot.frames[-1].block, session.snapshot.frames[-1].iteration) == (1, 2)
    frame = c.frames()[0]
    c.move("restartFrame", frameId=frame["id"])
    assert session.snapshot.op.type == "increment" and session.snapshot.frames[-1].iteration == 2
    c.move("restart")
    assert session.snapshot.at == 0
    assert c.move("continue")["description"] == "the end" and session.results[0] == [3.0]


def test_going_back_over_a_value_that_was_set(c: Direct, session: Session) -> None:
    c.move("next")
    (scope,) = [s for s in c.ask("scopes", frameId=c.frames()[0]["id"])["scopes"] if s["name"] == "block 0"]
    c.quiet()
    given = c.ask("setVariable", variablesReference=scope["variablesReference"], name="relu_0.tmp_0", value="[5, 7]")
    assert given["value"] == "float32[1, 2]  [5, 7]" and c.quiet() == []
    row = c.ask("variables", variablesReference=given["variablesReference"], filter="indexed")["variables"][0]
    assert row["value"] == "float32[2]  [5, 7]"
    assert c.ask("setExpression", expression="v['relu_0.tmp_0'][0][1]", value="x.sum() + 3")["value"] == "2.0"
    assert session["relu_0.tmp_0"].tolist() == [[5.0, 2.0]]
    c.move("stepBack")
    assert session["relu_0.tmp_0"].tolist() == [[5.0, 7.0]]
    c.move("stepBack")
    assert session["relu_0.tmp_0"].tolist() == [[1.0, 0.0]] and session.snapshot.op.type == "fill_constant"


def test_what_cannot_be_set_leaves_everything_as_it_was(c: Direct, session: Session) -> None:
    c.move("next")
    c.move("next")
    before = session.snapshot.at
    assert "cannot hold" in c.refused("setExpression", expression="fill_constant_0.tmp_0", value="1.5")
    assert "cannot hold" in c.refused("setExpression", expression="fill_constant_0.tmp_0[0]", value="1.5")
    for part in ("", "[0]"):
        assert "cannot hold" in c.refused("setExpression", expression=f"fill_constant_0.tmp_0{part}", value="2**70")
    assert "cannot have this value" in c.refused("setExpression", expression="relu_0.tmp_0[7]", value="1")
    assert "nothing that can be set" in c.refused("setExpression", expression="1 + 1", value="1")
    assert "has no tensor" in c.refused("setExpression", expression="nobody", value="1")
    assert session.snapshot.at == before and session["fill_constant_0.tmp_0"].tolist() == [0]


def test_breakpoints_of_all_kinds(c: Direct, session: Session) -> None:
    (made,) = c.ask("setFunctionBreakpoints", breakpoints=[{"name": "reduce_*", "hitCondition": "== 2"}])["breakpoints"]
    assert made["verified"] and made["id"] >= BASE
    stopped = c.move("continue")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("function breakpoint", [made["id"]])
    assert session.snapshot.frames[-1].iteration == 1
    c.ask("setFunctionBreakpoints", breakpoints=[])
    total = session.program.desc.blocks[0].ops[3].outs["Out"][0]
    info = c.ask("dataBreakpointInfo", name=total)
    assert info["dataId"] == total and info["accessTypes"] == ["write"]
    c.ask("setDataBreakpoints", breakpoints=[{"dataId": total, "condition": f"v[{total!r}][0] > 1"}])
    assert c.move("continue")["reason"] == "data breakpoint"
    assert session[total] == [2.0]
    assert c.move("reverseContinue")["description"].endswith("backwards")
    assert session[total] == [1.0]  # just before it was written
    c.ask("setDataBreakpoints", breakpoints=[])
    assert c.ask("dataBreakpointInfo", name="nobody")["dataId"] is None
    assert session.breakpoints == ()


def test_reverse_continue_stops_where_a_breakpoint_would_have(c: Direct, session: Session) -> None:
    c.ask("setBreakpoints", source=HERE, breakpoints=[{"line": line_of("layers.increment(i)")}])
    c.move("continue")
    c.move("continue")
    assert session.snapshot.frames[-1].iteration == 1
    assert c.move("reverseContinue")["description"].endswith("backwards")
    assert session.snapshot.frames[-1].iteration == 0
    c.move("reverseContinue")
    assert session.snapshot.at == 0


def test_log_points_say_something_and_never_stop(c: Direct, session: Session) -> None:
    line = line_of("layers.increment(i)")
    point = {"line": line, "logMessage": "x has {x.sum()}, {nobody}", "hitCondition": ">= 3"}
    c.ask("setBreakpoints", source=HERE, breakpoints=[point])
    c.ask("continue", threadId=c.thread)
    said = c.event("output")
    assert said["output"] == 'x has -1.0, {nobody: "nobody" has no value here.}\n' and said["line"] == line
    assert c.event("stopped")["description"] == "the end"
    c.move("reverseContinue")
    assert session.snapshot.at == 0 and "output" not in c.quiet()


def test_a_condition_that_makes_no_sense(c: Direct, session: Session) -> None:
    line = line_of("layers.relu(x)")
    broken = [{"line": line, "condition": "x >"}, {"line": line, "hitCondition": "often"}]
    rows = c.ask("setBreakpoints", source=HERE, breakpoints=broken)["breakpoints"]
    assert [row["verified"] for row in rows] == [False, False]
    assert "no condition" in rows[0]["message"] and "no count of hits" in rows[1]["message"]
    c.ask("setBreakpoints", source=HERE, breakpoints=[{"line": line_of("total = "), "condition": "x + 'a'"}])
    c.ask("continue", threadId=c.thread)
    assert "cannot be evaluated" in c.event("output")["output"]
    assert c.event("stopped")["reason"] == "breakpoint" and session.snapshot.op.index == 3


def test_a_breakpoint_moves_down_to_the_next_line_that_made_an_operator(c: Direct) -> None:
    rows = c.ask("setBreakpoints", source=HERE, breakpoints=[{"line": line_of("x = layers.data")}, {"line": 4000}])
    first, none = rows["breakpoints"]
    assert first["verified"] and first["line"] == line_of("layers.relu(x)")
    assert not none["verified"] and "No operator was created" in none["message"]
    places = c.ask("breakpointLocations", source=HERE, line=1, endLine=line_of("total = "))["breakpoints"]
    assert [row["line"] for row in places] == [line_of(t) for t in ("layers.relu(x)", "i, n = ", "total = ")]


def test_one_line_that_makes_several_operators_stops_at_the_first(c: Direct, session: Session) -> None:
    c.ask("setBreakpoints", source=HERE, breakpoints=[{"line": line_of("i, n = ")}])
    c.move("continue")
    assert (session.snapshot.op.block, session.snapshot.op.index) == (0, 1)
    assert c.move("continue")["description"] == "the end"


def test_nan_is_stopped_at_like_an_exception() -> None:
    y = layers.log(layers.data("x", shape=[2]))
    layers.relu(y)
    session = fluid.debug(feed={"x": ROW})
    c = client(session)
    rows = c.ask("setExceptionBreakpoints", filters=["error"], filterOptions=[{"filterId": "nan"}])["breakpoints"]
    assert [row["verified"] for row in rows] == [True, True]
    c.start()
    assert c.move("continue")["reason"] == "exception" and session.snapshot.op.type == "relu"
    assert "Nothing has failed" in c.refused("exceptionInfo", threadId=c.thread)
    session.close()


def test_an_operator_that_fails_is_an_exception() -> None:
    y = layers.reshape(layers.data("x", shape=[2]), [-1, 3])
    session = fluid.debug(feed={"x": ROW}, fetch_list=[y])
    c = client(session)
    c.start()
    stopped = c.move("continue")
    assert stopped["reason"] == "exception" and "reshape" in stopped["text"]
    info = c.ask("exceptionInfo", threadId=c.thread)
    assert info["exceptionId"] == "RuleError" and info["breakMode"] == "always"
    assert c.frames()[0]["name"].startswith("block 0: 0 reshape")
    session.close()


def test_a_large_tensor_comes_in_pages() -> None:
    layers.scale(layers.data("x", shape=[1000]), scale=1.0)
    session = fluid.debug(feed={"x": np.tile(np.arange(1000, 2000, dtype="float32"), (5000, 1))})
    c = client(session, supportsVariablePaging=True)
    c.start()
    (x,) = c.scope("scale: inputs")
    assert x["indexedVariables"] == 5000
    page = c.ask("variables", variablesReference=x["variablesReference"], filter="indexed", start=4998, count=50)
    assert [row["name"] for row in page["variables"]] == ["[4998]", "[4999]"]
    inner = page["variables"][1]["variablesReference"]
    cells = c.ask("variables", variablesReference=inner, filter="indexed", start=10, count=2)["variables"]
    assert [row["value"] for row in cells] == ["1010.0", "1011.0"]
    plain = client(session)  # one that cannot ask for pages opens ranges
    plain.start()
    (x,) = plain.scope("scale: inputs")
    rows = plain.ask("variables", variablesReference=x["variablesReference"])["variables"]
    ranges = [row for row in rows if ":" in row["name"]]
    assert len(ranges) == 50 and ranges[-1]["name"] == "[4900:5000]"
    assert len(plain.ask("variables", variablesReference=ranges[-1]["variablesReference"])["variables"]) == 100
    session.close()


def test_lod_selected_rows_and_arrays_open() -> None:
    words = layers.data("words", shape=[1], dtype="int64", lod_level=1)
    table = layers.embedding(words, size=[10, 2], is_sparse=True, param_attr="table")
    loss = layers.mean(layers.sequence_pool(table, "sum"))
    fluid.append_backward(loss)
    fluid.Executor().run(fluid.default_startup_program())
    fed = fluid.create_lod_tensor(np.array([[1], [2], [3]], "int64"), [[1, 2]], fluid.CPUPlace())
    session = fluid.debug(feed={"words": fed})
    c = client(session)
    c.start()
    ids = next(row for row in c.scope("lookup_table: inputs") if row["name"] == "words")
    parts = c.ask("variables", variablesReference=ids["variablesReference"])["variables"]
    assert {row["name"]: row["value"] for row in parts}["LoD"] == "lod [[0, 1, 3]]"
    sequences = next(row for row in parts if row["name"] == "sequences")
    rows = c.ask("variables", variablesReference=sequences["variablesReference"])["variables"]
    assert [row["value"] for row in rows] == ["int64[1, 1]  [1]", "int64[2, 1]  [2, 3]"]
    c.move("continue")
    grad = next(row for row in c.scope("block 0") if row["name"] == "table@GRAD")
    assert grad["value"] == "SelectedRows: 3 of 10"
    parts = c.ask("variables", variablesReference=grad["variablesReference"])["variables"]
    assert [row["name"] for row in parts] == ["rows", "height", "value"]
    session.close()


def test_expressions_and_completions(c: Direct, session: Session) -> None:
    c.move("next")
    frame = c.frames()[0]["id"]
    assert c.ask("evaluate", expression="relu_0.tmp_0", frameId=frame, context="hover")["result"].startswith(
        "float32[1, 2]"
    )
    assert c.ask("evaluate", expression="np.abs(x).sum()", context="repl")["result"] == "3.0"
    assert "ZeroDivisionError" in c.refused("evaluate", expression="1 / 0")
    session.around = {"hidden": session.program.global_block().var("relu_0.tmp_0")}
    assert c.ask("evaluate", expression="hidden.max()")["result"] == "1.0"
    targets = c.ask("completions", text="1 + rel", column=8)["targets"]
    assert [(t["label"], t["start"], t["length"]) for t in targets] == [("relu_0.tmp_0", 4, 3)]


def test_a_program_without_lines_is_shown_as_a_listing() -> None:
    programs.counting()
    program = fluid.Program.parse_from_string(fluid.default_main_program().desc.serialize_to_string())
    session = fluid.debug(program, feed={"x": ROW})
    c = client(session)
    c.start()
    (frame,) = c.frames()
    assert frame["source"]["name"] == "program.fluid" and frame["line"] == 2
    text = c.ask("source", sourceReference=frame["source"]["sourceReference"])["content"].splitlines()
    assert text[0] == "block 0" and text[1].endswith("relu(x)") and "block 1" in text
    assert c.ask("loadedSources")["sources"] == [frame["source"]]
    line = next(n for n, row in enumerate(text, 1) if "reduce_sum" in row)
    c.ask("setBreakpoints", source=frame["source"], breakpoints=[{"line": line}])
    c.move("continue")
    assert session.snapshot.op.type == "reduce_sum" and c.frames()[0]["line"] == line
    assert "no such source" in c.refused("source", sourceReference=77)
    session.close()


def test_a_client_that_counts_from_0(session: Session) -> None:
    c = client(session, linesStartAt1=False, columnsStartAt1=False)
    c.start()
    line = line_of("layers.increment(i)")
    (made,) = c.ask("setBreakpoints", source=HERE, breakpoints=[{"line": line - 1}], lines=[line - 1])["breakpoints"]
    assert made["verified"] and made["line"] == line - 1
    c.move("continue")
    assert (c.frames()[0]["line"], c.frames()[0]["column"]) == (line - 1, 0)
    assert [t["label"] for t in c.ask("completions", text="relu", column=4)["targets"]] == ["relu_0.tmp_0"]


def test_two_clients_see_every_stop_and_keep_their_breakpoints_apart(c: Direct, session: Session) -> None:
    other = client(session)
    other.start()
    c.ask("setFunctionBreakpoints", breakpoints=[{"name": "mean"}])
    other.ask("setFunctionBreakpoints", breakpoints=[{"name": "while"}])
    assert c.quiet() == [] and other.quiet() == []
    stopped = c.move("continue")
    assert "hitBreakpointIds" not in stopped
    assert other.event("continued") and other.event("stopped")["hitBreakpointIds"]
    other.adapter.close()
    assert [b.text for b in session.breakpoints] == ["op mean"]
    c.move("continue")
    assert session.snapshot.op.type == "mean" and other.quiet() == []
    session.edit(session.program.desc.blocks[0].ops[3].outs["Out"][0], 8.0)
    assert c.event("invalidated")["areas"] == ["variables"]


def test_commands_from_elsewhere_are_seen(c: Direct, session: Session) -> None:
    session.step()
    assert c.event("continued")["allThreadsContinued"] and c.event("stopped")["description"] == "after 1 step"
    session.watch("x.sum()")
    session.stop_at("op mean")
    assert c.quiet() == []
    session.close()
    c.event("terminated")
    assert "closed" in c.refused("next", threadId=BASE) and "closed" in c.refused("evaluate", expression="x")


def test_numbers_are_ours_and_are_gone_when_the_program_moves(c: Direct) -> None:
    frame = c.frames()[0]["id"]
    request = {"seq": 1, "type": "request", "command": "scopes", "arguments": {"frameId": frame}}
    assert c.adapter.owns(request) and not c.adapter.owns({**request, "arguments": {"frameId": 3}})
    c.move("next")
    assert "the program has moved" in c.refused("scopes", frameId=frame)
    assert "the program has moved" in c.refused("variables", variablesReference=12)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "request", "seq": 5, "command": "scopes"}, "scopes needs frameId"),
        ({"type": "request", "seq": 5, "command": "dance"}, "There is no request dance"),
        ({"type": "request", "seq": 5, "command": "next", "arguments": [1]}, "no object"),
        ({"type": "request", "seq": 5}, "That is no request"),
        ({}, "That is no request"),
        ({"type": "request", "seq": "x", "command": "setBreakpoints", "arguments": {"source": 3}}, "must be an object"),
        ({"type": "request", "seq": 5, "command": "terminate"}, "Nothing here can be ended"),
    ],
)
def test_what_makes_no_sense_is_refused(c: Direct, session: Session, message: dict[str, object], said: str) -> None:
    before = session.snapshot
    answer = c.adapter.handle(message)
    assert not answer["success"] and said in answer["message"] and answer["body"]["error"]["format"]
    assert session.snapshot is before


def test_a_program_that_runs_is_paused_and_gets_breakpoints_between_two_steps() -> None:
    i = layers.fill_constant([1], "int64", 0)
    more = layers.less_than(i, layers.fill_constant([1], "int64", 10**9))
    with layers.While(more).block():
        layers.increment(i)
        layers.less_than(i, layers.fill_constant([1], "int64", 10**9), cond=more)
    session = fluid.debug(feed={}, budget=1 << 20)
    c = client(session)
    c.start()
    c.ask("continue", threadId=c.thread)
    assert "running; pause it first" in c.refused("stackTrace", threadId=c.thread)
    assert "running; pause it first" in c.refused("evaluate", expression="1")
    c.ask("setFunctionBreakpoints", breakpoints=[{"name": "increment"}])
    assert c.event("stopped")["reason"] == "function breakpoint"
    c.ask("setFunctionBreakpoints", breakpoints=[])
    c.ask("continue", threadId=c.thread)
    c.ask("pause", threadId=c.thread)
    assert c.event("stopped")["reason"] == "pause"
    session.close()


@pytest.mark.parametrize("separator", [b"\x1c", b"\x1d", b"\x1f"])
def test_a_length_with_a_control_character_is_read_or_refused(separator: bytes) -> None:
    body = b'{"seq": 1}'
    assert read_message(io.BytesIO(b"Content-Length: %d%s\r\n\r\n%s" % (len(body), separator, body))) == {"seq": 1}


def test_a_client_goes_from_role_to_role_of_a_training() -> None:
    x = layers.data("x", [4])
    loss = layers.mean(layers.fc(x, 3))
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="ps:0,ps:1", trainers=2)
    feed = {"x": np.ones((4, 4), "float32")}
    training = Training(transpiler, Shares(itertools.repeat(feed), dict, 2), [loss.name])
    training.start()
    session = Session(fluid.default_main_program())
    c = client(session)
    try:
        c.ask("attach", role="trainer0")
        assert c.start()["reason"] == "entry"
        assert session.role is not None and session.snapshot.op.type == "mul"
        assert "→ trainer0" in c.ask("evaluate", expression="roles", context="repl")["result"]
        c.move("next")
        assert session.snapshot.op.type == "elementwise_add"
        assert "→ pserver1" in c.ask("evaluate", expression="attach pserver1", context="repl")["result"]
        assert session.snapshot.op.type == "listen_and_serv"
        assert "There is no role trainer5" in c.refused("evaluate", expression="attach trainer5", context="repl")
    finally:
        training.stop()
        assert training.wait(30) and training.error is None
        session.close()
