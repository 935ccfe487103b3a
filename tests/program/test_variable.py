"""Variables and parameters: what they say, what they refuse, how they show themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.errors import OpTypeError
from fluidnb.program import Block, Parameter, Program, Variable, hooks, program_guard
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType
from tests.tools.refused import refused


@pytest.fixture
def block() -> Block:
    return Program().global_block()


@pytest.fixture
def x(block: Block) -> Variable:
    return block.create_var(name="x", shape=[-1, 13], dtype="float32", lod_level=1)


def test_names_are_made_when_none_is_given(block: Block) -> None:
    made = [block.create_var(shape=[1]).name for _ in range(3)]
    assert len(set(made)) == 3


def test_what_is_not_said_is_float32_without_lod(block: Block) -> None:
    v = block.create_var(name="v", shape=(2, 3))
    assert (v.dtype, v.lod_level, v.persistable, v.stop_gradient, v.is_data) == (VarType.FP32, 0, False, False, False)


def test_facts_live_in_the_description(x: Variable) -> None:
    x.persistable = x.stop_gradient = x.is_data = True
    assert (x.desc.persistable(), x.desc.stop_gradient(), x.desc.is_data()) == (True, True, True)


def test_other_types_have_no_elements(block: Block) -> None:
    v = block.create_var(name="steps", type=VarType.STEP_SCOPES)
    assert v.type == VarType.STEP_SCOPES
    assert repr(v).startswith("Variable steps: STEP_SCOPES")


@pytest.mark.parametrize(("arguments", "kind"), [
    ({"name": 3}, TypeError), ({"name": ""}, TypeError), ({"shape": ["a"]}, TypeError), ({"shape": [1.5]}, TypeError),
    ({"dtype": "flot32"}, ValueError),
])  # fmt: skip
def test_bad_declarations_leave_no_trace(block: Block, arguments: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        block.create_var(**arguments)
    assert len(block.vars) == 0


@pytest.mark.parametrize(
    "ask", [list, np.array, float, int, lambda v: [1 for _ in v], tuple]
)
def test_what_needs_a_value_is_refused_and_appends_nothing(x: Variable, ask: Any) -> None:
    with pytest.raises(OpTypeError, match="needs a value, and variable x has none") as caught:
        ask(x)
    assert caught.value.hint
    assert len(x.block.ops) == 0


def test_a_variable_is_true_as_scripts_that_ask_for_one_expect(x: Variable) -> None:
    bias: Any = None
    assert bool(x) and (bias or x) is x and (x if x else None) is x
    assert len(x.block.ops) == 0


def test_grad_before_and_after_backward(block: Block, x: Variable) -> None:
    with pytest.raises(ValueError, match=r"no gradient yet: call optimizer\.minimize or append_backward first"):
        _ = x.grad
    g = block.create_var(name="x@GRAD", shape=[-1, 13], dtype="float32")
    assert x.grad is g
    inner = block.program.create_block()
    y = inner.create_var(name="y", shape=[1])
    y.stop_gradient = True
    with pytest.raises(ValueError, match="its stop_gradient is True"):
        _ = y.grad


def test_results_of_layers_know_their_parameters(programs: tuple[Program, Program]) -> None:
    block = programs[0].global_block()
    x = block.create_var(name="x", shape=[-1, 13], dtype="float32")

    @naming.layer
    def layer() -> Variable:
        for name in ("w", "b"):
            block.create_parameter(name=name, shape=[13], dtype="float32")
            programs[1].global_block().create_parameter(name=name, shape=[13], dtype="float32")
        from fluidnb.program import unique_name

        out = block.create_var(name=unique_name.generate("layer.tmp"), shape=[])
        block.append_op("t_same", {"X": x}, {"Out": out})
        return out

    out = layer()
    assert [p.name for p in out.params] == ["w", "b"]
    assert out.param is block.var("w")
    with pytest.raises(ValueError, match="variable x has no parameter"):
        _ = x.param


@pytest.mark.parametrize(("arguments", "text"), [
    ({"shape": [2]}, "must set shape and dtype"), ({"dtype": "float32"}, "must set shape and dtype"),
    ({"shape": [], "dtype": "float32"}, "shape cannot be empty"),
    ({"shape": [-1, 2], "dtype": "float32"}, "shape should not be related with batch-size"),
])  # fmt: skip
def test_bad_parameters(block: Block, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"Parameter w {text}"):
        block.create_parameter(name="w", **arguments)
    assert len(block.vars) == 0


def test_parameters_stay_parameters_in_the_bytes(block: Block) -> None:
    w = block.create_parameter(name="w", shape=[2], dtype="float32", optimize_attr={"learning_rate": 0.5})
    assert isinstance(w, Parameter) and w.persistable and w.optimize_attr == {"learning_rate": 0.5}
    with pytest.raises(AssertionError, match="persistable"):
        w.persistable = False
    again = Program.parse_from_string(block.program.desc.serialize_to_string()).global_block().var("w")
    assert isinstance(again, Parameter) and again.trainable
    assert again.optimize_attr == {"learning_rate": 1.0}


def test_init_attr_goes_in_front_of_a_program_that_stands_alone(block: Block) -> None:
    block.append_op("t_source", outputs={"Out": "first"}, attrs={"shape": [1]})
    w = block.create_parameter(name="w", shape=[3, 2], dtype="float64", init_attr={"type": "t_source"})
    assert [op.output("Out") for op in block.ops] == [["w"], ["first"]]
    assert (block.ops[0].attr("shape"), block.ops[0].attr("dtype")) == ([3, 2], VarType.FP64)
    assert w.initialize_op_attrs == {"type": "t_source", "shape": [3, 2], "dtype": VarType.FP64}


def test_init_attr_goes_to_the_startup_program_of_the_default_program() -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup):
        w = main.create_parameter(name="w", shape=[3], dtype="float32", init_attr={"type": "t_source"})
    assert len(main.global_block().ops) == 0
    twin = startup.global_block().var("w")
    assert isinstance(twin, Parameter) and twin is not w
    assert startup.global_block().ops[0].output("Out") == ["w"]


@pytest.mark.parametrize(("init_attr", "text"), [
    ({"min": -1.0}, "init_attr of parameter w has no type"), ({"type": "t_sorce"}, "t_sorce"),
    ({"type": "t_source", "mean": 0.0}, "no attribute mean"), ("uniform", "init_attr should be a dict"),
])  # fmt: skip
def test_a_bad_init_attr_leaves_no_parameter(block: Block, init_attr: Any, text: str) -> None:
    before = block.program.desc.serialize_to_string()
    with refused((ValueError, TypeError), text):
        block.create_parameter(name="w", shape=[3], dtype="float32", init_attr=init_attr)
    assert block.program.desc.serialize_to_string() == before


def test_repr_shows_shape_lod_and_the_last_value(x: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "last_value", lambda v: None)
    assert repr(x) == "Variable x: float32[-1, 13], LoD 1, no value yet: run its program and fetch it"
    monkeypatch.setattr(hooks, "last_value", lambda v: f"of {v.name}")
    assert repr(x) == "Variable x: float32[-1, 13], LoD 1, last value of x"


def test_repr_works_while_a_program_is_broken(block: Block) -> None:
    v = block.create_var(name="v", type=VarType.SELECTED_ROWS)
    block.remove_var("v")
    assert repr(v).startswith("Variable v: SELECTED_ROWS float32[]")


def test_a_removed_variable_says_so(block: Block, x: Variable) -> None:
    block.remove_var("x")
    with pytest.raises(ValueError, match="variable x is no longer part of its program"):
        _ = x.shape
    with pytest.raises(ValueError, match="variable x is no longer part of its program"):
        block.append_op("t_same", {"X": x}, {"Out": "y"})
