"""The design documents' words in cells: named as the user names them, replaced whole when a cell runs again."""

from __future__ import annotations

import fluidnb as fluid
from tests.magics.conftest import Session

DATA = """%%fluid data
x = pd.sequence({values})
m = pd.var(0)
W, U = pd.var(0.314, param=True), pd.var(0.375, param=True)
"""
NET = """%%fluid net
rnn = pd.create_rnn(inputs=[x])
with rnn.stepnet() as net:
    now = net.set_inputs(0)
    h = net.add_memory(init=m, name="h")
    a = pd.layer.fc(W, now)
    b = pd.layer.fc(U, h.pre())
    act = pd.sigmoid(pd.add(a, b))
    h.update(act)
    net.set_outputs(0, a, b)
o1, o2 = rnn()
"""


def test_an_rnn_of_the_documents_runs_again_as_a_cell(session: Session) -> None:
    session.run("from fluidnb.compat import pd")
    session.run(DATA.format(values=[10, 20, 30]))
    session.run(NET)
    program = fluid.default_main_program()
    before = program.desc.serialize_to_string()
    assert [n for n in program.block(1).vars if "." not in n] == ["a", "h", "b", "act"]
    session.run(NET)
    assert program.desc.serialize_to_string() == before
    session.run("first = pd.evaluate(o1)")
    assert [round(float(v), 4) for v in session.names["first"].ravel()] == [3.14, 6.28, 9.42]
    session.run(DATA.format(values=[10, 20]))  # the network is built again over the new sequence
    session.run("first = pd.evaluate(o1)")
    assert [round(float(v), 4) for v in session.names["first"].ravel()] == [3.14, 6.28]


def test_a_sequence_used_as_it_is_runs_again_as_a_cell(session: Session) -> None:
    session.run("from fluidnb.compat import pd\nimport warnings\nwarnings.simplefilter('ignore')")
    session.run(DATA.format(values=[10, 20, 30]))
    cell = NET.replace("    now = net.set_inputs(0)\n", "").replace("now", "x").replace("inputs=[x]", "")
    session.run(cell)
    before = fluid.default_main_program().desc.serialize_to_string()
    session.run(cell)
    assert fluid.default_main_program().desc.serialize_to_string() == before
    session.run("second = pd.evaluate(o2)")
    assert [round(float(v), 4) for v in session.names["second"].ravel()] == [0, 0.3594, 0.3745]


def test_branches_of_the_documents_run_again_as_a_cell(session: Session) -> None:
    session.run("from fluidnb.compat import pd")
    cell = """%%fluid choice
x = pd.minibatch([10, 20, 30])
cond = pd.larger_than(x, 15)
ie = pd.ifelse()
with ie.true_block():
    ie.output(pd.layer.add_scalar(x, pd.var(1)))
with ie.false_block():
    ie.output(x)
[out] = ie(cond)
"""
    for _ in range(2):
        session.run(cell)
        session.run("got = pd.evaluate(out)")
        assert session.names["got"].ravel().tolist() == [10, 21, 31]
    assert fluid.default_main_program().num_blocks == 3


def test_cells_go_on_with_the_step_of_an_rnn(session: Session) -> None:
    session.run("from fluidnb.compat import pd")
    session.run(DATA.format(values=[10, 20, 30]) + "rnn = pd.create_rnn(inputs=[x])")
    session.run("%fluid block open rnn")
    session.run("%%fluid reads --in rnn\nnow, h = rnn.set_inputs(0), rnn.memory(init=m)")
    session.run("%%fluid makes --in rnn\na, b = pd.layer.fc(W, now), pd.layer.fc(U, h.pre())")
    session.run("%%fluid acts --in rnn\nact = pd.sigmoid(pd.add(a, b))")
    session.run("%%fluid gives --in rnn\nh.update(act)\nrnn.output(a, b)")
    session.run("%fluid block close rnn")
    session.run("%%fluid out\no1, o2 = rnn()")
    session.run("second = pd.evaluate(o2)")
    assert [round(float(v), 4) for v in session.names["second"].ravel()] == [0, 0.3594, 0.3745]
    before = fluid.default_main_program().desc.serialize_to_string()
    session.run("%%fluid gives --in rnn\nh.update(act)\nrnn.output(a, b)")
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_parameters_without_a_shape_get_one_again(session: Session) -> None:
    session.run("from fluidnb.compat import pd")
    session.run("%%fluid data\nx = pd.sequence([10, 20, 30])\nm = pd.var(0)\nW = pd.tensor()\nU = pd.tensor()")
    session.run(NET)
    assert session.names["W"].parameter.shape == (1,)
    before = fluid.default_main_program().desc.serialize_to_string()
    session.run(NET)
    assert fluid.default_main_program().desc.serialize_to_string() == before
    wider = NET.replace("a = pd.layer.fc(W, now)", "a = pd.layer.fc(W, pd.layer.concat([now, now], axis=1))")
    session.run(wider.replace("pd.add(a, b)", "pd.add(pd.layer.reduce_sum(a, dim=1, keep_dim=True), b)"))
    assert session.names["W"].parameter.shape == (2, 2)
