"""Dry runs: what a line would make, and that nothing of it stays."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.builder import Draft, draft_lines, find_recipe, in_reach, ordered, recipes, rehearse, suggestion
from fluidnb.program import unique_name as counters
from fluidnb.program.program import programs
from fluidnb.runtime import global_scope
from fluidnb.viz import plain

_TEXTS = {"int": "2", "float": "0.5", "bool": "True", "dtype": "float32", "ints": "[1, 2]", "sizes": "2",
          "floats": "[0.5]"}  # fmt: skip


def known(**more: Any) -> dict[str, Any]:
    return {"layers": layers, "fluid": fluid, **more}


def everything() -> tuple[Any, ...]:
    """All that a dry run could leave behind."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    return (
        main, startup, main.desc.serialize_to_string(), startup.desc.serialize_to_string(), main.version,
        startup.version, counters.generator, dict(counters.generator.ids), main.current_block_idx,
        sorted(global_scope().local_var_names()),
    )  # fmt: skip


def test_nothing_stays_of_whatever_is_tried() -> None:
    x, y, h = layers.data("x", [3, 8, 8]), layers.data("y", [1], dtype="int64"), layers.data("h", [8])
    cost = layers.mean(layers.fc(h, 1))
    values = known(x=x, y=y, h=h, cost=cost)
    candidates = in_reach(fluid.default_main_program(), 0, values)
    before, tried = everything(), 0
    for recipe in recipes():
        given: dict[str, Any] = {}
        for a in recipe.arguments:
            if a.required and a.is_input:
                given[a.name] = ordered(a, candidates)[0][0].source
            elif a.required:
                given[a.name] = a.choices[0] if a.kind == "string" and a.choices else _TEXTS.get(a.kind, "[2]")
        draft = Draft(recipe, given, suggestion(recipe, given, values), values)
        if not draft.problems:
            rehearsal = rehearse(draft.source(), draft.targets, values)
            tried += rehearsal.problem is None and bool(rehearsal.results)
    assert tried > 200
    assert everything() == before


def test_what_a_layer_would_make() -> None:
    x = layers.data("x", [13])
    rehearsal = rehearse("h = layers.fc(x, 4, act='relu')", ["h"], known(x=x))
    assert [(name, row.facts) for name, row in rehearsal.results] == [("h", "float32[-1, 4]")]
    assert [(p.name, p.shape) for p in rehearsal.parameters] == [("fc_0.w_0", (13, 4)), ("fc_0.b_0", (4,))]
    assert rehearsal.types == ("mul", "elementwise_add", "relu")
    really = layers.fc(x, 4, act="relu")
    assert really.name == rehearsal.results[0][1].name


def test_what_an_optimizer_would_make() -> None:
    cost = layers.mean(layers.fc(layers.data("x", [13]), 1))
    rehearsal = rehearse("ops, grads = fluid.optimizer.Adam(0.1).minimize(cost)", ["ops", "grads"], known(cost=cost))
    assert rehearsal.ops == {"backward": 4, "optimizer": 2} and rehearsal.problem is None
    forward = len(cost.block.ops)
    fluid.optimizer.Adam(0.1).minimize(cost)
    assert len(cost.block.ops) == forward + 4 + 2


def test_it_says_what_the_line_would_raise() -> None:
    x = layers.data("x", [4, None])
    rehearsal = rehearse("h = layers.fc(x, 3)", ["h"], known(x=x))
    assert "fc needs to know every size of x" in str(rehearsal.problem)
    assert "at:" not in str(rehearsal.problem), "no line of the user's raised it"


def test_inside_a_block() -> None:
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    loop = layers.While(layers.less_than(i, n))
    with loop.block():
        inner = layers.increment(i, in_place=False)
        layers.less_than(i, n, cond=loop.cond_var)
    main = fluid.default_main_program()
    values = known(i=i, inner=inner)
    assert [c.source for c in in_reach(main, 1, values)] == ["inner", "i"]
    assert [c.source for c in in_reach(main, 0, values)] == ["i"]
    before = everything()
    rehearsal = rehearse("j = layers.scale(inner, 2.0)", ["j"], values, block=1)
    assert rehearsal.results[0][1].block == 1 and rehearsal.problem is None
    assert everything() == before


@pytest.mark.parametrize(
    ("recipe", "argument", "first"),
    [
        ("conv2d", "input", "images"),
        ("cross_entropy", "label", "label"),
        ("cross_entropy", "input", "scores"),
        ("sequence_pool", "input", "words"),
        ("SGD", "loss", "cost"),
        ("increment", "x", "one"),
    ],
)
def test_what_fits_is_offered_first(recipe: str, argument: str, first: str) -> None:
    images, label = layers.data("images", [1, 8, 8]), layers.data("label", [1], dtype="int64")
    words = layers.data("words", [5], lod_level=1)
    scores = layers.fc(images, 10, act="softmax")
    cost = layers.mean(scores)
    accuracy, one = layers.accuracy(scores, label), layers.fill_constant([1], "int64", 0)
    values = known(images=images, label=label, words=words, scores=scores, cost=cost, accuracy=accuracy, one=one)
    offered = ordered(find_recipe(recipe).argument(argument), in_reach(fluid.default_main_program(), 0, values))
    assert [c.source for c, fits in offered if fits][0] == first
    assert {c.source for c, _ in offered if c.named} == set(values) - {"layers", "fluid"}


def test_a_variable_that_is_gone_is_not_offered() -> None:
    x = layers.data("x", [4])
    with fluid.program_guard(fluid.Program()):
        other = layers.data("other", [4])
    main = fluid.default_main_program()
    assert [c.source for c in in_reach(main, 0, known(x=x, other=other))] == ["x"]
    main.global_block().desc.remove_var("x")
    assert in_reach(main, 0, known(x=x)) == []


def test_a_parameter_without_a_python_name_can_be_meant() -> None:
    layers.fc(layers.data("x", [4]), 3)
    [weight, _] = in_reach(fluid.default_main_program(), 0, known())
    assert (weight.named, weight.row.name) == (False, "fc_0.w_0")
    assert rehearse(f"m = layers.mean({weight.source})", ["m"], known()).results[0][1].facts == "float32[1]"


def test_the_text_face() -> None:
    x = layers.data("x", [4])
    draft = Draft(find_recipe("fc"), {"input": "x", "size": "0"}, "h", known(x=x))
    text = plain(draft_lines(draft, rehearse(draft.source(), draft.targets, known(x=x))))
    assert text.splitlines()[:2] == ["h = layers.fc(x, 0)", "  fc needs at least one output feature."]
    broken = Draft(find_recipe("fc"), {"input": "x", "size": "a"}, "h", known(x=x))
    assert plain(draft_lines(broken, None)).startswith("Cannot get attribute size")


def test_copies_are_given_back() -> None:
    x = layers.data("x", [4])
    before = set(programs)
    assert rehearse("h = layers.fc(x, 3)", ["h"], known(x=x)).problem is None
    gc.collect()
    assert set(programs) <= before
