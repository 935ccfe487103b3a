"""Names and signatures of Fluid's API: what is there takes Fluid's arguments, what is not says why.

``api_signatures.txt`` has a line for each name, with a tier: 1 and 2 must be there, 3 may refuse with a reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.errors import NotBuiltYet
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
    "Executor.run": ("keep_scopes unknown", "scopes that stay for inspection; misspelt arguments get a hint"),
    "create_lod_tensor": ("place", "left out, it is the CPU"),
    "LoDTensor": ("array lod_ place name", "made of an array at once"),
    "LoDTensor.set_lod": ("absolute", "the design documents count rows on every level"),
    "LoDTensorArray": ("tensors", "made of tensors at once"),
    "CUDAPlace": ("arg0", "left out, it is the first device"),
    "ParamAttr": ("clip", "0.11's word for gradient_clip"),
    "WeightNormParamAttr": ("clip", "the same"),
    "DataFeeder": ("place", "left out, it is the CPU"),
    "DataFeeder.decorate_reader": ("multi_devices", "there is one device"),
    "Scope": ("parent block", "a scope inside another, with the index of its block"),
    "layers.linear_chain_crf": ("length", "1.6's way of saying which rows of a padded batch count"),
    "layers.crf_decoding": ("length", "the same"),
    "layers.chunk_eval": ("seq_length", "the same"),
    "layers.warpctc": ("input_length label_length", "the same"),
    "layers.IfElse": ("cond inputs output_num", "pd.create_ifelseop of the design documents takes the condition last"),
    "layers.noam_decay": ("learning_rate", "1.6's factor"),
    "clip.append_gradient_clip_ops": ("clip", "the clip of minimize(grad_clip=), which apply_gradients hands on"),
    "optimizer.Optimizer.apply_gradients": ("grad_clip", "the same"),
    "optimizer.": ("global_step", "0.11's counter of steps"),
    "reader.compose": ("check_alignment", "the one keyword that Fluid's takes, by name"),
}


def expected(text: str) -> tuple[str, inspect.Signature]:
    """A row's name and signature."""
    name, _, rest = text.partition("(")
    found: dict[str, Any] = {"LOD_TENSOR": VarType.LOD_TENSOR}
    exec(f"def f({rest}: ...", found)
    return name, inspect.signature(found["f"])


def look_up(name: str) -> Any:
    """What a dotted name is, from fluid on."""
    value: Any = fluid
    for part in name.split("."):
        value = getattr(value, part)
    return value


def ours(value: Any) -> list[Parameter]:
    """Our parameters, self left out."""
    return [p for p in inspect.signature(value).parameters.values() if p.name != "self"]


def plain(default: Any) -> Any:
    """A default by what it means: a tuple stands for Fluid's list, which nobody may change."""
    return list(default) if isinstance(default, tuple) else default


def differences(want: inspect.Signature, have: list[Parameter]) -> Iterator[tuple[str, bool]]:
    """The parameters in which ours differ, each with whether every call of Fluid's still means the same."""
    theirs = [p for p in want.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    for i, p in enumerate(theirs):
        q = have[i] if i < len(have) else None
        if q is None or q.kind is not p.kind or p.name not in (q.name, "arg0"):
            yield p.name, False
        elif plain(q.default) != plain(p.default):
            yield p.name, p.default is Parameter.empty
    for q in have[len(theirs) :]:
        optional = q.default is not Parameter.empty or q.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        yield q.name, optional


def agreed(name: str) -> str:
    """The parameters in which we may differ."""
    exact = OURS.get(name)
    return (exact or next((v for k, v in OURS.items() if k.endswith(".") and name.startswith(k)), ("", "")))[0]


def refuses(name: str) -> bool:
    """Whether a call of a name, or of what it belongs to, raises NotBuiltYet."""
    owner, _, _ = name.rpartition(".")
    for n in (name, owner):
        try:
            value = look_up(n)
        except AttributeError:
            continue
        try:
            value(None)
        except NotBuiltYet as e:
            return bool(e.hint)
        except Exception:
            return False
    return False


@pytest.mark.parametrize("text", [text for tier, text in ROWS if tier != "T3"])
def test_what_fluid_has_is_there_with_its_signature(text: str) -> None:
    name, want = expected(text)
    found = list(differences(want, ours(look_up(name))))
    assert all(harmless for _, harmless in found), f"{inspect.signature(look_up(name))} for {want}"
    assert {parameter for parameter, _ in found} <= set(agreed(name).split()), "say why in OURS, or take Fluid's"


@pytest.mark.parametrize("text", [text for tier, text in ROWS if tier == "T3"])
def test_the_rest_is_there_or_says_why_not(text: str) -> None:
    name, want = expected(text)
    if not refuses(name):
        assert not list(differences(want, ours(look_up(name))))


def test_no_reason_is_left_over() -> None:
    """What OURS explains is still so."""
    wants = dict(expected(text) for tier, text in ROWS if tier != "T3")
    for key, (parameters, why) in OURS.items():
        names = [n for n in wants if n == key or key.endswith(".") and n.startswith(key) and n not in OURS]
        found = {p for n in names for p, _ in differences(wants[n], ours(look_up(n)))}
        assert found == set(parameters.split()) and why, key


def test_the_table_is_whole() -> None:
    """As many rows of each tier as there were when it was made, and none twice."""
    tiers = [tier for tier, _ in ROWS]
    assert [tiers.count(f"T{i}") for i in (1, 2, 3)] == [244, 126, 79]
    assert len({text for _, text in ROWS}) == len(ROWS)
