"""Names and signatures of Fluid's API: what is there takes Fluid's arguments, what is not says why.

``api_signatures.txt`` has a line for each name, with a tier: 1 and 2 must be there, 3 may refuse with a reason.
"""

from __future__ import annotations

import ast
import functools
import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Never

import pytest

import fluidnb as fluid
import fluidnb.compat.pd
from fluidnb import core
from fluidnb.errors import NotBuiltYet
from fluidnb.files import plain_pickle
from fluidnb.layer_helper import LayerHelper
from fluidnb.net import Error, NetDesc
from fluidnb.values import VarType

Parameter = inspect.Parameter

ROWS = [
    tuple(line.split(" ", 1))
    for line in Path(__file__).with_name("api_signatures.txt").read_text().splitlines()
    if not line.startswith("#")
]

#: name, or the start of names -> (the parameters in which we differ, why). We only ever take more than Fluid does.
OURS: dict[str, tuple[str, str]] = {
    "Program": ("desc", "a program over a description that there is already, as Program.parse_from_string makes it"),
    "Program.to_string": ("throw_on_error", "0.11 calls it without arguments"),
    "Executor": ("place", "left out, it is the CPU"),
    "Executor.run": ("keep_scopes", "scopes that stay for inspection"),
    "create_lod_tensor": ("place", "left out, it is the CPU"),
    "LoDTensor": ("array lod_ place name", "made of an array at once"),
    "LoDTensor.set_lod": ("absolute", "the design documents count rows on every level"),
    "LoDTensorArray": ("tensors", "made of tensors at once"),
    "transpiler.CodeGenerator": ("batch embed_weights max_steps", "sizes; embedded parameters; bounds of loops"),
    "transpiler.CodeGenerator.transpile": ("program feed fetch", "left out, the main program without feeds"),
    "transpiler.CodeGenerator.build": ("dirname flags", "where it is built, and with which flags"),
    "CUDAPlace": ("arg0", "left out, it is the first device"),
    "ParamAttr": ("clip", "0.11's word for gradient_clip"),
    "WeightNormParamAttr": ("clip", "the same"),
    "DataFeeder": ("place", "left out, it is the CPU"),
    "DataFeeder.decorate_reader": ("multi_devices", "there is one device"),
    "Scope": ("parent block", "a scope inside another, with the index of its block"),
    "layers.StaticRNN": ("main_program", "0.11's way of saying to which program a layer adds"),
    "layers.linear_chain_crf": ("length", "1.6's way of saying which rows of a padded batch count"),
    "layers.crf_decoding": ("length", "the same"),
    "layers.chunk_eval": ("seq_length", "the same"),
    "layers.warpctc": ("input_length label_length", "the same"),
    "layers.IfElse": ("cond inputs output_num", "pd.create_ifelseop of the design documents takes the condition last"),
    "layers.noam_decay": ("learning_rate", "1.6's factor"),
    "clip.append_gradient_clip_ops": ("clip", "the clip of minimize(grad_clip=), which apply_gradients hands on"),
    "optimizer.Optimizer.apply_gradients": ("grad_clip", "the same"),
    "backward.append_backward": ("checkpoints", "1.6's way of saying what recomputation keeps"),
    "optimizer.": ("global_step", "0.11's counter of steps"),
    # section 1
    "Var": ("param name", "a parameter, and a separate name"),
    "layers.control_flow.BlockGuard": ("parent_idx", "a block around the new one that is not the current one"),
    "switch": ("name", "as all layers, it may be named"),
    "less_equal": ("name", "the same"),
    "larger": ("name", "the same"),
    "CompiledProgram": ("build_strategy", "1.6 takes it here"),
    "compat.pd.": (
        "name shape dtype param size num_flatten_dims params param_attr bias_attr act inputs output_num",
        "the design documents leave out what has a default",
    ),
    # sections 7 and 8
    "dataset.cifar.": ("cycle", "1.3's way to go on for ever"),
    "dataset.movielens.": ("rand_seed test_ratio", "how ratings are split"),
    "transpiler.InferenceTranspiler.transpile": ("place", "left out, it is the CPU"),
    "evaluator.Evaluator.": ("executor", "left out, it is one on the CPU"),
    "evaluator.ChunkEvaluator": ("kwargs", "the programs, as the other evaluators take them"),
    "metrics.": ("name", "left out, it is the class's"),
    "debugger.pprint_program_codes": ("show_backward", "as for blocks"),
    "debuger.pprint_program_codes": ("show_backward", "the same"),
    "memory_optimization_transpiler.": ("skip_opt_set skip_grads", "of 1.x; a bool that comes second is 0.12's log"),
    # section 9
    "framework.Program.to_string": ("throw_on_error", "0.11 calls it without arguments"),
    "framework.Program.": ("prune_read_op", "1.4 takes it"),
    "framework.Block": ("idx", "left out, it is the first block"),
    "framework.Block.": ("type inputs outputs attrs throw_on_error end", "a kind of operator may need none of them"),
    "framework.Variable.to_string": ("throw_on_error", "0.11 calls it without arguments"),
    "framework.Operator.to_string": ("throw_on_error", "the same"),
    "framework.Parameter": ("shape dtype", "left out, an initialiser's array says them"),
    "layer_helper.LayerHelper.": ("attr shape dtype", "left out, they are those of the layer's input"),
    # section 10
    "core.": ("parent block absolute tensors value other op since type", "beyond what the C++ core takes"),
    # section 11
    "net.": ("inputs outputs attrs cost place parent net settings", "left out, they have a sensible value"),
}


THERE = [text for tier, text in ROWS if tier != "T3"]
CALLED = [text for text in THERE if "(" in text]
SAME = [text for text in THERE if " = " in text and "(" not in text]
NAMED = [text for text in THERE if "(" not in text and " = " not in text]


def expected(text: str) -> tuple[str, inspect.Signature]:
    """A row's name and signature."""
    name, _, rest = text.partition("(")
    found: dict[str, Any] = {
        "LOD_TENSOR": VarType.LOD_TENSOR,
        "pickle": pickle,
        "plain_pickle": plain_pickle,
        "flowers": fluid.dataset.flowers,
    }
    exec(f"def f({rest}: ...", found)
    return name, inspect.signature(found["f"])


def look_up(name: str) -> Any:
    """The object of a dotted name, from fluid on: an attribute, or one of an object that its class makes."""
    value: Any = fluid
    for i, part in enumerate(parts := name.split("."), 1):
        owner = ".".join(parts[: i - 1])
        value = getattr(value, part, None) if part in dir(value) else getattr(made().get(owner, value), part)
    return value


@functools.cache
def made() -> dict[str, Any]:
    """Objects of the classes that set attributes when they are made."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.layers.data("x", [3])
        y = fluid.layers.fc(x, 2)
        program = fluid.default_main_program()
        return {
            "framework.Program": program,
            "framework.Block": program.global_block(),
            "framework.Operator": program.global_block().ops[0],
            "framework.Parameter": y.param,
            "framework.Variable": y,
            "evaluator.Evaluator": fluid.evaluator.Evaluator("base"),
            "layer_helper.LayerHelper": LayerHelper("fc"),
            "core.Scope": core.Scope(),
            "core.BlockDesc": program.desc.block(0),
            "net.Error": Error(),
            "net.NetDesc": NetDesc(),
        }


def ours(value: Any) -> list[Parameter]:
    """Our parameters; self is left out, and what only collects misspelled ones."""
    parameters = inspect.signature(value).parameters.values()
    return [p for p in parameters if p.name != "self" and p.annotation not in (Never, "Never")]


def plain(default: Any) -> Any:
    """A default by what it means: a tuple stands for Fluid's list, which nobody may change."""
    return list(default) if isinstance(default, tuple) else default


def differences(want: inspect.Signature, have: list[Parameter]) -> Iterator[tuple[str, bool]]:
    """The parameters in which ours differ, each with whether every call of Fluid's still means the same."""
    theirs = [p for p in want.parameters.values() if p.kind not in (Parameter.VAR_KEYWORD, Parameter.KEYWORD_ONLY)]
    open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in want.parameters.values())
    by_name = {p.name for p in want.parameters.values() if p.kind is Parameter.KEYWORD_ONLY}
    for i, p in enumerate(theirs):
        q = have[i] if i < len(have) else None
        if p.kind is Parameter.POSITIONAL_ONLY:
            if q is None or q.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                yield p.name, q is not None and q.kind is Parameter.VAR_POSITIONAL
        elif q is None or q.kind is not p.kind or p.name not in (q.name, "arg0"):
            yield p.name, False
        elif plain(q.default) != plain(p.default):
            yield p.name, p.default is Parameter.empty
    for name in by_name:
        if not any(q.name == name and plain(q.default) == want.parameters[name].default for q in have):
            yield name, False
    for q in have[len(theirs) :]:
        optional = q.default is not Parameter.empty or q.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        if q.name not in by_name and not (open_ended and optional):
            yield q.name, optional


def agreed(name: str) -> str:
    """The parameters in which we may differ."""
    exact = OURS.get(name)
    return (exact or next((v for k, v in OURS.items() if k.endswith(".") and name.startswith(k)), ("", "")))[0]


def refuses(name: str) -> bool:
    """Whether a call of a name, or of what it belongs to, raises NotBuiltYet with advice."""
    owner, _, _ = name.rpartition(".")
    for n in (name, owner):
        try:
            value = look_up(n)
        except AttributeError:
            continue
        try:
            (value if callable(value) else value.anything)(None)
        except NotBuiltYet as e:
            return bool(e.hint)
        except Exception:
            return False
    return False


@pytest.mark.parametrize("text", CALLED)
def test_what_fluid_has_is_there_with_its_signature(text: str) -> None:
    name, want = expected(text)
    found = list(differences(want, ours(look_up(name))))
    assert all(harmless for _, harmless in found), f"{inspect.signature(look_up(name))} for {want}"
    assert {parameter for parameter, _ in found} <= set(agreed(name).split()), "say why in OURS, or take Fluid's"


@pytest.mark.parametrize("name", NAMED)
def test_what_fluid_has_is_there(name: str) -> None:
    look_up(name)  # AttributeError where it is absent; None is the value of some


@pytest.mark.parametrize("text", SAME)
def test_another_name_is_the_same(text: str) -> None:
    name, _, other = text.partition(" = ")
    if other.startswith("'"):
        assert look_up(name) == ast.literal_eval(other)
    else:
        assert look_up(name) is look_up(other)


@pytest.mark.parametrize("text", [text for tier, text in ROWS if tier == "T3"])
def test_the_rest_is_there_or_says_why_not(text: str) -> None:
    if "(" not in text:
        assert refuses(text) or look_up(text) is not None
        return
    name, want = expected(text)
    if not refuses(name):
        assert not list(differences(want, ours(look_up(name))))


def test_no_reason_is_left_over() -> None:
    """Every difference that OURS explains is still there."""
    wants: dict[str, list[inspect.Signature]] = {}
    for text in CALLED:
        name, want = expected(text)
        wants.setdefault(name, []).append(want)
    for key, (parameters, why) in OURS.items():
        names = [n for n in wants if n == key or key.endswith(".") and n.startswith(key) and n not in OURS]
        found = {p for n in names for want in wants[n] for p, _ in differences(want, ours(look_up(n)))}
        assert found == set(parameters.split()) and why, key


def test_the_table_is_whole() -> None:
    """As many rows of each tier as there were when it was made, and none twice."""
    tiers = [tier for tier, _ in ROWS]
    assert [tiers.count(f"T{i}") for i in (1, 2, 3)] == [939, 159, 93]
    assert len({text for _, text in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("want", "have", "found"),
    [
        ("x, y=1", lambda x, y=1: None, []),
        ("x, y=1", lambda x, y=2: None, [("y", False)]),
        ("x", lambda x, y=2: None, [("y", True)]),
        ("x", lambda x, y: None, [("y", False)]),
        ("x", lambda y: None, [("x", False)]),
        ("x, /", lambda y: None, []),
        ("x, /", lambda: None, [("x", False)]),
        ("x, /", lambda *, y: None, [("x", False)]),
        ("x, *, z=3", lambda x, y=1, z=3: None, [("y", True)]),
        ("x, *, z=3", lambda x, z=4: None, [("z", False)]),
        ("x, **kw", lambda x, y=1, *rest, **more: None, []),
        ("x, **kw", lambda x, y: None, [("y", False)]),
    ],
)  # fmt: skip
def test_the_rule_itself(want: str, have: Any, found: list[tuple[str, bool]]) -> None:
    assert list(differences(expected(f"f({want})")[1], ours(have))) == found
