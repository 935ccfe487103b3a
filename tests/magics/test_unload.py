"""Unloading leaves no trace, and loading again starts anew."""

from __future__ import annotations

import sys
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from fluidnb.program import hooks
from fluidnb.utils.source_location import cell_names
from tests.magics.conftest import Session
from tests.magics.test_cells import LOOP, model


def traces(shell: InteractiveShell) -> dict[str, Any]:
    """Everything in a shell that an extension may touch."""
    manager = shell.magics_manager
    return {
        # IPython adds its own magics at their first use.
        "magics": {n for found in manager.magics.values() for n in found if "fluid" in n},
        "registry": {n for n in manager.registry if "Fluid" in n},
        "events": {name: list(found) for name, found in shell.events.callbacks.items()},
        "matchers": list(shell.Completer.custom_matchers),
        "formatters": {m: dict(f.type_printers) for m, f in shell.display_formatter.formatters.items()},
        "deferred": {m: dict(f.deferred_printers) for m, f in shell.display_formatter.formatters.items()},
        "configurables": [type(c) for c in shell.configurables if "fluid" in type(c).__module__],
        "names": {n for n in shell.user_ns if not n.startswith("_")},
        "hidden": {n for n in shell.user_ns_hidden if not n.startswith("_")},
        "transformers": [list(shell.input_transformers_post), list(shell.ast_transformers)],
        "methods": {n for n in vars(shell) if callable(vars(shell)[n])},
        "hooks": (hooks.name_hint, hooks.before_run),
        "cells": dict(cell_names),
        "display": (sys.displayhook, sys.excepthook, shell.display_pub),
    }


def test_no_trace(bare_shell: InteractiveShell, capsys: Any) -> None:
    session = Session(bare_shell, capsys)
    session.run("unrelated = 1")
    before = traces(bare_shell)
    session.run("%load_ext fluidnb")
    assert traces(bare_shell) != before
    model(session)
    session.run(LOOP)
    session.run("%fluid show")
    session.fail("%%fluid bad\n1/0")
    session.run("%fluid reset")
    session.run("%unload_ext fluidnb")
    after = traces(bare_shell)
    for what in before:
        assert after[what] == before[what], what


def test_names_of_the_user_stay(bare_shell: InteractiveShell, capsys: Any) -> None:
    session = Session(bare_shell, capsys)
    session.run("layers = 'mine'")
    session.run("%load_ext fluidnb")
    assert session.names["layers"] == "mine"
    session.run("%unload_ext fluidnb")
    assert session.names["layers"] == "mine"
    assert "fluid" not in session.names


def test_loading_twice_changes_nothing(session: Session) -> None:
    bench = session.bench
    before = traces(session.shell)
    session.run("%load_ext fluidnb_magics")
    assert session.bench is bench
    assert traces(session.shell) == before


def test_reloading_starts_anew(session: Session) -> None:
    model(session)
    session.run("%reload_ext fluidnb")
    assert session.bench.cells == []
    assert "no cells yet" in session.run("%fluid cells")
