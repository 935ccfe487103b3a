"""Operators that only these tests know, so that they need no kernel package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidnb.op import Attr, default_grad, op, remove_op, same
from fluidnb.program import Program, fresh_programs
from fluidnb.values import kernel_packages


def _nothing(b: object) -> None:
    """Does nothing; no test here runs it."""


def _rows(c: object) -> None:
    x, y = c["X"], c["Y"]
    c.require(x.shape[-1] == y.shape[0], "widths differ.", hint="make them equal.")
    c.set("Out", (*x.shape[:-1], y.shape[-1]), x.dtype, c.lod("X"))


@pytest.fixture(scope="module", autouse=True)
def operators() -> Iterator[None]:
    """``t_same``, ``t_product``, ``t_sum``, ``t_source``, ``t_test``, ``t_loop``."""
    kernel_packages.load()
    op("t_same", inputs={"X": "any"}, outputs={"Out": "the same"}, infer=same(), grad=default_grad(),
       attrs={"factor": Attr("float", 1.0)})(_nothing)  # fmt: skip
    op("t_product", inputs={"X": "left", "Y": "right"}, outputs={"Out": "product"}, infer=_rows)(_nothing)
    op("t_sum", inputs={"X*": "any"}, outputs={"Out": "sum"}, infer=same())(_nothing)
    op("t_source", outputs={"Out": "made"}, attrs={"shape": Attr("ints"), "dtype": Attr("dtype", 5)},
       infer=lambda c: c.set("Out", c.attr("shape"), c.attr("dtype")))(_nothing)  # fmt: skip
    op("t_test", inputs={"X": "any"}, outputs={"Out": "the same"}, attrs={"is_test": Attr("bool", False)},
       infer=same())(_nothing)  # fmt: skip
    op("t_loop", inputs={"X*?": "read"}, outputs={"Out*?": "written"}, attrs={"sub_block": Attr("block")},
       control=True)(_nothing)  # fmt: skip
    yield
    for name in ("t_same", "t_product", "t_sum", "t_source", "t_test", "t_loop"):
        remove_op(name)


@pytest.fixture
def programs() -> Iterator[tuple[Program, Program]]:
    """Fresh default programs and names."""
    with fresh_programs() as pair:
        yield pair
