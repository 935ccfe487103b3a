"""A cell that rewrites the program: memory_optimize in a notebook, run again and undone."""

from __future__ import annotations

from typing import Any

import fluidnb as fluid

NET = """%%fluid net
x = layers.data("x", shape=[4])
h = layers.fc(x, size=3, act={act!r})
out = layers.fc(layers.fc(h, size=3), size=3)
"""
REWRITE = "%%fluid rewrite\nfluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[out])"


def bytes_now() -> bytes:
    """The main program."""
    return fluid.default_main_program().desc.serialize_to_string()


def types() -> list[str]:
    """Its operators."""
    return [op.type for op in fluid.default_main_program().global_block().ops]


def test_rewritten_undone_and_run_again(session: Any) -> None:
    session.run(NET.format(act="relu"))
    plain = bytes_now()
    session.run(REWRITE)
    rewritten = bytes_now()
    assert "delete_var" in types()
    session.run("%fluid undo")
    assert bytes_now() == plain
    session.run(REWRITE)
    assert bytes_now() == rewritten
    session.run(NET.format(act="tanh"))  # the cell that rewrites it follows
    assert "tanh" in types() and "relu" not in types() and "delete_var" in types()
    session.run(NET.format(act="relu"))
    assert bytes_now() == rewritten
    session.run("%fluid drop rewrite")
    assert bytes_now() == plain
