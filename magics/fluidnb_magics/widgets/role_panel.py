"""A debugger panel whose session is in a role of another process: a panel there reads, and this one shows it."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fluidnb.debug.session import Role, Session
from fluidnb_magics.widgets.session_controls import error_text

if TYPE_CHECKING:
    from fluidnb_magics.widgets.panel import Panel

#: Traits of a panel that its session determines.
_TRAITS = ("listing", "position", "stops", "watches", "values", "scope", "opened", "code", "note")
#: Seconds between two looks at the role, also while no page shows the panel, and for a request to be done.
_EACH, _ASLEEP, _SOON = 0.2, 2.0, 0.3

#: In the process of a role: the panels of its session, by the ids of those that show them.
_panels: dict[str, _PanelThere] = {}


class RoleFollower:
    """Shows what the panel in the process of a role shows, until the session leaves the role.

    Args:
        panel: the panel here.
        role: the role that its session is in.
    """

    def __init__(self, panel: Panel, role: Role) -> None:
        self.role, self._panel = role, panel
        self._requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="fluid-role-panel", daemon=True).start()

    def post(self, request: dict[str, Any]) -> None:
        """Let the panel there handle a request of the page."""
        self._requests.put(request)

    def _run(self) -> None:
        panel, there = self._panel, self.role.there
        assert there is not None
        while panel.session.role is self.role and not panel.session.closed and panel.comm is not None:
            try:
                traits, problems = there(answer, panel.widget_id, self._next())
            except Exception as error:
                panel.report(error_text(error))
                break
            if panel.session.role is self.role:
                panel.show_role(traits)
            for problem in problems:
                panel.report(problem)
        panel.role_left(self.role)

    def _next(self) -> dict[str, Any] | None:
        """The next request; None where there is none for a while."""
        with suppress(queue.Empty):
            return self._requests.get(timeout=_ASLEEP if self._panel.asleep else _EACH)
        return None


class _PanelThere:
    """The panel in the process of a role, without a page."""

    def __init__(self, session: Session) -> None:
        from fluidnb_magics.widgets.panel import Panel

        self._session, self._problems, self._sent = session, list[str](), dict[str, Any]()
        self.panel = Panel(session)
        self.panel.report = self._problems.append  # type: ignore[assignment, method-assign]

    def answer(self, request: dict[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
        """Handle a request; the traits that have changed since the last answer, and what went wrong."""
        if request is not None:
            self.panel.handle(request)
            self._session.settle(_SOON)
        now = {name: getattr(self.panel, name) for name in _TRAITS}
        changed = {name: value for name, value in now.items() if name not in self._sent or self._sent[name] != value}
        problems, self._sent = self._problems[:], now
        self._problems.clear()
        return changed, problems


def answer(session: Session, panel: str, request: dict[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """Runs in the process of a role: what the panel there shows.

    Args:
        session: the one in the role.
        panel: the id of the panel that asks.
        request: of its page; None to look only.
    """
    there = _panels.get(panel)
    if there is None or there.panel.session is not session:
        there = _panels[panel] = _PanelThere(session)
    return there.answer(request)
