"""%fluid's help: groups with an example of each command, similar commands told apart, options that are named alike."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

import pytest
from IPython.core.error import UsageError

from fluidnb.cli.entry import COMMANDS as CLI
from fluidnb.cli.entry import make_parser
from fluidnb.errors import NotFound
from fluidnb_magics.commands import COMMANDS, _alike
from fluidnb_magics.commands._command import Section
from fluidnb_magics.session.workbench import Workbench
from tests.magics.conftest import Session

NET = """%%fluid net
x = layers.data("x", shape=[10])
y = layers.data("y", shape=[1])
h = layers.fc(x, 4)
loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
cond = layers.less_than(layers.zeros([1], "int64"), layers.ones([1], "int64"))
turns = layers.While(cond)
with turns.block():
    layers.assign(layers.zeros([1], "bool"), cond)
"""
DATA = """import numpy as np
X, Y = np.ones((4, 10), "float32"), np.ones((4, 1), "float32")
batches = [{"x": X, "y": Y}]
before, after = fluid.Program(), fluid.Program()
"""
#: Commands whose example is not run here -> why.
NOT_RUN = {
    "attach": "it needs a training by several roles; tests/magics/test_roles.py runs it",
    "roles": "it needs a program with an optimizer; tests/magics/test_roles.py runs it",
    "serve": "it opens a port that another process may have; tests/magics/test_serve.py runs it",
    "compile": "it writes a folder; tests/magics/test_compile.py runs it",
    "compat": "it changes the modules of the process; tests/magics/test_old_names.py runs it",
    "open": "it needs a saved model; tests/magics/test_open.py runs it",
    "share": "it writes a file; tests/magics/test_share.py runs it",
    "block": "it leaves a block open; tests/magics/test_blocks.py runs it",
}
#: What has to be done before an example.
BEFORE = {
    "clear": ["break nan"], "who": ["continue"], "unwatch": ["watch loss"], "up": ["break block 1", "continue"],
    "down": ["break block 1", "continue", "up"],
    "undo": ["drop net"], "plan": ["run --feed x=X y=Y"], "history": ["step"], "watch": ["next"], "edit": ["step 2"],
    "print": ["until square", "next", "next"],
}  # fmt: skip


@pytest.fixture
def net(session: Session) -> Session:
    """The program that the examples are about."""
    session.run(NET)
    session.run(DATA)
    session.run("%fluid run --feed x=X y=Y --fetch loss")
    return session


def test_the_overview_has_the_groups_and_an_example_of_each_command(session: Session) -> None:
    shown = session.run("%fluid")
    headings = [line for line in shown.splitlines() if re.fullmatch(r"\w+", line)]
    assert headings == ["Build", "Inspect", "Run", "Debug", "Kernels", "Session"] == [s.value for s in Section]
    for command in COMMANDS.values():
        assert f"  %fluid {command.example} " in shown and command.example.split()[0] == command.word


@pytest.mark.parametrize("word", COMMANDS)
def test_the_example_of_a_command_runs(word: str, net: Session) -> None:
    if word in NOT_RUN:
        return
    if COMMANDS[word].section is Section.DEBUG and word not in ("debug", "nan"):
        net.run("%fluid debug --feed x=X y=Y --fetch loss")
    for line in BEFORE.get(word, []):
        net.run(f"%fluid {line}")
    try:
        net.run(f"%fluid {COMMANDS[word].example}")
        assert f"%fluid {COMMANDS[word].example}\n" in net.run(f"%fluid {word}?")
    finally:
        net.run("%fluid debug off\n%fluid nan off")


@pytest.mark.parametrize(
    "group", ["show explore tree graph uses", "who uses history", "set edit change", "drop reset clear"]
)
def test_similar_commands_are_told_apart_in_the_help_of_each(group: str, session: Session) -> None:
    words = group.split()
    for word in words:
        shown = session.run(f"%fluid {word} --help")
        assert f"\n  > {word} " in shown
        assert all(re.search(rf"\n  [> ] {other}  ", shown) for other in words)


def test_similar_commands_are_commands_and_differ() -> None:
    for group in _alike._GROUPS:
        assert set(group) <= set(COMMANDS) and len(set(group.values())) == len(group)
    assert _alike.beside("plan") == ""


def test_an_option_is_the_same_wherever_it_is() -> None:
    """Takes a value or not, and what it is called, are the same in all commands of %fluid and of fluidnb.

    ``--feed`` has expressions in a notebook, and a file in a shell.
    """
    actions = defaultdict(set)
    words = make_parser()._subparsers._group_actions[0].choices
    magics = [c.parser for c in COMMANDS.values() if c.parser is not None]
    assert len(magics) + len(words) > 40 and set(words) == set(CLI)
    for parser in (*magics, *words.values()):
        for action in parser._actions:
            for name in action.option_strings:
                flag = isinstance(action, argparse._StoreTrueAction | argparse._HelpAction)
                where = name if name != "--feed" else f"{name} of {'%fluid' if parser in magics else 'fluidnb'}"
                actions[where].add((flag, action.metavar or (None if flag else action.dest.upper())))
    assert {name: kinds for name, kinds in actions.items() if len(kinds) > 1} == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%fluid show --serach x", '%fluid show does not take --serach. Did you mean "--search"?'),
        ("%fluid uses x --zzz", "%fluid uses does not take --zzz. It has --program."),
        ("%fluid cells --zzz", "%fluid cells does not take --zzz. It has no options."),
        ("%%fluid net --prgram p\n1", '%%fluid does not take --prgram p. Did you mean "--program"?'),
    ],
)
def test_an_unknown_option_lists_the_options(line: str, said: str, session: Session) -> None:
    error, _ = session.fail(line)
    assert isinstance(error, UsageError) and str(error) == said


def test_ops_of_a_layer(session: Session) -> None:
    shown = session.run("%fluid ops fc")
    assert "layers.fc(input, size, " in shown and "appends mul, elementwise_add, relu, in its example:" in shown
    assert "row_conv" in session.run("%fluid ops *conv*") and "mul" not in session.run("%fluid ops *conv*")
    state = session.state()
    assert "appends lstm, in its example" in session.run("%fluid ops dynamic_lstm")
    assert session.state() == state, "the example is tried elsewhere"
    error, _ = session.fail("%fluid ops fcc")
    assert isinstance(error, NotFound) and '"fc"' in str(error)


def test_tab_offers_help_and_choices(bench: Workbench) -> None:
    from fluidnb_magics.completion import Completion

    offered = Completion(bench).offered
    assert {"show", "help"} < set(offered(["%fluid"])) and "show" in offered(["%fluid", "help"])
    assert offered(["%fluid", "cost", "--by"]) == ["op", "layer", "cell", "role"]
    assert "--program" in offered(["%fluid", "cost"]) and "on" in offered(["%fluid", "debug"])


@pytest.fixture
def bench(session: Session) -> Workbench:
    """The session behind the magics."""
    return session.bench
