"""Representations of objects in notebooks, in IPython's terminal and as files, for the classes of all packages."""

import importlib
import os
from pathlib import Path
from typing import Any


def repr_html(thing: Any) -> str | None:
    """HTML rendering of an object of fluidnb; None for another object. Classes have it as ``_repr_html_``.

    The pictures are in a higher package: it is imported by name, when a notebook shows the first object.
    """
    html: str | None = importlib.import_module("fluidnb.viz.notebook_reprs").repr_html(thing)
    return html


def repr_pretty(thing: Any, printer: Any, cycle: bool) -> None:
    """Text of IPython's terminal: ``str`` of a table. Classes have it as ``_repr_pretty_``."""
    printer.text(str(thing))


def save_html(thing: Any, file: str | os.PathLike[str], **options: Any) -> Path:
    """Writes a program or a debug session as one HTML file; a higher package is imported by name, as above."""
    path: Path = importlib.import_module("fluidnb.viz.saved_page.page").save_html(thing, file, **options)
    return path
