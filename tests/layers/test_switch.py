"""Switch: the first case that holds, and only it."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def number(value):
    return L.fill_constant([1], "float32", value)


def value(variable, **feed):
    feed = {name: np.array([v], "float32") for name, v in feed.items()}
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[variable])[0].item()


def grade():
    """1 above 10, 2 above 5, 3 above 0, else 4; the cases overlap."""
    x, out = L.data("x", [1], append_batch_size=False), number(0.0)
    with L.Switch() as switch:
        for i, bound in enumerate((10.0, 5.0, 0.0), 1):
            with switch.case(L.greater_than(x, number(bound))):
                L.assign(number(float(i)), output=out)
        with switch.default():
            L.assign(number(4.0), output=out)
    return out


def test_the_first_case_that_holds():
    out = grade()
    assert [value(out, x=x) for x in (20, 10, 7, 3, 0, -5)] == [1, 2, 2, 3, 4, 4]


def test_without_a_default_nothing_may_happen():
    x, out = L.data("x", [1], append_batch_size=False), number(-1.0)
    switch = L.Switch()
    with switch.block():
        with switch.case(L.greater_than(x, number(0.0))):
            L.assign(number(1.0), output=out)
    assert [value(out, x=x) for x in (1, 0)] == [1, -1]


def test_a_switch_in_a_case():
    x, out = L.data("x", [1], append_batch_size=False), number(0.0)
    with L.Switch() as outer:
        with outer.case(L.greater_than(x, number(0.0))):
            with L.Switch() as inner:
                with inner.case(L.greater_than(x, number(5.0))):
                    L.assign(number(2.0), output=out)
                with inner.default():
                    L.assign(number(1.0), output=out)
        with outer.default():
            L.assign(number(-1.0), output=out)
    assert [value(out, x=x) for x in (7, 3, -3)] == [2, 1, -1]


def test_mistakes():
    yes = L.less_than(number(0.0), number(1.0))
    with pytest.raises(OpValueError, match="case should be called inside with"):
        L.Switch().case(yes)
    with pytest.raises(OpValueError, match="default should be called inside with"):
        L.Switch().default()
    for bad in (number(1.0), True, None):
        with L.Switch() as switch, pytest.raises(OpTypeError, match="a bool variable|must be a Variable of bool"):
            switch.case(bad)
    with L.Switch() as switch, pytest.raises(OpValueError, match="there should be at least one condition"):
        switch.default()


@pytest.mark.parametrize("what", ["case", "default"])
def test_nothing_comes_after_the_default(what):
    yes = L.less_than(number(0.0), number(1.0))
    out = number(0.0)
    program = fluid.default_main_program()
    before = program.desc.serialize_to_string()
    with pytest.raises(OpValueError, match=f"{what} comes after default"):
        with L.Switch() as switch:
            with switch.case(yes):
                L.assign(number(1.0), output=out)
            with switch.default():
                L.assign(number(2.0), output=out)
            switch.case(yes) if what == "case" else switch.default()
    assert program.desc.serialize_to_string() == before and program.current_block_idx == 0


def test_a_body_that_raises_leaves_nothing():
    out = number(0.0)
    yes = L.less_than(out, number(1.0))
    program = fluid.default_main_program()
    before = program.desc.serialize_to_string()
    with pytest.raises(ZeroDivisionError):
        with L.Switch() as switch:
            with switch.case(yes):
                L.assign(number(1.0), output=out)
            with switch.default():
                L.assign(number(1 / 0), output=out)
    assert program.desc.serialize_to_string() == before and program.num_blocks == 1
