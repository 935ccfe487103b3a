"""Drafts: what a user typed, what is wrong with it, and the line."""

from __future__ import annotations

from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.builder import Draft, find_recipe, recipes, search, suggestion
from fluidnb.errors import NotFound


def names(**more: Any) -> dict[str, Any]:
    x = layers.data("x", [3, 8, 8])
    y = layers.data("y", [1], dtype="int64")
    return {"x": x, "y": y, "layers": layers, "fluid": fluid, **more}


def draft(recipe: str, result: str = "r", known: dict[str, Any] | None = None, **values: Any) -> Draft:
    return Draft(find_recipe(recipe), values, result, names() if known is None else known)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda: draft("fc", input="x", size="10"), "r = layers.fc(x, 10)"),
        (lambda: draft("fc", input=["x", "x"], size="n", known=names(n=7)), "r = layers.fc([x, x], n)"),
        (lambda: draft("relu", x="x"), "r = layers.relu(x)"),
        (lambda: draft("data", name="img", shape="[1, 28, 28]"), 'r = layers.data("img", [1, 28, 28])'),
        (lambda: draft("data", name='"img"', shape="[None, 2]"), 'r = layers.data("img", [None, 2])'),
        (
            lambda: draft("conv2d", input="x", num_filters="6", filter_size="[5, 3]", act="relu"),
            'r = layers.conv2d(x, num_filters=6, filter_size=[5, 3], act="relu")',
        ),
        (
            lambda: draft("fc", input="x", size="4", bias_attr="False", param_attr='fluid.ParamAttr(name="w")'),
            'r = layers.fc(x, 4, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)',
        ),
        (lambda: draft("dropout", x="x", dropout_prob="0.5", is_test="False"), "r = layers.dropout(x, 0.5)"),
        (lambda: draft("topk", "a, b", input="x", k="2"), "a, b = layers.topk(x, 2)"),
        (
            lambda: draft("SGD", "o, g", loss="x", learning_rate="0.1"),
            "o, g = fluid.optimizer.SGD(0.1).minimize(x)",
        ),
        (lambda: draft("append_backward", loss="x"), "r = fluid.backward.append_backward(x)"),
        (
            lambda: draft("gelu", X="x"),
            'r = fluid.default_main_program().current_block().create_var(name="r")\n'
            'r.block.append_op(type="gelu", inputs={"X": x}, outputs={"Out": r});',
        ),
    ],
)
def test_the_line(made: Any, line: str) -> None:
    found = made()
    assert found.problems == {}
    assert found.source() == line


@pytest.mark.parametrize(
    ("made", "field", "said"),
    [
        (lambda: draft("fc", input="x", size="ten"), "size", "Cannot get attribute size of fc by type int"),
        (lambda: draft("fc", input="x", size="2.5"), "size", "received: 2.5 (float)"),
        (lambda: draft("fc", input="x"), "size", "fc needs size."),
        (lambda: draft("fc", input="z", size="3"), "input", "input of fc must be a Variable."),
        (lambda: draft("relu", x="x + x"), "x", "x of relu must be a Variable."),
        (lambda: draft("relu", x="layers.relu(x)"), "x", "x of relu cannot be a call here."),
        (lambda: draft("data", name="a", shape="[1]", dtype="flaot32"), "dtype", "flaot32"),
        (lambda: draft("dropout", x="x", dropout_prob="-1"), "dropout_prob", "dropout_prob"),
        (lambda: draft("relu", "a b", x="x"), "result", "a b is no Python name."),
        (lambda: draft("relu", "layers", x="x"), "result", "layers is taken."),
        (lambda: draft("unique", "a", X="x"), "result", "unique writes Out, Index."),
    ],
)
def test_what_is_wrong_stands_by_its_field(made: Any, field: str, said: str) -> None:
    found = made()
    assert list(found.problems) == [field]
    assert said in str(found.problems[field])
    with pytest.raises(type(found.problems[field])):
        found.source()


def test_what_is_typed_runs_nothing() -> None:
    calls: list[int] = []
    known = names(f=lambda: calls.append(1))
    before = fluid.default_main_program().desc.serialize_to_string()
    for text in ("f()", "[f() for _ in x]", "x + x", "x[0]", "-x", "x == x"):
        assert draft("fc", input="x", size=text, known=known).problems
    assert calls == []
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_an_argument_that_there_is_not() -> None:
    with pytest.raises(NotFound, match=r'Did you mean "size"\?'):
        draft("fc", input="x", sise="3")


def test_suggested_names() -> None:
    assert suggestion(find_recipe("data"), {"name": "img"}, ()) == "img"
    assert suggestion(find_recipe("data"), {"name": "my img"}, ()) == "data1"
    assert suggestion(find_recipe("conv2d"), {}, {"conv1", "conv2"}) == "conv3"
    assert suggestion(find_recipe("Adam"), {}, ()) == "ops, grads"
    assert suggestion(find_recipe("transpose2"), {}, ()) == "transpose1, transpose2"


def test_search() -> None:
    assert [r.name for r in search("fc")][0] == "fc"
    assert "softmax_with_cross_entropy" in [r.name for r in search("logits")]
    assert [r.name for r in search("pool")][:2] == ["pool2d", "pool3d"]
    assert search("no such thing at all") == []
    assert len(search("")) == len(recipes())


def test_what_there_is() -> None:
    found = recipes()
    taken = [r.name for r in found]
    assert len(taken) == len(set(taken))
    assert [r.group for r in found] == sorted((r.group for r in found), key=["layer", "training", "operator"].index)
    assert not {"while", "conditional_block", "feed", "sgd", "relu_grad", "While", "set_defaults"} & set(taken)
    assert all(r.summary and r.arguments for r in found if r.group == "training")
    assert all(r.summary for r in found if r.group == "layer")
    with pytest.raises(NotFound, match=r'Did you mean "softmax"'):
        find_recipe("sofmax")


@pytest.mark.parametrize(
    ("name", "argument", "kind"),
    [
        ("append_backward", "loss", "variable"),
        ("Adam", "loss", "variable"),
        ("distribute_fpn_proposals", "min_level", "int"),
        ("get_places", "device_count", "int"),
    ],
)
def test_an_annotated_type_has_the_kind_of_its_type(name: str, argument: str, kind: str) -> None:
    assert find_recipe(name).argument(argument).kind == kind
