"""One HTML file of a program, and of the recorded steps of a debug session."""

import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fluidnb.debug.session import Session
from fluidnb.errors import OpValueError
from fluidnb.files.atomic_write import atomic_write
from fluidnb.op import has_op
from fluidnb.utils.escapes import escape, visible_line
from fluidnb.viz.base.static_files import read_static
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.program.model import ProgramPicture
from fluidnb.viz.program.op_type import read_op
from fluidnb.viz.program.op_type_text import sheet_lines
from fluidnb.viz.program.reader import read_program
from fluidnb.viz.program.table import table_json
from fluidnb.viz.saved_page.budget import Packed, pack, packed, steps_of
from fluidnb.viz.saved_page.recording import read_recording
from fluidnb.viz.session.panel_buttons import BUTTONS

#: Bytes of a file at most.
MAX_BYTES = 2_000_000
#: Scripts of the page: those of the debugger panel and of the program explorer, which see nothing of each other.
_PANEL, _EXPLORER = ("panel_parts", "panel_values", "panel"), ("explorer_program", "explorer_card", "explorer")
#: The last line of a widget's script.
_EXPORT = "export default { render };"
#: Bytes of the counts of steps and values in the heading, at most.
_FACTS = 200
#: Columns of the documentation of an operator.
_SHEET = 52


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A page before it is written."""

    text: str  # the HTML
    facts: str  # what it has, in words


def save_html(
    thing: Any, file: str | os.PathLike[str], last: int | None = None, max_bytes: int = MAX_BYTES, title: str = "",
    note: str = "", report: Callable[[str], None] = print,
) -> Path:  # fmt: skip
    """Writes a program, a part of one, or the recorded steps of a session as one HTML file.

    Args:
        thing: a `Program`, a `ProgramPicture`, or a `Session`.
        last: the number of steps at most, the last ones; None for all that are recorded.
        max_bytes: bytes of a session's file at most; values are thinned, then the oldest steps are left out.
        note: text below the heading: why there is a page.
        report: called with one sentence about the size before the file is written.

    Returns:
        The path of the file.
    """
    page = read_page(thing, last, max_bytes, title, note)
    data = page.text.encode()
    report(f"writes {visible_line(os.fspath(file))}: {_size(len(data))} ({page.facts})")
    with atomic_write(file, size=len(data)) as out:
        out.write(data)
    return Path(file)


def read_page(
    thing: Any, last: int | None = None, max_bytes: int = MAX_BYTES, title: str = "", note: str = ""
) -> SavedPage:
    """The page of a program, of a part of one, or of a session."""
    session = thing if isinstance(thing, Session) else None
    program = thing if session is None else session.program
    picture = program if isinstance(program, ProgramPicture) else read_program(program)
    title = title or ("debug session" if session is not None else picture.title)
    facts = plural(picture.size, "operator")
    data = {"table": packed(table_json(picture)), "sheets": packed(_sheets(picture))}
    recording = None if session is None else read_recording(session, last)
    if recording is None:
        return SavedPage(_html(title, facts, data, note), facts)
    data |= {"listing": packed(recording.listing.encode()), "buttons": packed(_buttons())}
    bare = len(_html(title, facts, {**data, "steps": ""}, note).encode())
    if bare + _FACTS > max_bytes:
        raise OpValueError(
            "The file does not fit into its limit.", expected=f"at most {max_bytes:,} bytes",
            received=f"{bare:,} bytes for the program alone", hint=f"max_bytes={bare + 500_000} is enough.",
        )  # fmt: skip
    steps = pack(recording, max_bytes - bare - _FACTS)
    facts = f"{facts}, {_counts(steps, steps_of(recording))}"
    return SavedPage(_html(title, facts, {**data, "steps": steps.text}, note), facts)


def _counts(steps: Packed, recorded: int) -> str:
    """The counts of steps and values in words."""
    count = plural(steps.steps, "step")
    some = f"the last {count} of {recorded:,}" if steps.steps < recorded else count
    values = f"{steps.thinned:,} of {plural(steps.values, 'value')} thinned" if steps.thinned else ""
    return f"{some}; {values or f'all {steps.values:,} values whole'}"


def _html(title: str, facts: str, data: Mapping[str, str], note: str) -> str:
    """The text of the page; data as compressed text that no parser reads as markup."""
    script = _script()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    styles = "\n".join(read_static(f"{name}.css") for name in ("shared", "panel", "explorer", "page"))
    blobs = "\n".join(f'<script type="text/plain" id="data-{name}">{text}</script>' for name, text in data.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="fluidnb">
<title>{escape(title)}</title>
<style>
{styles}
</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p id="facts">{escape(facts)}</p></header>
{f'<pre id="note">{escape(note)}</pre>' if note else ""}
<main id="page"><p id="wait" role="status">This page needs JavaScript.</p></main>
{blobs}
<script type="module">{script}</script>
</body>
</html>
"""


def _script() -> str:
    """The script of the page."""
    parts = (read_static("shared.js"), _scoped("panel", _PANEL), _scoped("explorer", _EXPLORER))
    return "\n".join((*parts, read_static("saved_values.js"), read_static("player.js"), read_static("page.js")))


def _scoped(name: str, files: tuple[str, ...]) -> str:
    """The scripts of a widget as an object with its function ``render``."""
    text = "\n".join(read_static(f"{file}.js") for file in files).replace(_EXPORT, "return { render };")
    return f"const {name} = (() => {{\n{text}\n}})();"


def _buttons() -> bytes:
    """The buttons that need no kernel."""
    shown = [{**button.data, "tip": f"{button.help}  (key {button.key})"} for button in BUTTONS if button.action]
    return json.dumps(shown).encode()


def _sheets(picture: ProgramPicture) -> bytes:
    """The documentation of the program's types of operators."""
    types = sorted({op.type for op in picture.each()})
    return json.dumps({kind: sheet_lines(read_op(kind), _SHEET) for kind in types if has_op(kind)}).encode()


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1e6 else f"{nbytes / 1e3:.0f} KB"
