"""Values of parameters: kept while name and shape stay, initialized at the next run otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from tests.magics.conftest import Session
from tests.magics.test_cells import DATA, LOSS, NET, model

FEED = "X = np.ones((8, 4), 'float32')\nY = np.ones((8, 1), 'float32')"
RUN = "%fluid run --feed x=X y=Y --fetch loss --steps 3"


def value(name: str) -> np.ndarray[Any, Any] | None:
    """The values of the global scope."""
    found = fluid.global_scope().find_var(name)
    return None if found is None else np.array(found.get_tensor())


def test_kept_and_new(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run(RUN)
    weight, bias = value("h.w_0"), value("pred.b_0")
    assert weight is not None
    assert bias is not None
    assert bias.item() != 0
    shown = session.run(NET.replace("size=10", "size=20"))
    assert "will be initialized on the next run: h.w_0, h.b_0, pred.w_0" in shown
    assert np.array_equal(value("pred.b_0"), bias), "a parameter that still fits lost its value"
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    assert value("h.w_0").shape == (4, 20)
    session.run("%fluid undo\n%fluid run --feed x=X y=Y --fetch loss")
    assert value("h.w_0").shape == weight.shape


def test_plain_executors_get_first_values_too(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run("exe = fluid.Executor(fluid.CPUPlace())\nexe.run(fluid.default_startup_program())")
    session.run("trained = exe.run(feed={'x': X, 'y': Y}, fetch_list=[loss])")
    before = value("pred.b_0")
    session.run(NET.replace("size=10", "size=20"))
    session.run("trained = exe.run(feed={'x': X, 'y': Y}, fetch_list=[pred])")
    assert value("h.w_0").shape == (4, 20)
    assert not np.array_equal(value("pred.b_0"), before)


def test_first_values_are_those_of_a_fresh_start(session: Session) -> None:
    session.run("%fluid seed 3")
    model(session)
    session.run(FEED)
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    session.run(NET.replace("size=10", "size=20"))
    main, startup = session.bench.program()
    aside = fluid.Scope()
    fluid.Executor().run(startup.clone(), scope=aside)
    session.bench.before_run(main, fluid.global_scope())
    assert np.array_equal(value("h.w_0"), np.array(aside.find_var("h.w_0").get_tensor()))


def test_a_changed_learning_rate_takes_effect(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run(RUN)
    session.run(LOSS.replace("SGD(0.1)", "SGD(0.5)"))
    weight = value("h.w_0")
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    assert value("learning_rate_0").item() == np.float32(0.5)
    assert value("h.w_0").shape == weight.shape


def test_what_an_optimizer_remembers_starts_over_with_its_parameter(session: Session) -> None:
    model(session)
    session.run(FEED)
    session.run(LOSS.replace("SGD(0.1)", "Adam(0.1)"))
    session.run(RUN)
    power = "h.w_0_beta1_pow_acc_0"
    assert value(power).item() < 0.8
    session.run(NET.replace("size=10", "size=20"))
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    assert value(power).item() > 0.8, "moments start at zero, so their corrections have to start over"
    assert value("pred.b_0_beta1_pow_acc_0").item() < 0.8


def test_reset_of_parameters(session: Session) -> None:
    session.run("%fluid seed 3")
    model(session)
    session.run(FEED)
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    first = value("h.w_0")
    session.run(RUN)
    assert not np.array_equal(value("h.w_0"), first)
    assert "will be re-initialized" in session.run("%fluid reset --params")
    assert value("h.w_0") is None
    session.run("%fluid run --feed x=X y=Y --fetch pred")
    assert np.array_equal(value("h.w_0"), first)


def test_same_numbers_in_the_same_session_twice(session: Session) -> None:
    session.run(FEED)
    seen = []
    for _ in range(2):
        session.run("%fluid reset --params\n%fluid seed 11")
        for cell in (DATA, NET, LOSS):
            session.run(cell)
        fluid.global_scope().erase(fluid.global_scope().local_var_names())
        session.run(RUN)
        seen.append(value("h.w_0"))
    assert np.array_equal(*seen)
