"""Small raw programs that several tests of the runtime walk."""

import numpy as np

from fluidnb.program import Program
from fluidnb.runtime import Scope
from fluidnb.values import CPUPlace


class Raw:
    """Builds a program operator by operator; outputs are declared on the way."""

    def __init__(self):
        self.program = Program()

    def data(self, name, shape, dtype="float32"):
        """A variable of the current block."""
        return self.block.create_var(name=name, shape=shape, dtype=dtype)

    def weight(self, name, shape, dtype="float32"):
        """A persistable variable."""
        return self.program.global_block().create_var(name=name, shape=shape, dtype=dtype, persistable=True)

    @property
    def block(self):
        """The current block."""
        return self.program.current_block()

    def op(self, type, inputs=None, out=None, slot="Out", dtype="float32", **attrs):
        """Append an operator; its output is declared unless it is known."""
        found = self.block.var_recursive(out) if self._seen(out) else self.block.create_var(name=out, dtype=dtype)
        self.block.append_op(type=type, inputs=inputs or {}, outputs={slot: found}, attrs=attrs)
        return found

    def _seen(self, name):
        return name in {n for b in self.program.blocks for n in b.vars}


def scope_of(**arrays):
    """A scope with these values."""
    scope = Scope()
    for name, array in arrays.items():
        scope.var(name).get_tensor().set(np.asarray(array), CPUPlace())
    return scope


def counting(limit=5):
    """i = 0; while i < limit: i += 1; total += i * x"""
    p = Raw()
    p.data("x", [-1, 2])
    p.op("fill_constant", out="i", dtype="float32", shape=[1], value=0.0)
    p.op("fill_constant", out="n", dtype="float32", shape=[1], value=float(limit))
    p.op("scale", {"X": "x"}, "total", scale=0.0)
    p.op("less_than", {"X": "i", "Y": "n"}, "more", dtype="bool")
    outer = p.block
    body = p.program.create_block()
    p.op("increment", {"X": "i"}, "i", step=1.0)
    p.op("elementwise_mul", {"X": "x", "Y": "i"}, "part")
    p.op("sum", {"X": ["total", "part"]}, "total")
    p.op("less_than", {"X": "i", "Y": "n"}, "more")
    p.program.rollback()
    steps = outer.create_var(name="steps", type=11)
    outer.append_op(
        type="while", inputs={"X": ["i", "n", "x", "total"], "Condition": "more"},
        outputs={"Out": ["i", "total", "more"], "StepScopes": steps}, attrs={"sub_block": body},
    )  # fmt: skip
    p.op("relu", {"X": "total"}, "out")
    return p.program


def dense():
    """out = dropout(relu(x w) - x w); w is written in place at the end."""
    p = Raw()
    p.data("x", [-1, 3])
    p.weight("w", [3, 3])
    p.op("mul", {"X": "x", "Y": "w"}, "h")
    p.op("relu", {"X": "h"}, "r")
    p.op("elementwise_sub", {"X": "r", "Y": "h"}, "d")
    mask = p.block.create_var(name="mask", dtype="uint8")
    out = p.block.create_var(name="out", dtype="float32")
    outs = {"Out": out, "Mask": mask}
    p.block.append_op(type="dropout", inputs={"X": "d"}, outputs=outs, attrs={"dropout_prob": 0.5})
    p.op("scale", {"X": "w"}, "w", scale=0.5)
    return p.program
