"""``%fluid ops``: the operators there are, and all about one of them."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

from fluidnb.errors import NotFound
from tests.magics.conftest import Session


@pytest.mark.parametrize("name", ["lstm", "sequence_conv", "while", "beam_search", "nce"])
def test_an_operator(session: Session, name: str) -> None:
    shown = session.run(f"%fluid ops {name}")
    for title in ("inputs", "outputs", "attributes", "kernels", "gradient", "source"):
        assert f"\n{title}\n" in shown
    assert f"{name}  " in shown and ("\nexample\n" in shown or name == "while")
    assert max(map(len, shown.splitlines())) <= 100


def test_what_of_an_lstm_is_shown(session: Session) -> None:
    shown = session.run("%fluid ops lstm")
    assert "    c' = f · c + i · candidate\n" in shown
    assert '  gate_activation       string = "sigmoid"; of the three gates; one of sigmoid, tanh,' in shown
    assert "  cpu   float16, bfloat16, float32, float64\n  cuda  float16, bfloat16, float32, float64\n" in shown
    assert "→ Bias@GRAD, C0@GRAD, H0@GRAD, Input@GRAD" in " ".join(shown.split())


def test_operators_by_a_part_of_their_names(session: Session) -> None:
    assert "  cudnn_lstm lstm lstm_unit lstmp\n" in session.run("%fluid ops lst") + "\n"
    assert "sequence (1)\n  sequence_pool" in session.run("%fluid ops sequence_p?ol")
    whole = session.run("%fluid ops")
    assert "activation (" in whole and "relu_grad" not in whole


def test_an_operator_that_there_is_not(session: Session) -> None:
    error, _ = session.fail("%fluid ops sequense_pool")
    assert isinstance(error, NotFound)
    assert '"sequence_pool"' in str(error)


def test_tab_offers_operators(session: Session) -> None:
    with provisionalcompleter():
        found = {c.text for c in session.shell.Completer.completions("%fluid ops sequence_so", 22)}
    assert "sequence_softmax" in found
