"""Pictures of what lies on a device: values come to the host when somebody looks."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from fluidnb.debug.session import current
from fluidnb_magics.widgets.memory_explorer import MemoryExplorer
from fluidnb_magics.widgets.scope_explorer import ScopeExplorer
from tests.device.cells import NET
from tests.magics.conftest import Session, session

__all__ = ["session"]


@pytest.fixture
def ran(session: Session, cuda: fluid.CUDAPlace) -> Session:
    """A session in which a program has run on the device."""
    session.run(NET)
    session.run("import numpy as np; a = np.linspace(0, 1, 60, dtype='float32').reshape(3, 20)")
    session.run("%fluid run --startup")
    session.run("%fluid run --feed x=a --fetch loss")
    return session


def test_scopes_show_what_tensors_hold(ran: Session) -> None:
    shown = ran.run("%fluid scope")
    assert "h.w_0" in shown and "±" in shown and "█" in shown
    shown = ran.run("%fluid scope h.w_0")
    assert "on CUDAPlace(0)" in shown and "[[" in shown and "±" in shown
    face = ScopeExplorer(ran.bench, fluid.global_scope(), "h.w_0")
    try:
        assert face.opened["shape"] == [20, 16] and face.opened["cells"]
    finally:
        face.close()


def test_memory_is_that_of_the_place(ran: Session) -> None:
    shown = ran.run("%fluid memory")
    assert "CUDAPlace(0):" in shown and "h.w_0" in shown and "persistable" in shown
    assert "3 steps" in ran.run("%fluid memory --growth 3 --feed x=a --fetch loss")
    face = MemoryExplorer(ran.bench, fluid.default_main_program())
    try:
        pool = face.pools[0]
        assert pool["place"] == "CUDAPlace(0)" and "emulator" in pool["device"] and "at most" in pool["words"]
        assert pool["used"] == fluid.memory.stats(fluid.CUDAPlace(0)).used
        assert "h.w_0" in [row[0] for row in pool["holders"]]
    finally:
        face.close()


def test_debug_sessions_stand_on_the_place(ran: Session) -> None:
    ran.run("%fluid debug --feed x=a --fetch loss")
    assert "±" in ran.run("%fluid step 3")  # what the step wrote
    assert "[[" in ran.run("%fluid watch h")
    ran.run("%fluid back")
    ran.run("%fluid debug off")
    assert current() is None
    assert fluid.global_scope().find_var("h.w_0").get_tensor()._place() == fluid.CUDAPlace(0)
    assert "finite" in ran.run("%fluid nan --feed x=a")
    assert fluid.global_scope().find_var("h.w_0").get_tensor()._place() == fluid.CUDAPlace(0)
