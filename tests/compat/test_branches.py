"""Branches as the design documents write them: results that are made outside, names."""

from __future__ import annotations

import fluidnb as fluid
from fluidnb.compat import pd


def test_a_side_may_give_what_is_outside() -> None:
    x = pd.minibatch([10, 20, 30])
    ie = pd.ifelse()
    with ie.true_block():
        ie.output(pd.add(x, 1), x)
    with ie.false_block():
        ie.output(x, x)
    one, other = ie(pd.larger_than(x, 15))
    got = pd.evaluate([one, other])
    assert [v.ravel().tolist() for v in got] == [[10, 21, 31], [10, 20, 30]]


def test_a_single_condition_takes_what_is_outside_whole() -> None:
    x = pd.minibatch([10, 20])
    ie = pd.ifelse()
    with ie.true_block():
        ie.output(x)
    with ie.false_block():
        ie.output(pd.add(x, 1))
    [out] = ie(pd.var(True))
    assert pd.evaluate(out).ravel().tolist() == [10, 20]


def test_names_of_layers_are_passed_on() -> None:
    assert pd.ifelse(name="choice").helper.name == "choice"
    assert pd.create_ifelseop(inputs=[pd.minibatch([1])], output_num=2, name="old").helper.name == "old"
    assert fluid.switch(name="cases").helper.name == "cases"
