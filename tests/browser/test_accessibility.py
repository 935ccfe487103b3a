"""All widgets on one page: axe-core, the keyboard, the focus, reduced motion, and the themes of Colab and VS Code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb_magics import extension
from tests.browser.widget_page import LIGHTNESS, THEMES, all_widgets, use_theme, widget_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(os.environ.get("FLUIDNB_VENVS", ".venvs")) / "node" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
#: Focuses each kind of control, lets its widget draw itself anew, and gives those that lost the focus.
LOST = """async () => {
    const lost = [], text = (e) => e.localName === "button" && e.textContent;
    const kind = (e) => [e.localName, e.className, e.getAttribute("aria-label"), e.title, text(e)].join("|");
    for (const [i, section] of [...document.querySelectorAll("main > section")].entries()) {
        const all = () => [...section.querySelectorAll("button, select, input, [tabindex='0']")];
        const controls = () => all().filter((e) => e.offsetParent && !e.disabled);
        const seen = new Set();
        for (let k = 0; k < controls().length; k++) {
            const control = controls()[k], name = kind(control);
            if (seen.has(name) || seen.size > 40) continue;
            seen.add(name);
            control.focus();
            if (document.activeElement !== control) continue;
            models[i].redraw();
            await new Promise((go) => setTimeout(go, 10));
            if (kind(document.activeElement) !== name) lost.push([section.querySelector("h3").textContent, name]);
        }
    }
    return lost;
}"""
#: Elements that answer a click and that no key reaches.
UNREACHED = """() => [...document.querySelectorAll("main > section *")]
    .filter((e) => e.onclick && !e.matches("button, select, input, summary, [tabindex='0']"))
    .filter((e) => !e.closest("[tabindex='0']:not(.fluidnb-widget)")).map((e) => e.classList[0])"""
#: Whether anything moves by itself.
MOVING = """() => document.getAnimations().length + [...document.querySelectorAll("main *")]
    .map((e) => getComputedStyle(e))
    .filter((style) => /[1-9]/.test(style.transitionDuration) || style.animationName !== "none").length"""


@pytest.fixture(scope="module")
def page(browser: Any, shots: Path) -> Iterator[Any]:
    """The page; what its scripts raise fails the test that comes last."""
    with fluid.fresh(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "_plain", [])
        patch.setattr(extension, "get_ipython", lambda: None)
        widgets = all_widgets()
        with widget_page(browser, widgets, reduced_motion="reduce") as opened:
            errors: list[str] = []
            opened.on("pageerror", lambda error: errors.append(str(error)))
            opened.wait_for_timeout(1000)
            yield opened
            opened.screenshot(path=shots / "widgets.png", full_page=True)
            assert not errors
        for widget in widgets.values():
            widget.close()
    fluid.program.hooks.before_run = None


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(page: Any, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core: `make node` installs it, where node and npm are")
    use_theme(page, theme)
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("async () => (await axe.run('main', { resultTypes: ['violations'] })).violations")
    assert page.locator(".fluidnb-widget").count() == 9
    wrong = [v for v in found if v["impact"] in SERIOUS]
    assert not [(v["id"], [(n["target"], n["failureSummary"]) for n in v["nodes"]]) for v in wrong]


@pytest.mark.parametrize("theme", THEMES)
def test_widgets_follow_the_theme_of_the_front_end(page: Any, theme: str) -> None:
    use_theme(page, theme)
    for ground, text in page.locator(".fluidnb-widget").evaluate_all(LIGHTNESS):
        assert (ground < 0.4 and text > 0.7) if "dark" in theme else (ground > 0.9 and text < 0.4)


def test_the_focus_stays_when_a_widget_is_drawn_anew(page: Any) -> None:
    assert not page.evaluate(LOST)


def test_a_link_keeps_focus_and_click_when_its_card_grows(page: Any) -> None:
    """The documentation arrives after the card: a press that began before must end on the same link."""
    page.evaluate(
        """() => {
            const rows = [...document.querySelectorAll("#explorer .fe-row")];
            rows.find((row) => row.textContent.includes("square")).click();
            window.link = document.querySelector("#explorer .fe-card .fe-link");
            link.focus();
        }"""
    )
    page.locator("#explorer .fe-card > .fe-late > .fe-sheet").wait_for()
    assert page.evaluate("() => link.isConnected && document.activeElement === link")


def test_every_control_is_reached_by_keys(page: Any) -> None:
    # A click on the picture of a lesson does what arrow keys do; one on a runner what the first button in it does.
    assert set(page.evaluate(UNREACHED)) <= {"picture", "runner"}
    page.locator("#builder .fb-list").focus()
    page.keyboard.press("ArrowDown")
    # The focus made the widget ask for the draft again: the response leaves the chosen row as it is.
    page.evaluate("() => document.querySelector('.fw-builder').dispatchEvent(new FocusEvent('focusin'))")
    page.locator("#builder .fb-draft[aria-busy=false]").wait_for()
    page.keyboard.press("Enter")
    page.locator("#builder .fb-draft").get_by_text("layers.conv2d").first.wait_for()
    page.locator("#panel .fluidnb-widget").focus()
    before = int(page.locator("#panel .fp-count").inner_text().split()[1])
    page.keyboard.press("s")
    page.locator("#panel .fp-count", has_text=f"step {before + 1}").wait_for()
    assert page.evaluate("() => document.activeElement.closest('#panel') !== null")


def test_nothing_moves_by_itself(page: Any) -> None:
    assert page.evaluate(MOVING) == 0
