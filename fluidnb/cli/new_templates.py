"""Texts of the files that ``fluidnb new`` writes; ``$name`` and the like are filled in."""

from __future__ import annotations

__all__ = [
    "COMMAND", "COMMAND_TEST", "LAYER", "LAYER_TEST", "OP", "OPTIMIZER", "OPTIMIZER_TEST", "OP_TEST",
    "OP_TEST_GRAD", "PASS", "PASS_TEST", "WIDGET", "WIDGET_SCRIPT", "WIDGET_STYLE", "WIDGET_TEST",
]  # fmt: skip

OP = '''"""$name: FILL IN, what it computes in one line."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, default_grad, grad_op, op, same


@op(
    "$name",
    inputs={"X: float": "values, any shape"},
    outputs={"Out": "the shape of X"},
    cost="X",
    infer=same("X", "Out"),
    grad=default_grad("X", "Out@GRAD"),
)
def $name(b: Binder) -> None:
    """Out = FILL IN, a formula.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("$name", {"X": [1.0]})["Out"].shape
        (1,)
    """
    raise NotImplementedError("emit the calls, for example b(np.square, b['X'], out=b['Out'])")


@grad_op("${name}_grad")
def ${name}_grad(b: Binder) -> None:
    """dX = FILL IN, a formula of X and dOut."""
    raise NotImplementedError("emit the calls, for example b(np.multiply, b['X'], b['Out@GRAD'], out=b['X@GRAD'])")
'''

OP_TEST = '''"""$name against numpy and its numeric gradient."""

import numpy as np

from fluidnb.testing import OpTest


class Test${camel}Op(OpTest):
    """FILL IN: say which values are tried, and why those."""

    def setUp(self):
        rng = np.random.default_rng(0)
        self.op_type = "$name"
        self.inputs = {$inputs}
        self.attrs = {$attrs}
        self.outputs = {$outputs}

    def test_check_output(self):
        self.check_output()
$grad'''

OP_TEST_GRAD = '''
    def test_check_grad(self):
        self.check_grad([$checked], "$output")
'''

LAYER = '''"""$name: FILL IN, what it computes in one line."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable, naming

__all__ = ["$name"]


@naming.layer
def $name(x: Variable, name: str | None = None) -> Variable:
    """FILL IN: one sentence.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        The shape of ``x``.

    Example:
        >>> fluid.layers.$name(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("$name", {"X": x}, name=name)
'''

LAYER_TEST = '''"""The layer $name."""

import numpy as np

import fluidnb as fluid


def test_$name():
    x = fluid.layers.data("x", [3])
    y = fluid.layers.$name(x)
    given = np.ones((2, 3), "float32")
    (found,) = fluid.Executor(fluid.CPUPlace()).run(feed={"x": given}, fetch_list=[y])
    assert tuple(y.shape) == (-1, 3)
    np.testing.assert_allclose(found, ...)  # FILL IN: the expected values
'''

OPTIMIZER = '''"""$camel: FILL IN, the paper."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.optimizer.base import Optimizer, ParamGrad
from fluidnb.program import Block, Operator, Parameter, Variable
from fluidnb.regularizer import WeightDecayRegularizer


class ${camel}Optimizer(Optimizer):
    """FILL IN: one sentence.

    Args:
        learning_rate: a number, or a variable of shape [1].
        regularization: weight decay of parameters without a regularizer.
        name: part of the names of accumulators.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [13]), 1))
        >>> ops, pairs = fluid.optimizer.$camel(learning_rate=0.1).minimize(loss)
        >>> ops[0].type
        'sgd'
    """

    type = "$name"

    def __init__(
        self,
        learning_rate: float | Variable,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, regularization, name)

    def create_accumulators(self, block: Block, parameters: Sequence[Parameter]) -> None:
        pass  # FILL IN: self.add_accumulator("moment", parameter) for each parameter

    def append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        return block.append_op(  # FILL IN: the operator of this optimizer
            type="sgd",
            inputs={"Param": param, "Grad": grad, "LearningRate": self.param_learning_rate(param)},
            outputs={"ParamOut": param},
        )
'''

OPTIMIZER_TEST = '''"""$camel against its formula in numpy."""

import numpy as np

import fluidnb as fluid


def test_two_steps():
    x = fluid.layers.data("x", [2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False, param_attr=fluid.initializer.Constant(1.0)))
    fluid.optimizer.$camel(learning_rate=0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[loss])
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    np.testing.assert_allclose(np.array(weight), ...)  # FILL IN: the expected parameter
'''

COMMAND = '''"""``%fluid $name``: FILL IN, what it shows in one line."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT)
@argument("--program", help="a program of this session (main)")
def $name(bench: Workbench, args: Namespace) -> None:
    """FILL IN: one sentence."""
    program = bench.existing(args.program)[0]
    lines: list[Line] = [[(f"{len(program.global_block().ops)} ops", "")]]  # FILL IN: what it shows
    show(bench.shell, lines)
'''

COMMAND_TEST = '''"""``%fluid $name``."""


def test_$name(session):
    session.run("%%fluid net\\nx = layers.data('x', shape=[4])\\nh = layers.fc(x, 3)")
    assert session.run("%fluid $name") == "FILL IN: what it shows"
'''

WIDGET = '''"""$camel as a widget: FILL IN, what it shows in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.widgets.widget import NotebookWidget, script, style


class $camel(NotebookWidget):
    """FILL IN: one sentence.

    Attributes:
        shown: the data that the page draws.
    """

    _esm = script("$name")
    _css = style("$name")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.shown = {"count": 0}  # FILL IN: a model of fluidnb.viz as plain data

    def lines(self) -> Sequence[Line]:
        """The text rendering."""
        return [[(f"{self.shown['count']}", "")]]

    def do_add(self, count: int) -> None:
        """Add a number.

        Args:
            count: the number.
        """
        self.shown = {"count": self.shown["count"] + count}
'''

WIDGET_SCRIPT = '''// $camel: the page draws `shown` and calls do_add of the Python class.

function render({ model, el }) {
  const { body, dispose } = framed(model, el, "$name", {});
  const output = tag("output");
  body.append(tag("button", { onclick: () => ask(model, "add", { count: 1 }) }, "+1"), output);
  const draw = () => (output.textContent = String(model.get("shown").count));
  model.on("change:shown", draw);
  draw();
  return () => {
    model.off("change:shown", draw);
    dispose();
  };
}

export default { render };
'''

WIDGET_STYLE = '''.fw-$name output {
  margin-left: 0.5em;
}
'''

WIDGET_TEST = '''"""The widget $camel without a page."""

from fluidnb_magics.widgets.$name import $camel


def test_$name():
    widget = $camel()
    widget._handle_custom_msg({"do": "add", "count": 2}, [])
    assert widget.shown == {"count": 2}
    assert "FILL IN: the text rendering" in widget.still()["text/plain"]
'''

PASS = '''"""$name: FILL IN, what the pass finds or changes in one line."""

from __future__ import annotations

from fluidnb.program import Program


def $name(program: Program) -> list[str]:
    """FILL IN: one sentence.

    Args:
        program: the program; it stays as it is.

    Returns:
        A text for each operator that it finds.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.data("x", [4]))
        >>> $name(fluid.default_main_program())
        ['block 0, op 0: relu']
    """
    return [f"block {block.idx}, op {index}: {op.type}" for block, index, op in program.each_op()]
'''

PASS_TEST = '''"""The pass $name."""

import fluidnb as fluid
from fluidnb.passes.$name import $name


def test_$name():
    fluid.layers.fc(fluid.layers.data("x", [4]), 3)
    assert $name(fluid.default_main_program()) == ["FILL IN: what it finds"]
'''
