"""The listing of a debugger panel: the program as it runs, also when cells have changed it since."""

from collections.abc import Mapping

from fluidnb.debug.session import Session, current
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.viz.session.panel_model import Spot, compiled_listing, has_changed, listing_json, read_listing


class PanelListing:
    """The listing of the page: read again when another program runs, and kept when only the program has changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lowered: LoweredProgram | None = None
        self._listed: tuple[ProgramDesc, int, Mapping[Spot, OpDesc] | None] | None = None
        self.changed = False
        self.text = ""
        self.update()

    def follow(self, lowered: LoweredProgram) -> None:
        """List the program that runs."""
        self.changed = has_changed(lowered)
        if not self.changed:
            self._list(lowered.desc, lowered.changed)
        elif self._lowered is None or self._lowered.desc is not lowered.desc:
            self._listed, self.text = None, listing_json(compiled_listing(lowered))
        self._lowered = lowered

    def update(self) -> None:
        """A cell may have changed the program."""
        if self._lowered is None:
            self._list(self._session.program.desc)
        else:
            self.changed = has_changed(self._lowered)

    @property
    def note(self) -> str:
        """A note that the session has ended, or that its program has changed; empty without these."""
        notes = []
        if self._session.snapshot.closed:
            newer = current()
            more = " %fluid panel shows the one that was begun since." if newer not in (None, self._session) else ""
            notes.append("This session has ended; its last state is shown." + more)
        if self.changed:
            notes.append(
                "The program has changed since this run began; what runs here is the program as it was. "
                "%fluid debug --feed ... begins a run of the new one."
            )
        return " ".join(notes)

    def _list(self, desc: ProgramDesc, changed: Mapping[Spot, OpDesc] | None = None) -> None:
        listed = (desc, desc.version, changed)
        if self._listed != listed:
            self._listed, self.text = listed, listing_json(read_listing(desc, changed))
