"""The listing of a debugger panel: the program as it runs, also when cells have changed it since."""

from __future__ import annotations

import json

from fluidnb.debug.session import Session, current
from fluidnb.proto.desc import ProgramDesc
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.viz.session.panel_model import Listing, has_changed, plan_listing, read_listing


class PanelListing:
    """What the page lists: read again when another program runs, and kept when only the program has changed.

    Args:
        session: the session.

    Attributes:
        text: the listing as JSON.
        changed: whether the program has changed since the run under way began.

    Example:
        >>> y = fluid.layers.fill_constant([2], "float32", 1.0)
        >>> d = fluid.debug(feed={}); listing = PanelListing(d); d.close()
        >>> json.loads(listing.text)["rows"][0][:4]
        [0, 0, 0, 'forward']
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan: LoweredProgram | None = None
        self._listed: tuple[ProgramDesc, int] | None = None
        self.changed = False
        self.text = ""
        self.look_again()

    def follow(self, plan: LoweredProgram) -> None:
        """List what runs.

        Args:
            plan: the plan of the run under way.
        """
        self.changed = has_changed(plan)
        if not self.changed:
            self._list(plan.desc)
        elif self._plan is None or self._plan.desc is not plan.desc:
            self._listed, self.text = None, _json(plan_listing(plan))
        self._plan = plan

    def look_again(self) -> None:
        """A cell may have changed the program."""
        if self._plan is None:
            self._list(self._session.program.desc)
        else:
            self.changed = has_changed(self._plan)

    @property
    def note(self) -> str:
        """What there is to say about the session and its program, in a sentence or two; empty if nothing."""
        said = []
        if self._session.snapshot.closed:
            newer = current()
            more = " %fluid panel shows the one that was begun since." if newer not in (None, self._session) else ""
            said.append("This session has ended; its last state is shown." + more)
        if self.changed:
            said.append(
                "The program has changed since this run began; what runs here is the program as it was. "
                "%fluid debug --feed ... begins a run of the new one."
            )
        return " ".join(said)

    def _list(self, desc: ProgramDesc) -> None:
        if self._listed != (desc, desc.version):
            self._listed, self.text = (desc, desc.version), _json(read_listing(desc))


def _json(listing: Listing) -> str:
    rows = [[r.depth, r.block, r.index, r.role, r.pieces, r.facts, r.place] for r in listing.rows]
    return json.dumps({"counts": listing.counts, "rows": rows}, separators=(",", ":"))
