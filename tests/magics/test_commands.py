"""The words of %fluid."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import FluidError, NotFound
from fluidnb_magics import commands, completion, line_magic
from fluidnb_magics.arguments import evaluate, pairs
from fluidnb_magics.commands import COMMANDS, CommandTable
from fluidnb_magics.commands._command import defined
from tests.magics.conftest import Session
from tests.magics.test_cells import LOOP, model
from tests.magics.test_parameters import FEED, value


def test_every_word_has_help(session: Session) -> None:
    shown = session.run("%fluid")
    for word in COMMANDS:
        assert f"%fluid {word} " in shown
        help_text = session.run(f"%fluid {word} --help")
        assert f"\n  %fluid {word}" in help_text
    assert "%%fluid net " in shown and "\n  %%fluid [" in session.run("%%fluid?")


@pytest.mark.parametrize("line", ["%fluid help show", "%fluid show?", "  %fluid show ?", "%fluid show??"])
def test_help_of_one_word(session: Session, line: str) -> None:
    assert session.run(line) == session.run("%fluid show --help")


def test_help_of_a_word_that_is_none(session: Session) -> None:
    error, _ = session.fail("%fluid shwo?")
    assert 'Did you mean "show"' in str(error)


def test_a_file_is_a_command(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else names it: it has help, a line in the overview, its options at Tab, and is in %fluid's docstring."""
    (tmp_path / "greet.py").write_text(
        "from fluidnb_magics.commands._command import Section, argument, command\n"
        "@command(Section.SESSION, 'greet --times 2')\n"
        "@argument('--times', type=int, default=1)\n"
        "def greet(bench, args):\n"
        "    'Print a greeting.'\n"
        "    print('hello ' * args.times)\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    table = CommandTable()
    for module in (completion, line_magic):
        monkeypatch.setattr(module, "COMMANDS", table)
    assert "hello hello" in session.run("%fluid greet --times 2")
    assert re.search(r"%fluid greet --times 2 +Print a greeting\.", session.run("%fluid"))
    assert "--times TIMES" in session.run("%fluid greet --help")
    assert "--times" in completion.Completion(session.bench).offered(["%fluid", "greet"])
    monkeypatch.undo()
    sys.modules.pop("fluidnb_magics.commands.greet")
    assert isinstance(session.fail("%fluid greet")[0], UsageError)


def test_a_cell_defines_a_command(session: Session) -> None:
    session.run(
        "from fluidnb_magics.commands import Section, argument, command\n"
        "@command(Section.INSPECT, 'greet')\n"
        "@argument('--times', type=int, default=1)\n"
        "def greet(bench, args):\n"
        "    'Print a greeting.'\n"
        "    print('hello ' * args.times)"
    )
    try:
        assert "hello hello" in session.run("%fluid greet --times 2")
        assert re.search(r"%fluid greet +Print a greeting\.", session.run("%fluid"))
        assert "--times TIMES" in session.run("%fluid greet?")
        assert "--times" in completion.Completion(session.bench).offered(["%fluid", "greet"])
        session.run("@command(Section.INSPECT, 'greet')\ndef greet(bench, args):\n    'Print.'\n    print('good day')")
        assert session.run("%fluid greet") == "good day\n"
    finally:
        defined.pop("greet")


@pytest.mark.parametrize("word", ["show", "step"])
def test_a_cell_leaves_the_commands_of_the_package(session: Session, word: str) -> None:
    session.run("from fluidnb_magics.commands import Section, command")
    error, _ = session.fail(f"@command(Section.INSPECT, 'greet')\ndef {word}(bench, args):\n    'Print a greeting.'")
    assert f"%fluid {word} exists." in str(error)
    assert word not in defined and COMMANDS[word].help != "Print a greeting."


def test_the_docstring_lists_every_command(session: Session) -> None:
    shown = session.shell.find_line_magic("fluid").__doc__.rpartition("Commands: ")[2]
    words, _, debugger = shown.partition("; and those of a debug session, as ")
    assert words == ", ".join(COMMANDS.files)
    assert set(debugger.rstrip(".").replace(" and ", ", ").split(", ")) <= set(COMMANDS) - set(COMMANDS.files)
    folder = Path(commands.__file__).parent
    assert {path.stem for path in folder.glob("[!_]*.py")} < set(COMMANDS)


def test_a_word_that_is_none(session: Session) -> None:
    error, _ = session.fail("%fluid shwo")
    assert isinstance(error, UsageError)
    assert '"show"' in str(error)


def test_show(session: Session) -> None:
    model(session)
    shown = session.run("%fluid show")
    assert "h = elementwise_add(X=h.tmp_0, Y=h.b_0, axis=1)" in shown
    assert "cell net, line 2" in shown
    assert shown.index("forward") < shown.index("backward") < shown.index("optimizer")
    assert "fill_constant" in session.run("%fluid show --startup")
    assert "square" not in session.run("%fluid show net")
    assert "more op" in session.run("%fluid show --limit 3")
    assert "Variable h" in session.run("%fluid show h")
    assert "p  1 block, 2 ops" in session.run("p = fluid.default_main_program().prune([h])\n%fluid show p")
    assert "float32[-1, 10]" in session.run("%fluid graph")


def test_blocks(session: Session) -> None:
    session.run(LOOP)
    shown = session.run("%fluid block")
    assert "block 1  in block 0        while  turns  from cell loop  2 ops, 0 variables" in shown
    assert "i = increment(i)" in session.run("%fluid block 1")
    error, _ = session.fail("%fluid block 7")
    assert "no block 7" in str(error)


def test_run_shows_and_gives_values(session: Session) -> None:
    model(session)
    session.run(FEED)
    shown = session.run("%fluid run --feed x=X[:2] y=np.ones((2, 1), 'float32') --fetch loss,pred")
    assert "loss  float32[1]" in shown
    assert "pred  float32[2, 1]" in shown
    session.run("got = %fluid run --feed x=X y=Y --fetch pred")
    assert np.asarray(session.names["got"][0]).shape == (8, 1)
    shown = session.run("%fluid run --feed x=X y=Y --fetch loss --steps 20")
    assert "20/20" in shown
    error, _ = session.fail("%fluid run --feed x=X --fetch loss")
    assert "'y'" in str(error)
    error, _ = session.fail("%fluid run --feed x=X y=Y --fetch lss")
    assert '"loss"' in str(error)


def test_kept_scopes(session: Session) -> None:
    session.run(LOOP)
    session.run("%fluid run --keep --fetch i")
    shown = session.run("%fluid scope")
    assert "block 1, iteration 2" in shown
    assert "[3]" in session.run("%fluid scope i")


def test_scope_of_one_variable(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run("%fluid run --feed x=X y=Y")
    assert "float32[4, 10]" in session.run("%fluid scope")
    assert "h.w_0" in session.run("%fluid scope h.w_0")
    error, _ = session.fail("%fluid scope h.w_1")
    assert '"h.w_0"' in str(error)


def test_set(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run("%fluid run --feed x=X y=Y")
    session.run("%fluid set h.b_0=0.5")
    assert np.array_equal(value("h.b_0"), np.full(10, 0.5, "float32"))
    session.run("%fluid set h.b_0=np.arange(10)")
    assert value("h.b_0")[9] == 9
    before = fluid.get_flags("check_nan_inf")
    session.run("%fluid set check_nan_inf=True")
    assert fluid.get_flags("check_nan_inf") == {"check_nan_inf": True}
    fluid.set_flags(before)
    assert "check_nan_inf" in session.run("%fluid set")
    error, _ = session.fail("%fluid set h.b_1=3")
    assert '"h.b_0"' in str(error)


def test_set_refuses_what_a_variable_does_not_hold_and_then_sets_nothing(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run("%fluid run --feed x=X y=Y")
    before, flags = value("h.b_0"), fluid.get_flags()
    for bad in ("1+2j", "None", "np.datetime64('2020')", "'abc'", "object()", "10**400", "[1,2]", "[[1],[2,3]]"):
        error, _ = session.fail(f"%fluid set check_nan_inf=True h.b_0=7 h.w_0={bad}")
        assert isinstance(error, FluidError), error
    session.fail("%fluid set h.b_0=7 check_nan_inf=True nope=1")
    session.fail("%fluid set h.b_0=7 check_nan_inf=maybe")
    assert np.array_equal(value("h.b_0"), before) and fluid.get_flags() == flags


def test_train(session: Session) -> None:
    model(session)
    session.run(
        "def rows():\n    for i in range(32):\n        yield np.full(4, i / 32, 'float32'), np.ones(1, 'float32')"
    )
    shown = session.run("%fluid train rows --batch 8 --passes 3 --watch loss")
    assert "12/12" in shown
    assert "pass 3/3" in shown
    assert "loss" in shown
    session.run("batches = fluid.batch(rows, 8)\n%fluid train batches --watch loss --fields x y")
    error, _ = session.fail("%fluid train rows --watch loss")
    assert "sample" in str(error)
    session.fail("%fluid train 3")


@pytest.mark.parametrize("command", ["run", "block", "train rows"])
def test_a_program_that_is_none(session: Session, command: str) -> None:
    session.run("rows = list\n%fluid seed 1")
    session.run("%%fluid g --program gan\nlayers.data('z', [1])")
    error, _ = session.fail(f"%fluid {command} --program gann")
    assert isinstance(error, NotFound)
    assert '"gan"' in str(error)
    assert "gann" not in session.run("%fluid programs")


@pytest.mark.parametrize("line", ["run --steps 0", "run --steps -1", "train list --passes 0", "show --limit -2"])
def test_a_count_is_positive(session: Session, line: str) -> None:
    error, _ = session.fail(f"%fluid {line}")
    assert isinstance(error, UsageError)
    assert "1 or more is expected" in str(error)


def test_a_name_in_quotes(session: Session) -> None:
    assert "my cell  1 op" in session.run("%%fluid 'my cell'\nlayers.fill_constant([1], 'float32', 1.0)")
    assert "removed: my cell" in session.run('%fluid drop "my cell"')


def test_edits_that_cannot_be_made_again_are_listed_as_stale(session: Session) -> None:
    session.run("%%fluid a\nv = layers.fill_constant([1], 'float32', 1.0)")
    session.run("fluid.layers.relu(v)")
    assert "stale" not in session.run("%fluid cells")
    session.run("%fluid drop a")
    assert "(edits outside cells)  stale: " in session.run("%fluid cells")


def test_pairs_and_expressions() -> None:
    assert pairs(["x=a[1:,", "2]", "y=np.ones((2,", "3))", "z='a", "b'"]) == {
        "x": "a[1:, 2]", "y": "np.ones((2, 3))", "z": "'a b'",
    }  # fmt: skip
    with pytest.raises(UsageError):
        pairs(["x"])
    with pytest.raises(UsageError):
        evaluate("1 +", {})


def test_tab(session: Session) -> None:
    model(session)

    def offered(text: str) -> list[str]:
        with provisionalcompleter():
            return [c.text for c in session.shell.Completer.completions(text, len(text))]

    assert offered("%fluid tra") == ["train"]
    assert "--feed" in offered("%fluid run --f")
    assert "loss" in offered("%fluid run --fetch lo")
    assert offered("%fluid drop ne") == ["net"]
    assert "--append" in offered("%%fluid net --a")
