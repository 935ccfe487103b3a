"""Saved sessions and programs, opened from disk in a browser without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session
from tests.browser.saved_page import SavedPage, opened
from tests.viz.saved_page.programs import COLUMN, ROW, large, lstm_training
from tests.viz.test_hostile_names import ACTS, EVIL


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training of an LSTM in three steps, the last of which has a NaN."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        return lstm_training().save(tmp_path_factory.mktemp("pages") / "lstm.html")


@pytest.fixture
def saved(browser: Any, file: Path) -> Iterator[SavedPage]:
    with opened(browser, file) as page:
        yield page
        assert page.problems == []


def test_a_training_is_walked_to_its_first_nan_and_back_and_a_tensor_is_read(saved: SavedPage) -> None:
    last = saved.step
    saved.key("Home")
    assert saved.step == 0
    saved.key("c")
    first = saved.step
    assert 0 < first < last and "breakpoint nan" in saved.page.locator(".fp-reason").inner_text()
    assert "fc_0.tmp_0" in saved.page.locator(".fp-list .fp-wrote .fp-name").inner_text()
    saved.open("fc_0.tmp_0")
    assert {text for text in saved.cells()[ROW]} == {"nan"}
    assert all(text != "nan" for row in saved.cells()[:ROW] for text in row)
    saved.key("ArrowLeft")
    assert saved.step == first - 1 and "mul(" in saved.next_op
    assert saved.page.locator(".fp-opened .fp-facts").first.inner_text() == "no value here"
    saved.open("x")
    assert [j for j, text in enumerate(saved.cells()[ROW]) if text == "nan"] == [COLUMN]
    saved.key("ArrowLeft")
    assert saved.step == first - 1 and "end of the block" in saved.page.locator(".fp-stack").inner_text()
    saved.key("ArrowLeft")
    assert saved.step == first - 2
    saved.key("ArrowRight", "ArrowRight", "ArrowRight")
    assert saved.step == first
    saved.key("C")
    assert saved.step == first - 1  # reverse: to before the step that wrote it


def test_the_values_are_those_of_the_step(saved: SavedPage) -> None:
    saved.key("Home")
    saved.page.locator(".fp-frame", has_text="user's scope").click()
    saved.page.get_by_label("filter variables").fill("fc_1.b_0")
    saved.open("fc_1.b_0")
    before = saved.cells()
    saved.key("End")
    after = saved.cells()
    assert before == [["0"]] and after == [["nan"]]
    saved.page.get_by_label("compare with step").fill("0")
    saved.page.get_by_label("compare with step").press("Enter")
    saved.page.get_by_text("1 of 1 elements differ from step 0").wait_for()


def test_breakpoints_of_recorded_steps(saved: SavedPage) -> None:
    saved.key("Home")
    box = saved.page.get_by_label("add a breakpoint")
    box.fill("op adam")
    box.press("Enter")
    saved.page.locator(".fp-state").click()
    saved.key("c")
    assert "adam(" in saved.next_op
    box.fill("when loss > 3")
    box.press("Enter")
    saved.page.get_by_text("Conditions need a kernel.").wait_for()


def test_the_program_is_searched_folded_and_followed_by_keyboard(saved: SavedPage) -> None:
    saved.key("/")
    saved.page.keyboard.type("lstm_grad")
    assert saved.page.locator(".fe-count").inner_text() == "1 found"
    saved.key("Enter")
    card = saved.page.locator(".fe-card")
    card.get_by_text("gradient of", exact=True).wait_for()
    assert "lstm_grad" in card.locator("h3").inner_text()
    card.locator("section", has_text="gradient of").locator("button").first.press("Enter")
    assert "lstm" in card.locator("h3").inner_text() and "lstm_grad" not in card.locator("h3").inner_text()
    card.locator("section", has_text="reads").locator("button.p-name").first.press("Enter")
    card.get_by_text("its value at step").wait_for()
    assert "written by" in card.inner_text() and "read by" in card.inner_text()
    saved.page.get_by_label("fold").select_option("layers")
    assert saved.page.locator(".fe-row .fe-fold", has_text="▸").count() > 0


def test_light_and_dark(browser: Any, file: Path, shots: Path) -> None:
    grounds = []
    for dark in (False, True):
        for width in (480, 1100):
            with opened(browser, file, width, dark) as saved:
                saved.key("Home", "c")
                saved.open("fc_0.tmp_0")
                saved.page.screenshot(path=shots / f"saved_{width}_{'dark' if dark else 'light'}.png", full_page=True)
                ground = "() => getComputedStyle(document.body).backgroundColor"
                own = saved.page.evaluate(ground)
                grounds.append(own)
                wide = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
                assert saved.page.evaluate(wide), "the page scrolls sideways"
                saved.page.get_by_role("button", name="colours").click()
                assert saved.page.evaluate(ground) != own
                assert saved.problems == []
    assert grounds[0] == grounds[1] != grounds[2] == grounds[3]


def test_thinned_tensors_are_marked(browser: Any, tmp_path: Path) -> None:
    with opened(browser, large(3, 5, 200).save(tmp_path / "large.html")) as saved:
        saved.open("x")
        assert "thinned: this file has 50×50 of 200×200 elements" in saved.page.locator(".fp-opened").inner_text()
        assert saved.page.locator(".fp-opened .fp-grid th[scope=row]").all_inner_texts()[:3] == ["0", "4", "8"]
        assert saved.page.locator(".fp-opened img").count() == 1 and saved.problems == []


def test_loops_are_entered_and_left(browser: Any, tmp_path: Path) -> None:
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i, 1)
        layers.less_than(i, n, cond=more)
    session = Session(fluid.default_main_program(), {})
    session.continue_()
    with opened(browser, session.save(tmp_path / "loop.html")) as saved:
        saved.key("Home", "s", "s", "s")
        assert "while" in saved.next_op
        saved.key("s")
        assert saved.page.locator(".fp-frame").count() == 3
        assert "iteration 0" in saved.page.locator(".fp-stack").inner_text()
        saved.key("o")
        assert saved.page.locator(".fp-frame").count() == 2
        saved.key("N")
        assert "while" in saved.next_op and saved.page.locator(".fp-frame").count() == 2
        saved.key("n")
        assert saved.page.locator(".fp-state").inner_text() == "done" and saved.problems == []


def test_a_program_alone(browser: Any, tmp_path: Path) -> None:
    layers.fc(layers.data("x", [4]), 3)
    with opened(browser, fluid.default_main_program().save_html(tmp_path / "p.html", title="net")) as saved:
        assert saved.page.title() == "net" and saved.page.locator(".fw-panel").count() == 0
        saved.key("/")
        saved.page.keyboard.type("mul")
        saved.page.get_by_text("1 found").wait_for()
        assert saved.problems == []


def test_hostile_names_are_text(browser: Any, tmp_path: Path, shots: Path) -> None:
    out = layers.scale(layers.data("x", [2]), 2.0)
    block = fluid.default_main_program().global_block()
    names = {"x": "x</script>" + EVIL, out.name: "n" * 10_000 + EVIL}
    for name, new in names.items():
        block.desc.rename_var(name, new)
    session = Session(fluid.default_main_program(), {names["x"]: [[1.0, 2.0]]})
    session.watch(f"v[{names['x']!r}].sum()")
    session.step()
    with opened(browser, session.save(tmp_path / "hostile.html")) as saved:
        for row in saved.page.locator(".fp-values .fp-value").all():
            row.click()
            saved.page.get_by_text("its value at step").wait_for()
            assert saved.cells()
        saved.page.locator(".fe-row").first.click()
        saved.page.screenshot(path=shots / "saved_hostile.png", full_page=True)
        texts = saved.page.evaluate(
            "() => [document.title, document.body.innerText, ...[...document.querySelectorAll('*')]"
            ".flatMap((e) => ['title', 'aria-label', 'alt', 'placeholder'].map((name) => e.getAttribute(name) ?? ''))]"
        )
        assert "<img src=x onerror=alert(1)>" in texts[1] and r"\u202egpj" in texts[1]
        for text in texts:
            assert ACTS.findall(text) == []
        assert saved.page.locator("[onerror]").count() == 0
        wide = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert saved.page.evaluate(wide) and saved.problems == []
