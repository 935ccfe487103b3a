"""Unique names, and results that are called as the user calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fluidnb.program import Block, Program, Variable, hooks, layer, name_scope, unique_name
from fluidnb.program import layer_calls as naming


@pytest.fixture
def block(programs: tuple[Program, Program]) -> Block:
    block = programs[0].global_block()
    block.create_var(name="x", shape=[-1, 3], dtype="float32")
    return block


@pytest.fixture
def wish() -> Iterator[Callable[..., None]]:
    """Sets what the user's line would suggest."""
    before = hooks.name_hint

    def say(prefix: str, *targets: str) -> None:
        hooks.name_hint = lambda frame: hooks.Hint(prefix, targets)

    yield say
    hooks.name_hint = before


@layer
def fc(source: Variable, times: int = 1) -> Any:
    """A layer with a parameter, and with as many results as asked for."""
    block = source.block
    name = naming.layer_name("fc")
    w = block.create_parameter(name=unique_name.generate(name + ".w"), shape=[3], dtype="float32")
    results = []
    for _ in range(times):
        out = block.create_var(name=unique_name.generate(name + ".tmp"), shape=[], dtype="float32")
        block.append_op("t_sum", {"X": [source, w]}, {"Out": out})
        results.append(out)
        source = out
    return results[0] if times == 1 else results


def test_fluid_counters_without_a_wish(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "name_hint", None)
    a, b = fc(block.var("x")), fc(block.var("x"))
    assert (a.name, a.param.name, b.name, b.param.name) == ("fc_0.tmp_0", "fc_0.w_0", "fc_1.tmp_0", "fc_1.w_0")


def test_the_result_is_called_as_the_user_calls_it(block: Block, wish: Callable[..., None]) -> None:
    wish("h", "h")
    h = fc(block.var("x"))
    assert (h.name, h.param.name, h.op.output("Out")) == ("h", "h.w_0", ["h"])
    again = fc(h)
    assert (again.name, again.param.name, again.op.input("X")) == ("h_1", "h.w_1", ["h", "h.w_1"])
    assert list(block.vars) == ["x", "h.w_0", "h", "h.w_1", "h_1"]


def test_several_results(block: Block, wish: Callable[..., None]) -> None:
    wish("a", "a", "b")
    a, b = fc(block.var("x"), 2)
    assert (a.name, b.name, b.op.input("X")) == ("a", "b", ["a", "a.w_0"])


def test_what_the_user_named_keeps_its_name(block: Block, wish: Callable[..., None]) -> None:
    wish("h", "h")
    assert layer(lambda: block.create_var(name="data", shape=[1]))().name == "data"
    assert layer(lambda: block.var("x"))().name == "x"
    assert layer(lambda: fc(block.var("x")).param)().name == "h.w_0"


def test_inner_layers_take_part_in_the_outermost(block: Block, wish: Callable[..., None]) -> None:
    wish("h", "h")

    @layer
    def two(source: Variable) -> Variable:
        result: Variable = fc(fc(source))
        return result

    h = two(block.var("x"))
    assert h.name == "h"
    assert [p.name for p in h.params] == ["h.w_0", "h.w_1"]


def test_operators_are_layers(block: Block, wish: Callable[..., None]) -> None:
    wish("y", "y")
    y = block.var("x") * 2 + 1
    assert y.name == "y_1"
    assert y.block.var("y").op.type == "scale"


def test_a_result_of_an_inner_block_is_renamed_inside_blocks_too(block: Block, wish: Callable[..., None]) -> None:
    wish("r", "r")

    @layer
    def branch() -> Variable:
        out = block.create_var(name=unique_name.generate("out.tmp"), shape=[], dtype="float32")
        with block.program.block_guard() as inner:
            inner.append_op("t_same", {"X": "x"}, {"Out": out})
        block.append_op("t_loop", {"X": "x"}, {"Out": out}, {"sub_block": inner})
        return out

    r = branch()
    assert r.name == "r"
    assert block.program.block(1).ops[0].output("Out") == ["r"]
    assert block.ops[-1].output("Out") == ["r"]


def test_generators() -> None:
    with unique_name.guard("A"):
        assert [unique_name.generate("fc"), unique_name.generate("fc")] == ["Afc_0", "Afc_1"]
        with unique_name.guard():
            assert unique_name.generate("fc") == "fc_0"
        assert unique_name.generate("fc") == "Afc_2"


@pytest.mark.parametrize("prefix", ["", None])
def test_an_empty_name_scope_is_refused(prefix: str | None) -> None:
    with pytest.raises(AssertionError, match="namescope prefix cannot be empty."), name_scope(prefix):
        pass
