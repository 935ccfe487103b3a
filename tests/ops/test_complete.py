"""Every operator is documented and tested."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.op import all_ops, get_op, has_op
from fluidnb.testing import OpTest

OURS = [d.type for d in all_ops() if d.module.startswith("fluidnb_kernels.")]
FORWARD = [t for t in OURS if not get_op(t).is_grad]


def covered() -> set[str]:
    """The operator types of all OpTests in this folder."""
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.stem != Path(__file__).stem:
            importlib.import_module(f"tests.ops.{path.stem}")
    found, left = set(), list(OpTest.__subclasses__())
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if any(name.startswith("test_") for name in dir(kind)):
            found.add(kind.op_type)
    return found


def test_every_operator_has_an_op_test():
    assert sorted(set(FORWARD) - covered()) == [], "an OpTest in tests/ops with op_type as an attribute of its class"


def test_every_gradient_operator_belongs_to_an_operator():
    others = {"stright_throuth_estimator_grad": "moving_average_abs_max_scale"}  # Paddle's name, after what it does
    ours = [t.replace("_double_grad", "_grad_grad") for t in OURS if get_op(t).is_grad]  # Paddle's second gradients
    owners = [others.get(t) or re.sub(r"_grad(\d?)$", r"\1", t) for t in ours]
    assert [t for t in owners if not has_op(t) or get_op(t).grad is None] == []


@pytest.mark.parametrize("type", OURS)
def test_every_operator_is_documented(type):
    definition = get_op(type)
    assert definition.doc.strip(), "a formula or a sentence"
    for slot in (*definition.inputs.values(), *definition.outputs.values()):
        assert slot.doc, f"what {slot.name} is"
    for name, attr in definition.attrs.items():
        assert attr.doc, f"what {name} is for"
    if not definition.is_grad:
        assert "Source:" in definition.doc
        assert "Example:" in definition.doc or definition.control


@pytest.mark.parametrize("type", FORWARD)
def test_the_example_of_every_operator(type, capsys):
    """Tables of operators make their documentation, so the usual collection of examples does not see it."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(get_op(type).doc, {"np": np, "fluid": fluid}, type, None, None)
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(example)
    assert runner.failures == 0, capsys.readouterr().out
    assert runner.tries > 0 or get_op(type).control
