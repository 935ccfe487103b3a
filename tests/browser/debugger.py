"""JupyterLab's own debugger panel, driven as a user does: the bug in the toolbar, gutters, buttons, trees."""

from __future__ import annotations

from typing import Any

from tests.browser.lab import Notebook

#: (cell, line) of each line that is lit up in the notebook that is shown.
_LIT = """[...document.querySelectorAll('.jp-Notebook .jp-Cell')].flatMap((cell, i) =>
    [...cell.querySelectorAll('.cm-line')].flatMap((line, k) =>
        line.classList.contains('jp-DebuggerEditor-highlight') ? [[i, k + 1]] : []))"""
_STACK = "[...document.querySelectorAll('.jp-DebuggerCallstackFrame-name')].map(e => e.textContent)"
_TREE = ".jp-DebuggerVariables-body:not(.lm-mod-hidden)"
_ROWS = f"""[...document.querySelectorAll('{_TREE} .jp-DebuggerVariables-name')].map(
    e => [e.textContent, e.parentElement.querySelector(':scope > .jp-DebuggerVariables-detail')?.textContent ?? ''])"""
_PROMPT = ".jp-DebugConsole .jp-CodeConsole-promptCell"
_SERVICE = "window.jupyterapp.shell.currentWidget"
#: Counts the requests of the panel that have no answer yet: what it does next depends on them.
_COUNT = f"""() => {{ const kernel = {_SERVICE}.sessionContext.session.kernel, ask = kernel.requestDebug.bind(kernel);
    window.debugRequests = 0;
    kernel.requestDebug = (...args) => {{ window.debugRequests++; const asked = ask(...args);
        const over = () => {{ window.debugRequests--; }}; asked.done.then(over, over); return asked; }}; }}"""


class Debugger:
    """The debugger panel of a notebook.

    Args:
        nb: the notebook.
    """

    def __init__(self, nb: Notebook) -> None:
        self.nb, self.page = nb, nb.page

    # ---- what a user does

    def switch(self, on: bool = True) -> None:
        """Click the bug in the toolbar, and wait until it is on or off."""
        if on:
            self.page.evaluate(_COUNT)
        self.page.locator('.jp-DebuggerBugButton[aria-disabled="false"]').first.click()
        state = "attached" if on else "detached"
        self.page.wait_for_selector('.jp-NotebookPanel[data-jp-debugger="true"]', state=state)

    def click(self, cell: int, line: int) -> None:
        """Click in the gutter beside a line, and wait until a breakpoint is there or gone."""
        count = self.page.locator(".jp-DebuggerBreakpoint").count()
        gutter = self.nb.cell(cell).locator(".cm-gutter.cm-breakpoint-gutter > .cm-gutterElement").nth(line)
        gutter.click()  # once it stands still: the notebook may just have come back into view
        self.page.wait_for_function("n => document.querySelectorAll('.jp-DebuggerBreakpoint').length !== n", arg=count)

    def press(self, name: str) -> None:
        """Press a button of the call stack.

        Args:
            name: ``continue``, ``terminate``, ``next``, ``stepIn``, ``stepOut`` or ``evaluate``.
        """
        self.page.locator(f'#jp-debugger-sidebar [data-command="debugger:{name}"]').click()

    def start(self, cell: int) -> None:
        """Run a cell without waiting for it."""
        self.page.evaluate(
            f"""i => {{ {_SERVICE}.content.activeCellIndex = i;
                window.jupyterapp.commands.execute('notebook:run-cell'); }}""",
            cell,
        )

    def open(self, *path: str) -> None:
        """Open a variable, and what is inside it.

        Args:
            path: its name, then the names of what to open inside.
        """
        scope = _TREE
        for name in path:
            item = f"{scope} jp-tree-item:has(> .jp-DebuggerVariables-name:text-is('{name}'))"
            found = self.page.locator(item).first
            found.locator("css=.expand-collapse-button").first.click()
            found.locator("css=:scope > jp-tree-item .jp-DebuggerVariables-name").first.wait_for()
            scope = item

    def choose_scope(self, name: str) -> None:
        """Choose what the variables panel shows."""
        self.page.locator(".jp-DebuggerVariables-toolbar select").select_option(name)

    def evaluate(self, text: str, click: bool = True) -> str:
        """Type into the debugger's console.

        Args:
            text: the text.
            click: whether to click into the console first; else it has the focus.

        Returns:
            What it answers.
        """
        answers = self.page.locator(".jp-DebugConsole .jp-CodeConsole-content .jp-OutputArea-output")
        count = answers.count()
        if not self.page.locator(".jp-DebugConsole").count():
            self.press("evaluate")
        if click:
            self.page.locator(f"{_PROMPT} .cm-content").click()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Shift+Enter")
        answers.nth(count).wait_for()
        return str(answers.nth(count).inner_text())

    # ---- what a user sees

    def lit(self) -> list[tuple[int, int]]:
        """(cell, line) of the lines that are lit up."""
        return [(cell, line) for cell, line in self.page.evaluate(_LIT)]

    def stack(self) -> list[str]:
        """The frames, innermost first."""
        return list(self.page.evaluate(_STACK))

    def rows(self) -> dict[str, str]:
        """The variables panel: name -> what stands beside it, where it stands first."""
        return {name: text for name, text in reversed(self.page.evaluate(_ROWS))}

    def breakpoints(self) -> list[int]:
        """The lines in the breakpoints panel."""
        return [int(text) for text in self.page.locator(".jp-DebuggerBreakpoint-line").all_inner_texts()]

    def until_lit(self, cell: int, line: int, frame: str) -> None:
        """Wait until a line, and no other, is lit up, and the innermost frame says something."""
        self._until(f"JSON.stringify({_LIT}) === JSON.stringify([[{cell}, {line}]])")
        self.until_frame(frame)

    def until_frame(self, part: str) -> None:
        """Wait until the innermost frame says something; nothing when there shall be none."""
        self._until(f"({_STACK}[0] ?? '').includes({part!r})" if part else f"{_STACK}.length === 0")

    def until_dark(self) -> None:
        """Wait until nothing stands."""
        self._until(f"{_LIT}.length === 0 && {_STACK}.length === 0")

    def until_prompt(self, text: str = "") -> None:
        """Wait until the prompt of the debugger's console has the focus, and a text."""
        focused = f"document.activeElement.closest({_PROMPT!r})"
        self._until(f"{focused} !== null && document.activeElement.textContent === {text!r}")

    def until_alone(self) -> None:
        """Wait until the notebook is all that is open, since cells are run in what stands in front.

        A source that is shown beside it comes to the front once more, then goes.
        """
        self._until("[...window.jupyterapp.shell.widgets('main')].length === 1")

    def until_row(self, name: str, part: str = "") -> None:
        """Wait until the variables panel shows a variable."""
        self._until(f"{_ROWS}.some(([n, t]) => n === {name!r} && t.includes({part!r}))")

    def until_shown(self, cell: int, part: str) -> None:
        """Wait until the output of a cell has a text."""
        outputs = f"{_SERVICE}.content.widgets[{cell}].model.toJSON().outputs"
        self._until(f"JSON.stringify({outputs}).includes({part!r})")

    def _until(self, condition: str) -> None:
        """Wait until something is so, and the panel waits for no answer that could change it."""
        try:
            self.page.wait_for_function(f"() => window.debugRequests === 0 && {condition}", timeout=60_000)
        except Exception as error:
            seen: Any = (condition, self.lit(), self.stack(), self.rows(), self.nb.errors)
            raise AssertionError(seen) from error
